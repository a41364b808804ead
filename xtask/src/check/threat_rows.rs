//! Every test and source file that SECURITY.md names exists, so that no row of its threat model outlives its proof.

use super::Violation;
use super::rust_text::code_only;
use crate::tree::File;

const DOCUMENT: &str = "SECURITY.md";

/// A test is written `crate::module::test_name`; a source file `crate/file.rs` without its `src/`, or by its whole path. Both
/// stand between backticks.
pub(super) fn violations(files: &[File]) -> Vec<Violation> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else { return Vec::new() };
    let mut violations = Vec::new();
    let mut named_tests = 0;
    for (number, line) in document.text.lines().enumerate() {
        for name in backticked(line) {
            let fault_and_remedy = if is_test_name(name) {
                named_tests += 1;
                missing_test(name, files)
            } else {
                missing_source(name, files)
            };
            violations.extend(fault_and_remedy.map(|(fault, remedy)| violation(number + 1, fault, remedy)));
        }
    }
    if named_tests == 0 {
        let remedy = "name the test of each threat as `crate::module::test_name`, between backticks";
        violations.push(violation(1, "names no test at all".to_owned(), remedy.to_owned()));
    }
    violations
}

fn violation(line: usize, fault: String, remedy: String) -> Violation {
    Violation { rule: "threats", place: format!("{DOCUMENT}:{line}"), fault, remedy }
}

pub(super) fn backticked(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_test_name(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    text.contains("::") && text.split("::").all(is_word)
}

fn missing_test(name: &str, files: &[File]) -> Option<(String, String)> {
    let (module, test) = name.rsplit_once("::")?;
    let in_module = |file: &&File| module_of(&file.path).is_some_and(|found| found == module);
    if files.iter().filter(in_module).any(|file| has_test(file, test)) {
        return None;
    }
    let moved = files.iter().filter(|file| has_test(file, test)).find_map(|file| module_of(&file.path));
    let remedy = match moved {
        Some(module) => format!("the test is in another module: write `{module}::{test}`"),
        None => "name the test that shows the guard today, or write \"no test yet\"".to_owned(),
    };
    Some((format!("names the test `{name}`, which does not exist"), remedy))
}

/// `outbound::it::guard::rebinding` for `crates/outbound/tests/it/guard/rebinding.rs`.
fn module_of(path: &str) -> Option<String> {
    let names: Vec<&str> = path.strip_suffix(".rs")?.split('/').collect();
    let (package, modules) = match &names[..] {
        ["crates", package, "src" | "tests", modules @ ..] => (package, modules),
        [package @ "xtask", "src", modules @ ..] => (package, modules),
        _ => return None,
    };
    let modules = match modules {
        [above @ .., "lib" | "main" | "mod"] => above,
        modules => modules,
    };
    Some([&[*package], modules].concat().join("::"))
}

/// Whether the file holds `fn NAME` under an attribute that makes a test of it.
pub(super) fn has_test(file: &File, name: &str) -> bool {
    let head = format!("fn {name}(");
    // Most files do not even mention it.
    if !file.is_rust() || !file.text.contains(&head) {
        return false;
    }
    let code = code_only(&file.text);
    code.match_indices(&head).any(|(at, _)| {
        // Comments are blank by now, so directly above a function there are only its attributes.
        let before = &code[..code[..at].rfind('\n').unwrap_or(0)];
        let attributes = before.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        attributes.map_while(|line| line.strip_prefix("#[")).any(is_test_attribute)
    })
}

fn is_test_attribute(attribute: &str) -> bool {
    attribute.starts_with("test]") || attribute.starts_with("tokio::test")
}

fn missing_source(name: &str, files: &[File]) -> Option<(String, String)> {
    let (package, rest) = name.strip_suffix(".rs").and(name.split_once('/'))?;
    let path = format!("crates/{package}/src/{rest}");
    if files.iter().any(|file| file.path == path || file.path == name) {
        return None;
    }
    let fault = format!("names the file `{name}`, and there is no {path}");
    Some((fault, "name the file that holds the guard today, as `crate/file.rs` without its `src/`".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn tree(document: &str) -> Vec<File> {
        vec![
            file("SECURITY.md", document),
            file("crates/inbound/src/lib.rs", "#[test]\nfn at_the_root() {}\n"),
            file("crates/outbound/src/guard/connect.rs", "pub fn reach() {}\n#[test]\nfn dials_once() {}\n"),
            file("crates/outbound/tests/guard/main.rs", "#[test]\nfn in_main() {}\n"),
            file(
                "crates/outbound/tests/guard/rebinding.rs",
                "#[tokio::test(flavor = \"multi_thread\")]\n// Why.\n#[ignore]\nasync fn never_inside() {}\n\nfn not_a_test() {}\n",
            ),
        ]
    }

    fn faults(document: &str) -> Vec<String> {
        violations(&tree(document)).into_iter().map(|v| format!("{}: {} -> {}", v.place, v.fault, v.remedy)).collect()
    }

    #[test]
    fn tests_that_exist_are_found_in_sources_test_folders_and_their_roots() {
        let document = "`crates/outbound/tests/guard/main.rs`
            | a | `outbound/guard/connect.rs` | `outbound::guard::rebinding::never_inside` |
            `outbound::guard::connect::dials_once`, `outbound::guard::in_main`, `inbound::at_the_root`\n";
        assert_eq!(faults(document), Vec::<String>::new());
    }

    #[test]
    fn a_test_that_was_deleted_or_is_none_is_named_with_its_line() {
        let remedy = "name the test that shows the guard today, or write \"no test yet\"";
        for gone in ["never_was", "not_a_test", "never_insid"] {
            let name = format!("outbound::guard::rebinding::{gone}");
            let expected = format!("SECURITY.md:2: names the test `{name}`, which does not exist -> {remedy}");
            assert_eq!(faults(&format!("`inbound::at_the_root`\n`{name}`\n")), [expected]);
        }
    }

    #[test]
    fn a_test_that_moved_is_named_with_its_new_module() {
        let found = faults("`outbound::guard::limits::never_inside`");
        let remedy = "the test is in another module: write `outbound::guard::rebinding::never_inside`";
        assert!(found.len() == 1 && found[0].ends_with(remedy), "{found:?}");
    }

    #[test]
    fn a_source_file_that_does_not_exist_is_named() {
        let found = faults("`outbound/guard/gone.rs` shown by `inbound::at_the_root`");
        assert!(found.len() == 1 && found[0].contains("there is no crates/outbound/src/guard/gone.rs"), "{found:?}");
    }

    #[test]
    fn a_document_without_any_test_is_refused_and_other_code_in_it_is_fine() {
        let plain = "`chancery serve`, `[limits]`, `limits.body_bytes`, `::1`, `a::<b>`, `/healthz`, `Cargo.lock`\n";
        let found = faults(plain);
        assert!(found.len() == 1 && found[0].contains("names no test at all"), "{found:?}");
        assert!(violations(&[file("README.md", "`a::b`")]).is_empty());
    }
}
