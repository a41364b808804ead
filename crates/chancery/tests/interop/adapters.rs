//! The adapters for agents of other crates pass their own tests, which their own Cargo workspaces keep out of this one.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::machine::MACHINE;
use crate::say;

#[test]
fn the_adapter_for_the_official_sdk_passes_its_tests() {
    passes_its_tests("adapters/a2a-sdk");
}

#[test]
fn the_adapter_for_rvagent_passes_its_tests() {
    passes_its_tests("adapters/rvagent");
}

fn passes_its_tests(folder: &str) {
    let _alone = MACHINE.blocking_write();
    let target = made();
    let tested = cargo(folder, &["test", "--quiet", "--locked", "--offline", "--target-dir", &target.to_string_lossy()]);
    let printed = String::from_utf8_lossy(&tested.stdout);
    let complaint = String::from_utf8_lossy(&tested.stderr);
    assert!(tested.status.success(), "{printed}\n{complaint}\nIf its sources are missing, run `cargo xtask interop`.");
    let passed = passed(&printed);
    assert!(passed > 0, "a run without a single test proves nothing:\n{printed}");
    say(&format!("{passed} tests of {folder} passed\n"));
}

fn cargo(folder: &str, arguments: &[&str]) -> Output {
    let workspace = crate::toolbox::repository().join(folder);
    Command::new(env!("CARGO")).args(arguments).current_dir(workspace).output().expect("cargo starts")
}

/// The folder that the interop drivers are built in too: most of what they need is the same.
fn made() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop/cargo")
}

/// The sum of the `test result: ok. N passed; …` lines.
fn passed(printed: &str) -> u64 {
    let results = printed.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.filter_map(|result| result.split_once(" passed")?.0.parse::<u64>().ok()).sum()
}

#[test]
fn only_tests_that_passed_count() {
    let printed = "running 3 tests\n...\ntest result: ok. 3 passed; 0 failed\n\ntest result: ok. 1 passed; 0 failed\n";
    assert_eq!(passed(printed), 4);
    assert_eq!(passed("test result: FAILED. 2 passed; 1 failed\n"), 0);
    assert_eq!(passed("running 0 tests\n"), 0);
}
