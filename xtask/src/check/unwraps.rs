//! No `unwrap()` outside tests: an error is passed on, and what cannot happen says why in an `expect`.

use super::Violation;
use super::rust_text::{block_end, code_only};
use crate::tree::File;

pub(super) fn violations(file: &File) -> Vec<Violation> {
    if !is_shipped(&file.path) {
        return Vec::new();
    }
    let code = code_only(&file.text);
    let tests = test_blocks(&code);
    code.match_indices(".unwrap()")
        .filter(|(at, _)| !tests.iter().any(|block| block.contains(at)))
        .map(|(at, _)| Violation {
            rule: "unwraps",
            place: format!("{}:{}", file.path, code[..at].matches('\n').count() + 1),
            fault: "calls unwrap() outside a test".to_owned(),
            remedy: "pass the error on with `?`, or write `expect` with the reason it cannot happen".to_owned(),
        })
        .collect()
}

/// Sources that end up in the binary. The testkit is test code that happens to be a crate.
pub(super) fn is_shipped(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    let shipped = match names[..] {
        ["crates", "testkit", ..] => false,
        ["crates", _, "src", ..] => true,
        _ => false,
    };
    shipped && path.ends_with(".rs") && !path.ends_with("/tests.rs") && !names.contains(&"tests")
}

/// The blocks that a `#[cfg(test)]` or `#[test]`-like attribute opens.
pub(super) fn test_blocks(code: &str) -> Vec<std::ops::Range<usize>> {
    let attributes = ["#[cfg(test)]", "#[test]", "#[tokio::test"];
    let starts = attributes.iter().flat_map(|attribute| code.match_indices(attribute));
    starts
        .filter_map(|(at, _)| {
            let body = at + code[at..].find(['{', ';'])?;
            let end = match code.as_bytes()[body] {
                b'{' => block_end(code.as_bytes(), body)?,
                _ => body,
            };
            Some(at..end)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn places(path: &str, text: &str) -> Vec<String> {
        let found = violations(&file(path, text)).into_iter();
        found.map(|v| v.place).collect()
    }

    #[test]
    fn an_unwrap_in_shipped_code_is_refused_and_one_in_a_test_is_not() {
        let text = "fn f() {\n    g().unwrap();\n}\n#[cfg(test)]\nmod tests {\n    fn h() { g().unwrap() }\n}\nfn i() { j().unwrap() }\n";
        assert_eq!(places("crates/core/src/a.rs", text), ["crates/core/src/a.rs:2", "crates/core/src/a.rs:8"]);
    }

    #[test]
    fn a_test_module_in_another_file_excuses_nothing_here() {
        let text = "#[cfg(test)]\nmod tests;\nfn f() { g().unwrap() }\n";
        assert_eq!(places("crates/core/src/a.rs", text).len(), 1);
        assert!(places("crates/core/src/a/tests.rs", "fn f() { g().unwrap() }").is_empty());
    }

    #[test]
    fn words_about_unwrap_and_its_gentler_sisters_are_fine() {
        let text = "// never .unwrap() here\nfn f() { g().unwrap_or_default(); h(\".unwrap()\") }\n";
        assert!(places("crates/core/src/a.rs", text).is_empty());
    }

    #[test]
    fn tests_benches_and_the_testkit_may_unwrap() {
        let text = "fn f() { g().unwrap() }";
        assert!(places("crates/core/tests/a.rs", text).is_empty());
        assert!(places("crates/testkit/src/a.rs", text).is_empty());
        assert!(places("xtask/src/a.rs", text).is_empty());
    }
}
