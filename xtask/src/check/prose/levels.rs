//! A log message that begins with a fault is a warning or an error, not information.

use super::super::rust_text::{code_only, strings};
use super::super::unwraps::test_blocks;
use super::Violation;
use crate::tree::File;

/// What a message about a fault begins with.
const FAULTS: &[&str] = &["refused", "rejected", "cannot", "failed", "could not"];

pub(super) fn violations(file: &File) -> Vec<Violation> {
    let text = &file.text;
    let code = code_only(text);
    let (tests, literals) = (test_blocks(&code), strings(text));
    let mut violations = Vec::new();
    for (at, opening) in code.match_indices("info!(").filter(|(at, _)| !tests.iter().any(|block| block.contains(at))) {
        let end = at + opening.len() + closing(&code[at + opening.len()..]);
        for literal in literals.iter().filter(|literal| (at..end).contains(&literal.at)) {
            let first = literal.body.split_whitespace().next().unwrap_or_default();
            if literal.body.contains(' ') && FAULTS.iter().any(|fault| literal.body.starts_with(fault)) {
                violations.push(Violation {
                    rule: "prose",
                    place: format!("{}:{}", file.path, text[..literal.at].matches('\n').count() + 1),
                    fault: format!("logs a message that begins with \"{first}\" as INFO"),
                    remedy: "log a fault with warn! or error!".to_owned(),
                });
            }
        }
    }
    violations
}

/// The length of the arguments up to the parenthesis that closes them.
fn closing(arguments: &str) -> usize {
    let mut depth = 1_usize;
    for (at, c) in arguments.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    arguments.len()
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::file;
    use super::*;

    #[test]
    fn faults_are_not_logged_as_information() {
        let found = |text: &str| violations(&file("crates/core/src/a.rs", text)).into_iter().map(|v| v.place).collect::<Vec<_>>();
        assert_eq!(found("info!(\n    x = f(1),\n    \"rejected a call\"\n);"), ["crates/core/src/a.rs:3"]);
        assert_eq!(found("tracing::info!(%error, \"cannot read {a}\", a);"), ["crates/core/src/a.rs:1"]);
        for fine in [
            "warn!(\"cannot read\");",
            "info!(\"read a file\"); f(\"cannot read\");",
            "info!(why = \"failed\", \"ended a task\");",
        ] {
            assert_eq!(found(fine), [""; 0], "{fine}");
        }
    }
}
