//! `cargo xtask soak`: the long tests, in release builds, with the counts the promises are stated in.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cargo;
use crate::interop::{self, FRAMEWORKS};
use crate::tally::run_tests;
use crate::test::{TestStep, run_steps};

/// Tests read this and use full counts when it is `1`; without it they use the reduced ones of CI.
const FULL_COUNTS: &str = "CHANCERY_SOAK";

/// The set whose programs have to be fetched first.
const FRAMEWORK_SET: &str = "frameworks";

/// One `cargo test` call of the soak.
struct Set {
    name: &'static str,
    package: &'static str,
    /// The integration test binary, as `--test` takes it; nothing means every target of the package.
    binary: Option<&'static str>,
    /// Only tests whose path contains this; the empty word means all.
    filter: &'static str,
}

/// The sets, in the order they run. What the full counts are stands beside each test, as `full_counts(reduced, full)`.
const SETS: &[Set] = &[
    Set { name: "crash", package: "chancery", binary: Some("it"), filter: "tasks::crash::" },
    Set { name: "probes", package: "chancery", binary: Some("it"), filter: "operating::probes::" },
    Set { name: "simulation", package: "chancery-core", binary: Some("it"), filter: "task_simulation::" },
    Set { name: "push-simulation", package: "chancery-core", binary: Some("it"), filter: "push::simulation::" },
    Set { name: "push-crowds", package: "chancery-core", binary: Some("it"), filter: "push::crowds::" },
    Set { name: "push", package: "chancery", binary: Some("it"), filter: "push::failing_receivers::" },
    Set { name: "push-faults", package: "chancery", binary: Some("it"), filter: "push::faults::" },
    Set { name: "disk", package: "chancery", binary: Some("it"), filter: "tasks::disk::damaged::" },
    Set { name: "lanes", package: "chancery-rules", binary: Some("it"), filter: "push_lane::no_schedule" },
    Set { name: "evidence", package: "chancery-evidence", binary: Some("it"), filter: "adapter::properties::" },
    Set { name: FRAMEWORK_SET, package: "chancery", binary: Some("interop"), filter: "framework_matrix::" },
];

impl Set {
    fn arguments(&self) -> Vec<&'static str> {
        let mut arguments = vec!["test", "--release", "--locked", "-p", self.package];
        if let Some(binary) = self.binary {
            arguments.extend(["--test", binary]);
        }
        if !self.filter.is_empty() {
            arguments.push(self.filter);
        }
        arguments.extend(["--", "--nocapture"]);
        arguments
    }
}

pub(crate) fn run(root: &Path, only: Option<&str>) -> Result<ExitCode> {
    let steps: Vec<TestStep<'_>> = SETS
        .iter()
        .filter(|set| only.is_none_or(|only| set.name.contains(only)))
        .map(|set| TestStep {
            name: set.name,
            run: Box::new(move || {
                let mut command = cargo::command(root);
                if set.name == FRAMEWORK_SET {
                    interop::fetch_frameworks(root, &[])?;
                }
                run_tests(set.name, command.args(set.arguments()).env(FULL_COUNTS, "1").env(FRAMEWORKS, "all"))
            }),
        })
        .collect();
    if steps.is_empty() {
        let names: Vec<_> = SETS.iter().map(|set| set.name).collect();
        bail!("no soak set is named like that; there are: {}", names.join(", "));
    }
    Ok(run_steps("soak", steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_names_its_package_its_binary_and_its_filter() {
        let set = Set { name: "crash", package: "chancery", binary: Some("it"), filter: "tasks::crash::" };
        let expected = "test --release --locked -p chancery --test it tasks::crash:: -- --nocapture";
        assert_eq!(set.arguments().join(" "), expected);
    }

    #[test]
    fn the_frameworks_have_a_set() {
        let set = SETS.iter().find(|set| set.name == FRAMEWORK_SET).expect("there is a set of this name");
        let expected = "test --release --locked -p chancery --test interop framework_matrix:: -- --nocapture";
        assert_eq!(set.arguments().join(" "), expected);
    }

    #[test]
    fn a_name_that_chooses_nothing_is_an_error() {
        assert!(run(Path::new("."), Some("no such set")).is_err());
    }
}
