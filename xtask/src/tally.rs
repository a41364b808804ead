//! Counts what test programs report.

use std::fmt;
use std::process::Command;

use anyhow::Result;

use crate::test::StepOutcome;
use crate::watch::{WatchLimits, watch};

/// Runs `cargo test` for as long as it takes and adds up what its test binaries report. A run without a single test is a failure,
/// because it proves nothing.
pub(crate) fn run_tests(name: &str, command: &mut Command) -> Result<StepOutcome> {
    let mut tally = Tally::default();
    let run = watch(name, command, Vec::new(), WatchLimits::UNBOUNDED, |line| tally.add(line))?;
    Ok(StepOutcome { passed: run.succeeded && tally.is_good(), note: Some(tally.to_string()), ..StepOutcome::default() })
}

/// The sum of the `test result:` lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    failed_names: Vec<String>,
}

impl Tally {
    /// Whether tests passed and none failed.
    pub(crate) fn is_good(&self) -> bool {
        self.passed > 0 && self.failed == 0
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    pub(crate) fn add(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED")) {
            self.failed_names.push(name.trim_end_matches(" - should panic").to_owned());
        }
        let Some(results) = line.strip_prefix("test result: ") else {
            return;
        };
        let counts = results.split_once(". ").map_or(results, |(_, counts)| counts);
        for count in counts.split(';') {
            match count.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "ignored")) => self.ignored += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, ignored, failed_names } = self;
        write!(f, "{passed} tests passed, {failed} failed, {ignored} ignored")?;
        if failed_names.is_empty() { Ok(()) } else { write!(f, ": {}", failed_names.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_test_binaries_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "test a ... ok",
            "test b::c ... FAILED",
            "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ] {
            tally.add(line);
        }
        assert_eq!(tally.to_string(), "16 tests passed, 2 failed, 3 ignored: b::c");
    }

    fn shell(script: &str) -> StepOutcome {
        run_tests("sh", Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn a_test_run_fails_when_it_says_so_when_it_crashes_and_when_nothing_ran() {
        let ok = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        assert!(shell(ok).passed);
        assert!(!shell(&format!("{ok}; exit 101")).passed);
        assert!(!shell("echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'").passed);
        assert!(!shell("echo 'test result: ok. 0 passed; 0 failed; 0 ignored'").passed);
    }

    #[test]
    fn output_that_is_not_text_does_not_end_the_run() {
        assert!(shell("printf '\\377\\n'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'").passed);
    }
}
