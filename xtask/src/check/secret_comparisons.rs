//! No secret is compared with `==`: the time that takes tells how many bytes were guessed.

use super::Violation;
use super::rust_text::code_only;
use super::unwraps::{is_shipped, test_blocks};
use crate::tree::File;

pub(super) fn violations(file: &File) -> Vec<Violation> {
    if !is_shipped(&file.path) {
        return Vec::new();
    }
    let code = code_only(&file.text);
    let tests = test_blocks(&code);
    let exposed = code.match_indices("expose_secret()").filter(|(at, _)| !tests.iter().any(|block| block.contains(at)));
    exposed
        .filter(|(at, _)| is_compared(statement(&code, *at)))
        .map(|(at, _)| Violation {
            rule: "secret comparisons",
            place: format!("{}:{}", file.path, code[..at].matches('\n').count() + 1),
            fault: "compares a secret with == or !=".to_owned(),
            remedy: "compare with `SealKey::same_secret`, which takes the same time for every guess".to_owned(),
        })
        .collect()
}

/// The statement or the block's head that this place is in.
fn statement(code: &str, at: usize) -> &str {
    let ends = |character: char| matches!(character, ';' | '{' | '}');
    let start = code[..at].rfind(ends).map_or(0, |found| found + 1);
    let end = code[at..].find(ends).map_or(code.len(), |found| at + found);
    &code[start..end]
}

/// A secret that is only measured is not compared.
fn is_compared(statement: &str) -> bool {
    let measured = [".len()", ".is_empty()"].iter().any(|measure| statement.contains(&format!("expose_secret(){measure}")));
    !measured && (statement.contains("==") || statement.contains("!="))
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn places(text: &str) -> Vec<String> {
        violations(&file("crates/identity/src/a.rs", text)).into_iter().map(|found| found.place).collect()
    }

    #[test]
    fn a_secret_that_is_compared_in_shipped_code_is_refused_on_one_line_or_several() {
        assert_eq!(places("fn f() {\n    if key.expose_secret() == given {}\n}\n"), ["crates/identity/src/a.rs:2"]);
        assert_eq!(places("fn f() -> bool {\n    given\n        != key\n            .expose_secret()\n}\n").len(), 1);
    }

    #[test]
    fn other_uses_of_a_secret_are_fine() {
        for text in [
            "fn f() { SealKey::same_secret(key.expose_secret(), given) }",
            "fn f() { sign(key.expose_secret()); a == b }",
            "fn f() { key.expose_secret().len() == 32 }",
            "// key.expose_secret() == given\nfn f() {}",
            "#[cfg(test)]\nmod tests {\n    fn f() { assert!(key.expose_secret() == given) }\n}\n",
        ] {
            assert!(places(text).is_empty(), "{text}");
        }
        let elsewhere = file("crates/identity/tests/a.rs", "fn f() { key.expose_secret() == given }");
        assert!(violations(&elsewhere).is_empty());
    }
}
