//! Small files by agreement: no source file over 400 lines, no function over 120.

use super::Violation;
use super::rust_text::{code_only, functions};
use crate::tree::File;

const MOST_LINES_IN_A_FILE: usize = 400;
const MOST_LINES_IN_A_FUNCTION: usize = 120;

pub(super) fn violations(file: &File) -> Vec<Violation> {
    if !file.is_rust() || !is_source(&file.path) {
        return Vec::new();
    }
    let mut violations = Vec::new();
    let lines = file.text.lines().count();
    if lines > MOST_LINES_IN_A_FILE {
        violations.push(Violation {
            rule: "sizes",
            place: file.path.clone(),
            fault: format!("has {lines} lines, more than {MOST_LINES_IN_A_FILE}"),
            remedy: "split it by what its parts do, a file per verb".to_owned(),
        });
    }
    for function in functions(&code_only(&file.text)) {
        if function.lines > MOST_LINES_IN_A_FUNCTION {
            violations.push(Violation {
                rule: "sizes",
                place: format!("{}:{}", file.path, function.line),
                fault: format!(
                    "the function {} has {} lines, more than {MOST_LINES_IN_A_FUNCTION}",
                    function.name, function.lines
                ),
                remedy: "name its steps and make each a function".to_owned(),
            });
        }
    }
    violations
}

/// The sources of our crates and tools. What a generator wrote is as long as it is.
fn is_source(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    let ours = matches!(names[..], ["crates", _, "src", ..] | ["xtask" | "benches", ..]);
    ours && !names.contains(&"generated")
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        let found = violations(&file(path, text)).into_iter();
        found.map(|v| format!("{} {}", v.place, v.fault)).collect()
    }

    #[test]
    fn a_file_may_have_400_lines_and_not_401() {
        let path = "crates/core/src/admit.rs";
        assert!(faults(path, &"const A: u8 = 0;\n".repeat(400)).is_empty());
        assert_eq!(faults(path, &"const A: u8 = 0;\n".repeat(401)), ["crates/core/src/admit.rs has 401 lines, more than 400"]);
    }

    #[test]
    fn a_function_may_have_120_lines_and_not_121() {
        let of = |lines: usize| format!("\nfn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        assert!(faults("xtask/src/a.rs", &of(120)).is_empty());
        assert_eq!(
            faults("xtask/codegen/src/a.rs", &of(121)),
            ["xtask/codegen/src/a.rs:2 the function f has 121 lines, more than 120"]
        );
    }

    #[test]
    fn generated_code_and_tests_may_be_longer() {
        let long = "const A: u8 = 0;\n".repeat(500);
        assert!(faults("crates/wire/src/pb/generated/a.rs", &long).is_empty());
        assert!(faults("crates/wire/tests/golden.rs", &long).is_empty());
        assert_eq!(faults("crates/wire/src/generator/a.rs", &long).len(), 1);
    }
}
