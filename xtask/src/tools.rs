//! Tools that cargo does not bring along: found where they are, built once into the target folder where they are not.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo;

/// The version whose verdict we rely on: another may read `deny.toml` differently.
const CARGO_DENY: &str = "0.20.2";

/// Where cargo-deny is, after installing it if this machine has none of the right version.
pub(crate) fn cargo_deny(root: &Path, target: &Path) -> Result<PathBuf> {
    let tools = target.join("tools");
    let installed = tools.join("bin").join("cargo-deny");
    for candidate in [PathBuf::from("cargo-deny"), installed.clone()] {
        if version(&candidate).is_some_and(|version| version == CARGO_DENY) {
            return Ok(candidate);
        }
    }
    println!("cargo-deny {CARGO_DENY} is not here; building it once into the target folder (a minute or two)");
    let status =
        cargo::command(root).args(install_arguments()).arg("--root").arg(&tools).env("CARGO_PROFILE_DEV_DEBUG", "0").status()?;
    if !status.success() || version(&installed).as_deref() != Some(CARGO_DENY) {
        bail!("cannot install cargo-deny {CARGO_DENY}: run `cargo install --locked cargo-deny --version {CARGO_DENY}` and look");
    }
    Ok(installed)
}

/// A debug build: it takes a third of the time to compile and a second to judge the whole lock file.
fn install_arguments() -> [&'static str; 6] {
    ["install", "--locked", "--debug", "cargo-deny", "--version", CARGO_DENY]
}

fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    output.status.success().then(|| parse_version(&output.stdout))?
}

fn parse_version(printed: &[u8]) -> Option<String> {
    let text = str::from_utf8(printed).ok()?;
    text.trim().strip_prefix("cargo-deny ").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_by_the_version_it_prints() {
        assert_eq!(parse_version(b"cargo-deny 0.20.2\n").as_deref(), Some("0.20.2"));
        assert_eq!(parse_version(b"something-else 0.20.2\n"), None);
        assert_eq!(parse_version(b""), None);
    }

    #[test]
    fn a_missing_and_a_failing_program_have_no_version() {
        assert_eq!(version(Path::new("no-such-program-anywhere")), None);
        assert_eq!(version(Path::new("false")), None);
    }
}
