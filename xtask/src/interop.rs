//! `cargo xtask interop`: what others wrote, against the gateway, with the table of what works.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::cargo;

/// Tests read this: the names of the frameworks to try, or `all`; without it they try those that CI has time for.
pub(crate) const FRAMEWORKS: &str = "CHANCERY_FRAMEWORKS";

#[derive(Subcommand)]
pub(crate) enum Suite {
    /// Agent frameworks: each server and client, bare and through the gateway
    Frameworks {
        /// Names of folders in tests/interop/frameworks; all of them without a name
        names: Vec<String>,
    },
}

pub(crate) fn run(root: &Path, suite: &Suite) -> Result<ExitCode> {
    let Suite::Frameworks { names } = suite;
    let mut command = cargo::command(root);
    command.args(["test", "--locked", "-p", "chancery", "--test", "interop_frameworks", "--", "--nocapture"]);
    cargo::finish(command.env(FRAMEWORKS, choice(names)))
}

fn choice(names: &[String]) -> String {
    if names.is_empty() { "all".to_owned() } else { names.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_frameworks_are_tried_unless_some_are_named() {
        assert_eq!(choice(&[]), "all");
        assert_eq!(choice(&["beeai".to_owned(), "crewai".to_owned()]), "beeai,crewai");
    }
}
