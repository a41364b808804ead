//! How xtask calls cargo: the same cargo that runs it, from the root, without the environment of its own package.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

/// The profile of packages and benches, in the root `Cargo.toml`.
const PACKAGED: &str = "dist";

/// A cargo command at the root. `cargo run` describes the xtask package in the environment; build scripts that watch
/// those variables would rebuild on every change between a plain `cargo` call and one made from here.
pub(crate) fn command(root: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root);
    without_own_package(&mut command);
    command
}

/// Takes the environment that describes the xtask package off a command.
pub(crate) fn without_own_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(describes_this_package) {
            command.env_remove(&name);
        }
    }
}

fn describes_this_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Code generation has a package of its own, because the schema compiler would add most of a minute to the first
/// `cargo xtask check` of a fresh clone.
pub(crate) fn codegen(root: &Path, check: bool) -> Result<ExitCode> {
    let mut command = command(root);
    command.args(codegen_arguments(check));
    finish(&mut command)
}

pub(crate) fn codegen_arguments(check: bool) -> Vec<&'static str> {
    let mut arguments = vec!["run", "--quiet", "--locked", "-p", "xtask-codegen"];
    if check {
        arguments.extend(["--", "--check"]);
    }
    arguments
}

pub(crate) fn bench(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let mut command = command(root);
    command.args(bench_arguments()).args(arguments);
    finish(&mut command)
}

/// Figures are those of the packaged build, so the bench and the node it starts have its profile.
fn bench_arguments() -> [&'static str; 7] {
    ["run", "--profile", PACKAGED, "--locked", "-p", "chancery-bench", "--"]
}

/// Runs a command on this terminal and passes its exit code on.
pub(crate) fn finish(command: &mut Command) -> Result<ExitCode> {
    let status = command.status().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_the_xtask_package_does_not_reach_the_builds_it_starts() {
        assert!(describes_this_package("CARGO_PKG_NAME"));
        assert!(describes_this_package("CARGO_MANIFEST_DIR"));
        assert!(!describes_this_package("CARGO_TARGET_DIR"));
        assert!(!describes_this_package("CARGO_HOME"));
    }

    #[test]
    fn benches_measure_the_profile_of_packages() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in the repository");
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("the root manifest");
        let manifest: toml::Table = manifest.parse().expect("TOML");
        assert_eq!(manifest["profile"][PACKAGED]["lto"].as_str(), Some("fat"));
        assert!(bench_arguments().join(" ").starts_with("run --profile dist "));
    }

    #[test]
    fn codegen_writes_unless_it_is_asked_to_compare() {
        assert!(!codegen_arguments(false).contains(&"--check"));
        assert!(codegen_arguments(true).ends_with(&["--", "--check"]));
    }
}
