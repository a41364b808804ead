//! Every test that the README names exists, so that no promise in it outlives its proof.

use super::Violation;
use super::threat_rows::{backticked, has_test};
use crate::tree::File;

const DOCUMENT: &str = "README.md";
/// Names of tests are sentences: with fewer underscores a name is a key, a method or a variable.
const LEAST_UNDERSCORES: usize = 4;

pub(super) fn violations(files: &[File]) -> Vec<Violation> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else { return Vec::new() };
    let mut violations = Vec::new();
    for (number, line) in document.text.lines().enumerate() {
        let missing = backticked(line).filter(|name| is_test_name(name) && !files.iter().any(|file| has_test(file, name)));
        violations.extend(missing.map(|name| Violation {
            rule: "promises",
            place: format!("{DOCUMENT}:{}", number + 1),
            fault: format!("names the test `{name}`, which does not exist"),
            remedy: "name the test that shows the promise today, by its function".to_owned(),
        }));
    }
    violations
}

fn is_test_name(text: &str) -> bool {
    let is_word = |byte: u8| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(is_word) && text.matches('_').count() >= LEAST_UNDERSCORES
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn faults(readme: &str) -> Vec<String> {
        let test = file(
            "crates/core/tests/a.rs",
            "#[tokio::test]\nasync fn it_is_kept_over_kills() {}\nfn it_is_not_a_test_at_all() {}\n",
        );
        violations(&[file("README.md", readme), test]).into_iter().map(|v| format!("{}: {}", v.place, v.fault)).collect()
    }

    #[test]
    fn a_promise_names_a_test_that_exists() {
        assert!(faults("| kept | `it_is_kept_over_kills` |\n").is_empty());
        for gone in ["it_is_not_a_test_at_all", "it_was_kept_over_kills"] {
            let expected = format!("README.md:2: names the test `{gone}`, which does not exist");
            assert_eq!(faults(&format!("# Title\n`{gone}`\n")), [expected]);
        }
    }

    #[test]
    fn keys_commands_and_variables_are_not_taken_for_tests() {
        assert!(faults("`max_cost_age_hours`, `limits.a_b_c_d_e`, `chancery a_b_c_d_e`, `A_B_C_D_E`\n").is_empty());
        assert!(violations(&[]).is_empty());
    }
}
