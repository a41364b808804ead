//! `cargo xtask test`: everything a change must pass, one step after the other, stopping at the first that fails.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::tally::run_tests;
use crate::{cargo, check, packages, tools};

/// One step: its name in headings, and what it does.
pub(crate) struct TestStep<'a> {
    pub name: &'static str,
    pub run: Box<dyn FnOnce() -> Result<StepOutcome> + 'a>,
}

/// How a step ended, and what is worth repeating in the last line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StepOutcome {
    pub passed: bool,
    pub note: Option<String>,
}

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let step = |name, arguments: &'static [&'static str]| TestStep { name, run: Box::new(move || run_cargo(root, arguments)) };
    let steps = vec![
        TestStep { name: "format", run: Box::new(|| run_format(root)) },
        step("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
        TestStep { name: "house rules", run: Box::new(|| Ok(passed(check::run(root)? == ExitCode::SUCCESS))) },
        TestStep { name: "generated code", run: Box::new(|| run_cargo(root, &cargo::codegen_arguments(true))) },
        TestStep { name: "licences, bans and sources", run: Box::new(|| run_deny(root)) },
        TestStep {
            name: "tests",
            run: Box::new(|| {
                // All of them, so that everything that fails is named.
                let mut command = cargo::command(root);
                run_tests(command.args(["test", "--workspace", "--locked", "--no-fail-fast"]))
            }),
        },
    ];
    Ok(run_steps("test", steps))
}

/// Workspaces of their own, because of what they depend on. Their tests run from ours; their format is checked here.
const OUTSIDE: [&str; 5] = ["adapters/a2a-sdk", "adapters/rvagent", "fuzz", "tests/interop/rust_0_2", "tests/interop/rvagent"];

fn run_format(root: &Path) -> Result<StepOutcome> {
    let mut all = run_cargo(root, &["fmt", "--all", "--check"])?;
    for folder in OUTSIDE {
        all.passed &= run_cargo(&root.join(folder), &["fmt", "--check"])?.passed;
    }
    Ok(all)
}

fn run_cargo(root: &Path, arguments: &[&str]) -> Result<StepOutcome> {
    let mut command = cargo::command(root);
    let status = command.args(arguments).status().context("cannot start cargo")?;
    Ok(passed(status.success()))
}

/// Advisories need a database that not every machine can reach, so they are not part of this.
fn run_deny(root: &Path) -> Result<StepOutcome> {
    let target = packages::read(root)?.target_directory;
    let status = Command::new(tools::cargo_deny(root, &target)?)
        .current_dir(root)
        .args(["--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"])
        .status()
        .context("cannot start cargo-deny")?;
    Ok(passed(status.success()))
}

fn passed(passed: bool) -> StepOutcome {
    StepOutcome { passed, note: None }
}

/// Runs the steps in order under a heading each; the last line printed says how it all ended.
pub(crate) fn run_steps(title: &str, steps: Vec<TestStep<'_>>) -> ExitCode {
    let start = Instant::now();
    let count = steps.len();
    let mut notes = Vec::new();
    for (number, step) in (1..).zip(steps) {
        let name = step.name;
        println!("\n== {number}/{count} {name}");
        let begun = Instant::now();
        let outcome = (step.run)().unwrap_or_else(|error| StepOutcome { passed: false, note: Some(format!("{error:#}")) });
        let took = show(begun.elapsed());
        notes.extend(outcome.note);
        if !outcome.passed {
            println!("{}", last_line(title, &format!("FAILED at step {number} of {count}, {name}, after {took}"), &notes));
            return ExitCode::FAILURE;
        }
        println!("-- {name}: passed in {took}");
    }
    let summary = format!("all {count} steps passed in {}", show(start.elapsed()));
    println!("\n{}", last_line(title, &summary, &notes));
    ExitCode::SUCCESS
}

fn last_line(title: &str, summary: &str, notes: &[String]) -> String {
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    format!("xtask {title}: {summary}{notes}")
}

fn show(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 60.. => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn step<'a>(name: &'static str, log: &'a RefCell<Vec<&'static str>>, result: Result<bool>) -> TestStep<'a> {
        TestStep {
            name,
            run: Box::new(move || {
                log.borrow_mut().push(name);
                result.map(passed)
            }),
        }
    }

    #[test]
    fn the_first_failing_step_ends_the_run_with_a_failure() {
        for failure in [Ok(false), Err(anyhow::anyhow!("no such tool"))] {
            let log = RefCell::new(Vec::new());
            let steps = vec![step("a", &log, Ok(true)), step("b", &log, failure), step("c", &log, Ok(true))];
            assert_eq!(run_steps("test", steps), ExitCode::FAILURE);
            assert_eq!(*log.borrow(), ["a", "b"]);
        }
    }

    #[test]
    fn a_run_succeeds_when_every_step_does() {
        let log = RefCell::new(Vec::new());
        let steps = vec![step("a", &log, Ok(true)), step("b", &log, Ok(true))];
        assert_eq!(run_steps("test", steps), ExitCode::SUCCESS);
        assert_eq!(*log.borrow(), ["a", "b"]);
    }

    #[test]
    fn the_last_line_repeats_what_matters() {
        let notes = ["9 tests passed".to_owned()];
        assert_eq!(last_line("test", "FAILED", &notes), "xtask test: FAILED (9 tests passed)");
        assert_eq!(show(Duration::from_millis(1250)), "1.2 s");
        assert_eq!(show(Duration::from_secs(125)), "2 min 05 s");
    }
}
