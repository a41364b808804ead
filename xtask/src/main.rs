//! What a developer runs beside cargo: `check`, `facade`, `map`, `codegen`, `test`, `interop`, `soak` and `bench`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod cargo;
mod check;
mod costs;
mod facade;
mod features;
mod fetch;
mod interop;
mod map;
mod package_lists;
mod packages;
mod processes;
mod roster;
mod soak;
mod tally;
mod test;
mod test_binaries;
mod tools;
mod tree;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "What a developer runs beside cargo")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Hold the tree against the house rules: layers, sizes, openings, paths, lock files
    Check,
    /// Hold the library against what programs need: a path for every type, documentation for every item
    Facade,
    /// Print every Rust file with the sentence it opens with
    Map,
    /// Compile the schemas of crates/wire/proto into crates/wire/src/pb/generated
    Codegen {
        /// Write nothing; fail when the committed code differs from what the schemas give
        #[arg(long)]
        check: bool,
    },
    /// Run everything a change must pass: format, lints, check, codegen, licences, tests; print what was dear
    Test,
    /// Fetch the programs of others that tests run; with a suite, also run it and print what works
    Interop {
        #[command(subcommand)]
        suite: Option<interop::Suite>,
    },
    /// Run the long tests with the full counts
    Soak {
        /// Run only the sets whose name contains this word
        only: Option<String>,
    },
    /// Measure against a bare axum handler in the same run
    Bench {
        /// Passed on to the bench program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    if let Some(code) = facade::run_as_rustdoc() {
        return code;
    }
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    let root = repository_root()?;
    match command {
        Command::Check => check::run(&root),
        Command::Facade => Ok(if facade::check(&root)? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        Command::Map => map::run(&root),
        Command::Codegen { check } => cargo::codegen(&root, check),
        Command::Test => test::run(&root),
        Command::Interop { suite } => interop::run(&root, suite.as_ref()),
        Command::Soak { only } => soak::run(&root, only.as_deref()),
        Command::Bench { arguments } => cargo::bench(&root, &arguments),
    }
}

/// The folder above this package, wherever the caller's shell happens to stand.
fn repository_root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).context("the xtask package has no parent folder")
}
