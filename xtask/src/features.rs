//! The builds that docs/embedding.md names: `cargo xtask test` checks that each compiles, and how much it compiles.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cargo;

/// The page that lists every feature of the facade.
pub(crate) const PAGE: &str = "docs/embedding.md";

/// Features of the facade that are built alone. `cli` has all of them and is built by every other step.
pub(crate) const ALONE: [&str; 7] = ["evidence-bundles", "grpc", "memory-tier", "policy-cel", "postgres", "schemas", "swp"];

/// The smallest build compiles fewer packages than this: half of what a node compiled before it had features.
const SMALLEST_BELOW: usize = 160;

/// How the table of the page calls the build without features.
const NO_FEATURE: &str = "none";

/// Checks the smallest build and each feature alone, runs the tests of an embedding program without features, and compares
/// the number of compiled packages with the page.
pub(crate) fn check_builds(root: &Path) -> Result<bool> {
    if !check_counts(root)? {
        return Ok(false);
    }
    let mut passed = run(root, &["build", "--example", "mount", "--no-default-features"])?;
    passed = passed && run(root, &["test", "--test", "embedding", "--no-default-features"])?;
    passed = passed && lint(root, &[])?;
    for feature in ALONE {
        passed = passed && lint(root, &["--features", feature])?;
    }
    Ok(passed)
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

/// Compares the table of the page with what cargo would compile. The first build over its bound, or unlike its row, is named.
fn check_counts(root: &Path) -> Result<bool> {
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let mut counted = Vec::new();
    for feature in [NO_FEATURE].into_iter().chain(ALONE).chain(["cli"]) {
        counted.push((feature, compiled_packages(root, feature)?));
    }
    let faults = count_faults(&page, &counted);
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    Ok(faults.is_empty())
}

/// Counts the packages that cargo compiles: those of the program, of its build scripts and of its macros.
fn compiled_packages(root: &Path, feature: &str) -> Result<usize> {
    let mut command = cargo::command(root);
    command.args(["tree", "--package", "chancery", "--locked", "--no-default-features"]);
    command.args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    if feature != NO_FEATURE {
        command.args(["--features", feature]);
    }
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(distinct(&String::from_utf8_lossy(&output.stdout)))
}

/// The lines of a tree name packages as `NAME VERSION`, with remarks behind.
fn distinct(tree: &str) -> usize {
    let names = tree.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>());
    names.filter(|name| name.len() == 2).collect::<BTreeSet<_>>().len()
}

fn count_faults(page: &str, counted: &[(&str, usize)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (feature, count) in counted {
        if *feature == NO_FEATURE && *count >= SMALLEST_BELOW {
            faults.push(format!("the smallest build compiles {count} packages; it must stay below {SMALLEST_BELOW}"));
        }
        match listed(page, feature) {
            Some(listed) if listed == *count => {}
            Some(listed) => faults.push(format!("{PAGE}: {feature} compiles {count} packages, and its row says {listed}")),
            None => faults.push(format!("{PAGE}: the row of {feature} must end with the number of its packages, {count}")),
        }
    }
    faults
}

/// The number in the last column of a feature's row.
fn listed(page: &str, feature: &str) -> Option<usize> {
    let starts = [format!("| `{feature}` |"), format!("| {feature} |")];
    let row = page.lines().find(|line| starts.iter().any(|start| line.starts_with(start)))?;
    row.trim_end_matches(['|', ' ']).rsplit('|').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_tree_are_counted_once_and_versions_apart() {
        assert_eq!(distinct("a v1.0.0 (/x)\nb v1.0.0\nb v1.0.0 (*)\nb v2.0.0 (proc-macro)\n\n"), 3);
    }

    #[test]
    fn a_row_that_says_another_number_and_a_build_that_grew_are_faults() {
        let page = "| feature | adds | crates |\n|---|---|---|\n| none | the smallest build | 3 |\n| `grpc` | more | 5 |\n";
        assert_eq!(count_faults(page, &[("none", 3), ("grpc", 5)]), Vec::<String>::new());
        assert_eq!(count_faults(page, &[("none", 3), ("grpc", 6), ("swp", 4)]).len(), 2);
        let grown = format!("| none | the smallest build | {SMALLEST_BELOW} |\n");
        assert_eq!(count_faults(&grown, &[("none", SMALLEST_BELOW)]).len(), 1);
    }
}
