//! Builds every test binary of the workspace, and runs them one after the other, each watched and measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::cargo;
use crate::costs::{CostMeter, TestTime};
use crate::tally::Tally;
use crate::test::StepOutcome;
use crate::watch::{WatchLimits, list, watch};

/// A test binary as Cargo built it.
#[derive(Debug, PartialEq, Eq)]
struct TestBinary {
    /// The folder of its package and its target: `chancery it`.
    name: String,
    program: PathBuf,
    /// Where Cargo runs it: the folder of its package.
    folder: PathBuf,
}

/// A line that Cargo prints about something it built, as far as it matters here.
#[derive(Deserialize)]
struct BuiltArtifact {
    manifest_path: PathBuf,
    target: BuiltTarget,
    profile: BuiltProfile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct BuiltTarget {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct BuiltProfile {
    test: bool,
}

/// Compiles and runs all tests of the workspace. Everything that fails is named, so one failure does not end the run.
pub(crate) fn run_all(root: &Path) -> Result<StepOutcome> {
    let limits = WatchLimits::from_environment()?;
    let mut outcome = StepOutcome::default();
    let compiling = CostMeter::start();
    let built = build(root)?;
    outcome.parts.push(compiling.stop("compile the tests"));
    let Some(binaries) = built else { return Ok(outcome) };

    let mut all = AllRuns { limits, tally: Tally::default(), faults: Vec::new() };
    for binary in &binaries {
        let names = listed(binary)?;
        let mut command = binary.command();
        all.run(&binary.name, &mut command, names, &mut outcome)?;
    }
    let mut documentation = cargo::command(root);
    documentation.args(["test", "--workspace", "--doc", "--locked", "--no-fail-fast"]);
    all.run("documentation", &mut documentation, Vec::new(), &mut outcome)?;
    outcome.passed = all.faults.is_empty() && all.tally.is_good();
    outcome.note = Some([vec![all.tally.to_string()], all.faults].concat().join("; "));
    Ok(outcome)
}

/// What the runs of all binaries add up to.
struct AllRuns {
    limits: WatchLimits,
    tally: Tally,
    /// Binaries that did not end well. A binary whose tests fail is one of them.
    faults: Vec<String>,
}

impl AllRuns {
    fn run(&mut self, name: &str, command: &mut Command, names: Vec<String>, outcome: &mut StepOutcome) -> Result<()> {
        println!("\n-- {name}");
        let meter = CostMeter::start();
        let failed_before = self.tally.failed();
        let run = watch(name, command, names, self.limits, |line| self.tally.add(line))?;
        outcome.parts.push(meter.stop(&format!("tests: {name}")));
        let full = |test: TestTime| TestTime { name: format!("{name} {}", test.name), wall: test.wall };
        outcome.tests.extend(run.tests.into_iter().map(full));
        let unfinished = list(&run.unfinished);
        if run.exceeded_bound {
            self.faults.push(format!("{name} exceeded its bound, unfinished: {unfinished}"));
        } else if !run.succeeded && self.tally.failed() == failed_before {
            // Where tests failed, the tally names them.
            self.faults.push(format!("{name} ended with an error, unfinished: {unfinished}"));
        }
        Ok(())
    }
}

/// Every test binary, by name; nothing if something does not compile, which Cargo has said by then.
fn build(root: &Path) -> Result<Option<Vec<TestBinary>>> {
    let mut command = cargo::command(root);
    command.args(["test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics"]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo test")?;
    let mut binaries: Vec<_> = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| built(root, line)).collect();
    binaries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(output.status.success().then_some(binaries))
}

fn built(root: &Path, line: &[u8]) -> Option<TestBinary> {
    let artifact: BuiltArtifact = serde_json::from_slice(line).ok()?;
    let program = artifact.executable.filter(|_| artifact.profile.test)?;
    let folder = artifact.manifest_path.parent()?.to_path_buf();
    let package = folder.strip_prefix(root).ok()?.display().to_string();
    let package = package.strip_prefix("crates/").unwrap_or(&package).to_owned();
    let is_integration = artifact.target.kind.iter().any(|kind| kind == "test");
    let target = if is_integration { artifact.target.name } else { format!("{} unit tests", artifact.target.kind.join(" ")) };
    Some(TestBinary { name: format!("{package} {target}"), program, folder })
}

impl TestBinary {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        cargo::without_own_package(&mut command);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// The names of its tests, in the order in which it starts them.
fn listed(binary: &TestBinary) -> Result<Vec<String>> {
    let output = binary.command().args(["--list", "--format", "terse"]).output();
    let output = output.with_context(|| format!("cannot start {}", binary.name))?;
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executables_with_tests_are_taken_from_what_cargo_built() {
        let artifact = |package: &str, kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/r/{package}/Cargo.toml","target":{{"name":"it","kind":["{kind}"]}},
                "profile":{{"test":{test}}},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let name = |line: String| built(Path::new("/r"), line.as_bytes()).map(|binary| binary.name);
        assert_eq!(name(artifact("crates/rules", "test", true, r#""/r/t/it""#)).as_deref(), Some("rules it"));
        assert_eq!(name(artifact("xtask", "bin", true, r#""/r/t/x""#)).as_deref(), Some("xtask bin unit tests"));
        assert_eq!(name(artifact("crates/rules", "lib", true, "null")), None);
        assert_eq!(name(artifact("crates/rules", "example", false, r#""/r/t/e""#)), None);
        assert_eq!(name(r#"{"reason":"build-finished","success":true}"#.to_owned()), None);
    }

    fn all(bound: std::time::Duration) -> AllRuns {
        let limits = WatchLimits { bound: Some(bound), ..WatchLimits::UNBOUNDED };
        AllRuns { limits, tally: Tally::default(), faults: Vec::new() }
    }

    fn shell(all: &mut AllRuns, script: &str) -> StepOutcome {
        let mut outcome = StepOutcome::default();
        all.run("sh", Command::new("sh").args(["-c", script]), vec!["a".to_owned()], &mut outcome).unwrap();
        outcome
    }

    #[test]
    fn each_binary_and_each_test_has_its_cost() {
        let mut runs = all(std::time::Duration::from_secs(60));
        let outcome = shell(&mut runs, "echo 'test a ... ok'; echo 'test result: ok. 1 passed; 0 failed'");
        assert_eq!(outcome.parts[0].name, "tests: sh");
        assert_eq!(outcome.tests[0].name, "sh a");
        assert!(runs.faults.is_empty() && runs.tally.is_good());
    }

    #[test]
    fn a_binary_that_crashes_or_hangs_is_named_and_one_that_fails_only_through_its_tests() {
        let mut runs = all(std::time::Duration::from_secs(60));
        shell(&mut runs, "echo 'test result: FAILED. 0 passed; 1 failed'; exit 101");
        assert!(runs.faults.is_empty() && !runs.tally.is_good());
        shell(&mut runs, "exit 134");
        assert!(
            runs.faults.len() == 1 && runs.faults[0].starts_with("sh ended with an error, unfinished: a ("),
            "{:?}",
            runs.faults
        );
        let mut runs = all(std::time::Duration::from_millis(1));
        shell(&mut runs, "sleep 600 & wait");
        assert!(
            runs.faults.len() == 1 && runs.faults[0].starts_with("sh exceeded its bound, unfinished: a ("),
            "{:?}",
            runs.faults
        );
    }
}
