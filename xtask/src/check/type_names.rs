//! A type name says what the type is: it occurs once in the workspace, and it is no word that fits every type.

use std::collections::BTreeMap;

use super::Violation;
use super::rust_text::code_only;
use super::unwraps::test_blocks;
use crate::tree::File;

/// Words that say nothing about the type they name.
const REFUSED: [&str; 11] = ["Kept", "Held", "Said", "Told", "Asked", "Shown", "Written", "Place", "What", "Which", "How"];

/// One declaration of a type.
struct Declaration<'a> {
    name: String,
    path: &'a str,
    line: usize,
    /// Whether other modules can name it.
    visible: bool,
}

pub(super) fn violations(files: &[File]) -> Vec<Violation> {
    let declared: Vec<Declaration<'_>> = files.iter().filter(|file| is_checked(&file.path)).flat_map(declarations).collect();
    let mut violations = Vec::new();
    let mut by_name: BTreeMap<&str, Vec<&Declaration<'_>>> = BTreeMap::new();
    for declaration in &declared {
        if REFUSED.contains(&declaration.name.as_str()) {
            violations.push(Violation {
                rule: "type names",
                place: format!("{}:{}", declaration.path, declaration.line),
                fault: format!("calls a type `{}`, which says nothing about it", declaration.name),
                remedy: "name what the type is, so that a reader of no other file understands it".to_owned(),
            });
        } else if declaration.visible && !declaration.path.starts_with("crates/wire/") {
            by_name.entry(&declaration.name).or_default().push(declaration);
        }
    }
    for (name, all) in by_name {
        let Some((first, others)) = all.split_first() else { continue };
        violations.extend(others.iter().map(|other| Violation {
            rule: "type names",
            place: format!("{}:{}", other.path, other.line),
            fault: format!("declares `{name}`, which {}:{} declares too", first.path, first.line),
            remedy: "say in the name what tells the two apart, or use one type for both".to_owned(),
        }));
    }
    violations
}

/// Sources of programs and libraries. The codecs of `wire` are exempt from doubles: each version has types for the same objects.
fn is_checked(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    let source = matches!(names[..], ["crates", _, "src", ..] | ["benches" | "xtask", "src", ..]);
    let skipped = names.contains(&"tests") || names.contains(&"generated") || path.ends_with("/tests.rs");
    // A file that stands in for another in builds without its feature has the names of that file.
    let skipped = skipped || path.ends_with("_absent.rs");
    source && path.ends_with(".rs") && !skipped
}

fn declarations(file: &File) -> Vec<Declaration<'_>> {
    let code = code_only(&file.text);
    let tests = test_blocks(&code);
    let mut start = 0;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(code.split_inclusive('\n')) {
        let at = start + line.len() - line.trim_start().len();
        start += line.len();
        if !tests.iter().any(|block| block.contains(&at))
            && let Some((name, visible)) = declared_in(line)
        {
            found.push(Declaration { name, path: &file.path, line: number, visible });
        }
    }
    found
}

/// The type that a line declares, and whether it says `pub` in any form.
fn declared_in(line: &str) -> Option<(String, bool)> {
    let trimmed = line.trim_start();
    let (visible, rest) = match trimmed.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => (true, rest.split_once(')')?.1.trim_start()),
        Some(rest) if rest.starts_with(' ') => (true, rest.trim_start()),
        _ => (false, trimmed),
    };
    let (keyword, rest) = rest.split_once(' ')?;
    // An indented `type` belongs to a trait or to its implementation.
    let is_type = matches!(keyword, "struct" | "enum" | "trait" | "union") || keyword == "type" && trimmed.len() == line.len();
    let name: String = rest.chars().take_while(|c| *c == '_' || c.is_alphanumeric()).collect();
    (is_type && name.starts_with(char::is_uppercase)).then_some((name, visible))
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| file(path, *text)).collect();
        violations(&files).into_iter().map(|violation| format!("{}: {}", violation.place, violation.fault)).collect()
    }

    #[test]
    fn a_visible_name_that_stands_twice_is_refused_and_both_places_are_named() {
        let found = faults(&[
            ("crates/core/src/a.rs", "pub struct Lane;\n"),
            ("crates/store/src/b.rs", "//! B.\n\npub(crate) enum Lane {}\n"),
        ]);
        assert_eq!(found, ["crates/store/src/b.rs:3: declares `Lane`, which crates/core/src/a.rs:1 declares too"]);
    }

    #[test]
    fn private_types_tests_and_the_codecs_may_repeat_a_name() {
        let found = faults(&[
            ("crates/core/src/a.rs", "pub struct Lane;\n"),
            ("crates/store/src/b.rs", "struct Lane;\n#[cfg(test)]\nmod tests {\n    pub struct Lane;\n}\n"),
            ("crates/wire/src/c.rs", "pub struct Lane;\n"),
            ("crates/core/tests/d.rs", "pub struct Lane;\n"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn words_that_fit_every_type_are_refused_in_private_too() {
        let found = faults(&[("crates/wire/src/a.rs", "struct Kept;\n"), ("xtask/src/b.rs", "pub(crate) type Place = u8;\n")]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn associated_types_and_words_in_comments_are_no_declarations() {
        let text = "// pub struct Lane;\nimpl Iterator for A {\n    type Item = u8;\n}\npub trait Store {\n    type Lane;\n}\n";
        assert!(faults(&[("crates/core/src/a.rs", text), ("crates/core/src/b.rs", "pub struct Lane;\n")]).is_empty());
    }
}
