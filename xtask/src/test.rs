//! `cargo xtask test`: everything a change must pass, one step after the other, stopping at the first that fails.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::costs::{CostMeter, StepCost, TestTime, report, show};
use crate::{cargo, check, facade, features, interop, package_lists, packages, test_binaries, tools};

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
    /// What its parts cost, if it has some; they stand for the step in the table of the dearest.
    pub parts: Vec<StepCost>,
    /// How long its tests ran.
    pub tests: Vec<TestTime>,
}

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let step = |name, arguments: &'static [&'static str]| TestStep { name, run: Box::new(move || run_cargo(root, arguments)) };
    let steps = vec![
        TestStep { name: "format", run: Box::new(|| run_format(root)) },
        TestStep { name: "lock files", run: Box::new(|| check_lock_files(root)) },
        step("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
        TestStep { name: "features", run: Box::new(|| features::check_builds(root).map(passed)) },
        TestStep { name: "public items", run: Box::new(|| facade::check(root).map(passed)) },
        TestStep { name: "packages", run: Box::new(|| package_lists::check(root).map(passed)) },
        TestStep { name: "house rules", run: Box::new(|| Ok(passed(check::run(root)? == ExitCode::SUCCESS))) },
        TestStep { name: "generated code", run: Box::new(|| run_cargo(root, &cargo::codegen_arguments(true))) },
        TestStep { name: "licences, bans and sources", run: Box::new(|| run_deny(root)) },
        TestStep { name: "programs of others", run: Box::new(|| interop::fetch_for_tests(root).map(|()| passed(true))) },
        TestStep { name: "tests", run: Box::new(|| test_binaries::run_all(root)) },
    ];
    Ok(run_steps("test", steps))
}

/// Workspaces of their own, because of what they depend on. Their tests run from ours; their format and lock files are checked here.
const OUTSIDE: [&str; 5] = ["adapters/a2a-sdk", "adapters/rvagent", "fuzz", "tests/interop/rust_0_2", "tests/interop/rvagent"];

fn run_format(root: &Path) -> Result<StepOutcome> {
    let mut all = run_cargo(root, &["fmt", "--all", "--check"])?;
    for folder in OUTSIDE {
        all.passed &= run_cargo(&root.join(folder), &["fmt", "--check"])?.passed;
    }
    Ok(all)
}

/// The workspaces in [`OUTSIDE`] build crates of ours, so a dependency that changes here changes their lock files.
/// Cargo runs in our folder: the one of `fuzz` has a config with flags that only a nightly compiler accepts.
fn check_lock_files(root: &Path) -> Result<StepOutcome> {
    let mut all = passed(true);
    let mut outdated = Vec::new();
    for folder in OUTSIDE {
        let manifest = format!("{folder}/Cargo.toml");
        if !run_cargo(root, &["fetch", "--quiet", "--locked", "--manifest-path", &manifest])?.passed {
            outdated.push(folder);
        }
    }
    if !outdated.is_empty() {
        all.passed = false;
        all.note = Some(format!("run `cargo fetch` in {} and commit the Cargo.lock", outdated.join(", ")));
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
    StepOutcome { passed, ..StepOutcome::default() }
}

/// Runs the steps in order under a heading each; the last line printed says how it all ended.
pub(crate) fn run_steps(title: &str, steps: Vec<TestStep<'_>>) -> ExitCode {
    let start = CostMeter::start();
    let count = steps.len();
    let (mut notes, mut costs, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    let mut failure = None;
    for (number, step) in (1..).zip(steps) {
        let name = step.name;
        println!("\n== {number}/{count} {name}");
        let meter = CostMeter::start();
        let outcome =
            (step.run)().unwrap_or_else(|error| StepOutcome { note: Some(format!("{error:#}")), ..StepOutcome::default() });
        let cost = meter.stop(name);
        let took = show(cost.wall);
        notes.extend(outcome.note);
        tests.extend(outcome.tests);
        if outcome.parts.is_empty() {
            costs.push(cost)
        } else {
            costs.extend(outcome.parts)
        }
        if !outcome.passed {
            failure = Some(format!("FAILED at step {number} of {count}, {name}, after {took}"));
            break;
        }
        println!("-- {name}: passed in {took}");
    }
    let total = start.stop(title);
    println!("{}", report(&costs, &tests, &total));
    let summary = failure.clone().unwrap_or_else(|| format!("all {count} steps passed in {}", show(total.wall)));
    println!("{}", last_line(title, &summary, &notes));
    if failure.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn last_line(title: &str, summary: &str, notes: &[String]) -> String {
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    format!("xtask {title}: {summary}{notes}")
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
    }
}
