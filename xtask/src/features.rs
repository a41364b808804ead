//! The builds that docs/embedding.md names: `cargo xtask test` checks that each of them compiles.

use std::path::Path;

use anyhow::{Context, Result};

use crate::cargo;

/// The page that lists every feature of the facade.
pub(crate) const PAGE: &str = "docs/embedding.md";

/// Features of the facade that are built alone. `cli` has all of them and is built by every other step.
pub(crate) const ALONE: [&str; 6] = ["grpc", "memory-tier", "policy-cel", "postgres", "schemas", "swp"];

/// Checks the smallest build and each feature alone, and runs the tests of the smallest build.
pub(crate) fn check_builds(root: &Path) -> Result<bool> {
    let mut passed = run(root, &["test", "--test", "embedding", "--no-default-features"])?;
    for feature in ALONE {
        passed = passed && lint(root, &["--features", feature])?;
    }
    Ok(passed && lint(root, &[])?)
}

/// Clippy and not `cargo check`, so that warnings count in our crates and no flag rebuilds the others.
fn lint(root: &Path, features: &[&str]) -> Result<bool> {
    run(root, &[&["clippy", "--lib", "--no-default-features"], features, &["--", "-D", "warnings"]].concat())
}

fn run(root: &Path, arguments: &[&str]) -> Result<bool> {
    let mut command = cargo::command(root);
    let (verb, rest) = arguments.split_at(1);
    command.args(verb).args(["--package", "chancery", "--locked", "--quiet"]).args(rest);
    Ok(command.status().context("cannot start cargo")?.success())
}
