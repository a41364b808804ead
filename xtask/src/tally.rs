//! Runs `cargo test`, counts what the test programs tell, and looks again at the few that failed.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::test::Outcome;

/// So many tests may fail beside others and pass alone. More are no accident.
const SECOND_LOOKS_MOST: usize = 3;

/// Runs `cargo test`, and what failed once more, alone. Many of these tests start processes, kill them and wait for what comes of
/// it, beside others that do the same: what passes alone is named in the last line, to be mended, and does not hold up a change
/// that has nothing to do with it. What fails alone too has failed.
pub(crate) fn run_twice(command: impl Fn() -> Command) -> Result<Outcome> {
    let (ended, first) = tell(&mut command())?;
    if ended || !first.is_worth_a_second_look() {
        return Ok(first.outcome(ended));
    }
    println!("\n-- failed, and is run once more, alone: {}", first.failed_names.join(", "));
    let (ended, second) = tell(command().args(["--", "--exact", "--test-threads=1"]).args(&first.failed_names))?;
    let passed = ended && second.failed == 0 && second.passed >= first.failed;
    let which = first.failed_names.join(", ");
    let note = if passed { format!("{first}; passed alone: {which}") } else { format!("{first}; failed alone too: {which}") };
    Ok(Outcome { passed, note: Some(note) })
}

/// Runs `cargo test` on this terminal and adds up what its test binaries report. A run without a single test is a failure,
/// because it proves nothing.
pub(crate) fn run_tests(command: &mut Command) -> Result<Outcome> {
    let (ended, tally) = tell(command)?;
    Ok(tally.outcome(ended))
}

/// Runs tests, and answers whether they ended well and what they told.
fn tell(command: &mut Command) -> Result<(bool, Tally)> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo test")?;
    let mut tally = Tally::default();
    if let Some(stdout) = child.stdout.take() {
        // Split by bytes: a test may print anything, and its noise must not end the run.
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            tally.add(&line);
        }
    }
    Ok((child.wait()?.success(), tally))
}

/// The sum of the `test result:` lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    failed_names: Vec<String>,
    /// Test programs that have begun and not ended.
    under_way: i64,
}

impl Tally {
    fn outcome(&self, ended_well: bool) -> Outcome {
        Outcome { passed: ended_well && self.passed > 0 && self.failed == 0, note: Some(self.to_string()) }
    }

    /// Few have failed, all of them are known by name, and no program broke off, which does not say what it was at.
    fn is_worth_a_second_look(&self) -> bool {
        let names = self.failed_names.len();
        (1..=SECOND_LOOKS_MOST).contains(&names) && names as u64 == self.failed && self.under_way == 0
    }

    fn add(&mut self, line: &str) {
        if line.strip_prefix("running ").is_some_and(|line| line.ends_with(" tests") || line.ends_with(" test")) {
            self.under_way += 1;
        }
        if let Some(name) = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED")) {
            self.failed_names.push(name.trim_end_matches(" - should panic").to_owned());
        }
        let Some(results) = line.strip_prefix("test result: ") else {
            return;
        };
        self.under_way -= 1;
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
        let Self { passed, failed, ignored, .. } = self;
        write!(f, "{passed} tests passed, {failed} failed, {ignored} ignored")
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
            "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ] {
            tally.add(line);
        }
        assert_eq!(tally.to_string(), "16 tests passed, 2 failed, 3 ignored");
    }

    fn shell(script: &str) -> Outcome {
        run_tests(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn a_test_run_fails_when_it_says_so_when_it_crashes_and_when_nothing_ran() {
        let ok = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        assert!(shell(ok).passed);
        assert!(!shell(&format!("{ok}; exit 101")).passed);
        assert!(!shell("echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'").passed);
        assert!(!shell("echo 'test result: ok. 0 passed; 0 failed; 0 ignored'").passed);
    }

    /// What a first and a second run print, and how the first ends; the second is told what to run.
    fn twice(first: &str, second: &str) -> Outcome {
        let script = format!(r#"if [ "$1" = -- ]; then {second}; else {first}; fi"#);
        run_twice(|| {
            let mut command = Command::new("sh");
            command.args(["-c", &script, "tests"]);
            command
        })
        .unwrap()
    }

    #[test]
    fn what_failed_is_run_once_more_alone_and_named() {
        let one = "echo 'running 10 tests'; echo 'test a::b ... FAILED'; echo 'test result: FAILED. 9 passed; 1 failed; 0 ignored'; exit 101";
        let alone = r#"[ "$*" = '-- --exact --test-threads=1 a::b' ] && echo 'test result: ok. 1 passed; 0 failed; 0 ignored'"#;
        let outcome = twice(one, alone);
        assert_eq!(outcome.note.as_deref(), Some("9 tests passed, 1 failed, 0 ignored; passed alone: a::b"));
        assert!(outcome.passed);
        for fails in [
            "echo 'test a::b ... FAILED'; echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; exit 101",
            "echo 'test result: ok. 0 passed; 0 failed; 0 ignored'",
            "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'; exit 101",
        ] {
            let outcome = twice(one, fails);
            assert!(!outcome.passed && outcome.note.unwrap().ends_with("failed alone too: a::b"), "{fails}");
        }
    }

    #[test]
    fn what_has_no_name_or_too_many_is_not_looked_at_again() {
        let ok = "echo 'test result: ok. 9 passed; 0 failed; 0 ignored'";
        let failed = |count: usize| {
            let names: String = std::iter::once("echo 'running 9 tests'; ".to_owned())
                .chain((0..count).map(|name| format!("echo 'test {name} ... FAILED'; ")))
                .collect();
            format!("{names} echo 'test result: FAILED. 9 passed; {count} failed; 0 ignored'; exit 101")
        };
        assert!(twice(&failed(SECOND_LOOKS_MOST), ok).passed);
        assert!(!twice(&failed(SECOND_LOOKS_MOST + 1), ok).passed);
        assert!(!twice("exit 101", ok).passed, "it crashed");
        let crashed = format!("echo 'running 1 test'; {}", failed(1));
        assert!(!twice(&crashed, ok).passed, "one failed, and something else crashed");
        let unnamed = failed(1).replace("1 failed", "2 failed");
        assert!(!twice(&unnamed, ok).passed, "nobody knows what else failed");
        assert!(twice(ok, "exit 1").passed, "nothing is run twice that passed");
    }

    #[test]
    fn output_that_is_not_text_does_not_end_the_run() {
        assert!(shell("printf '\\377\\n'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'").passed);
    }
}
