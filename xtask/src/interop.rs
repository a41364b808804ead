//! `cargo xtask interop`: fetches what others wrote for the tests that need it, and tries frameworks against the gateway.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::cargo;
use crate::fetch::{self, Fetcher};

/// Tests read this: the names of the frameworks to try, or `all`; without it they try those that CI has time for.
pub(crate) const FRAMEWORKS: &str = "CHANCERY_FRAMEWORKS";

/// The frameworks that CI has time for. A test fails if this is not its own list.
const IN_CI: [&str; 3] = ["google_adk", "pydantic_ai", "beeai"];

#[derive(Subcommand)]
pub(crate) enum Suite {
    /// Agent frameworks: each server and client, bare and through the gateway
    Frameworks {
        /// Names of folders in tests/interop/frameworks; all of them without a name
        names: Vec<String>,
        /// Fetch the frameworks and run nothing
        #[arg(long)]
        fetch_only: bool,
    },
    /// PostgreSQL, which the tests of the store start
    Postgresql,
}

pub(crate) fn run(root: &Path, suite: Option<&Suite>) -> Result<ExitCode> {
    let (names, fetch_only) = match suite {
        Some(Suite::Frameworks { names, fetch_only }) => (names, fetch_only),
        Some(Suite::Postgresql) => return fetch::postgresql().map(|()| ExitCode::SUCCESS),
        None => return fetch_for_tests(root).map(|()| ExitCode::SUCCESS),
    };
    fetch_frameworks(root, names)?;
    if *fetch_only {
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = cargo::command(root);
    command.args(["test", "--locked", "-p", "chancery", "--test", "interop", "framework_matrix::", "--", "--nocapture"]);
    cargo::finish(command.env(FRAMEWORKS, choice(names)))
}

/// Everything that `cargo test --workspace` runs and that others wrote.
pub(crate) fn fetch_for_tests(root: &Path) -> Result<()> {
    fetch::postgresql()?;
    let fetcher = Fetcher::new(root)?;
    fetcher.everything_but_frameworks()?;
    let chosen = std::env::var(FRAMEWORKS).ok();
    fetcher.frameworks(&in_this_run(chosen.as_deref()))
}

/// The frameworks of these names with the clients that call them; all frameworks without a name.
pub(crate) fn fetch_frameworks(root: &Path, names: &[String]) -> Result<()> {
    let fetcher = Fetcher::new(root)?;
    fetcher.clients_of_frameworks()?;
    fetcher.frameworks(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn choice(names: &[String]) -> String {
    if names.is_empty() { "all".to_owned() } else { names.join(",") }
}

/// The reverse of `choice`: names, and none for all of them.
fn in_this_run(choice: Option<&str>) -> Vec<&str> {
    match choice {
        None => IN_CI.to_vec(),
        Some("all") => Vec::new(),
        Some(names) => names.split(',').collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_frameworks_are_tried_unless_some_are_named() {
        assert_eq!(choice(&[]), "all");
        assert_eq!(choice(&["beeai".to_owned(), "crewai".to_owned()]), "beeai,crewai");
    }

    #[test]
    fn the_frameworks_that_the_tests_choose_are_fetched() {
        assert_eq!(in_this_run(None), IN_CI);
        assert_eq!(in_this_run(Some("all")), Vec::<&str>::new());
        assert_eq!(in_this_run(Some("beeai,crewai")), ["beeai", "crewai"]);
        let tests = crate::repository_root().unwrap().join("crates/chancery/tests/interop/framework_matrix.rs");
        let expected = format!("assert_eq!(ci, {IN_CI:?});");
        assert!(std::fs::read_to_string(tests).unwrap().contains(&expected), "framework_matrix.rs has another list: {expected}");
    }
}
