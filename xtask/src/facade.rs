//! The library as a program sees it: every type that a public item of `chancery` mentions has a path below `chancery`, and
//! every public item has documentation.
//!
//! The JSON of rustdoc is not stable, so that the compiler must be told to write it. Only rustdoc is: for rustc, build scripts
//! would run again. The walk over the JSON is in `facade/walk.rs`.

mod walk;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use self::walk::Facade;
use crate::cargo;

/// Set for the xtask that cargo starts as rustdoc.
const AS_RUSTDOC: &str = "CHANCERY_XTASK_AS_RUSTDOC";

/// Crates with public items that have no documentation yet, and how many those may be. A number only goes down.
const UNDOCUMENTED: &[(&str, usize)] = &[("chancery_core", 52), ("chancery_outbound", 53)];

/// Runs rustdoc with its arguments, if cargo started this program as rustdoc.
pub(crate) fn run_as_rustdoc() -> Option<ExitCode> {
    std::env::var_os(AS_RUSTDOC)?;
    let status = Command::new("rustdoc").args(std::env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").status();
    Some(if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints each type without a path, and each crate with more undocumented items than it may have.
pub(crate) fn check(root: &Path) -> Result<bool> {
    let crates = describe(root)?;
    let facade = Facade::of(&crates, "chancery")?;
    let mut faults: Vec<String> =
        facade.unnamed.iter().map(|(path, user)| format!("{path} has no path below chancery, and {user} mentions it")).collect();
    let mut undocumented: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in &facade.undocumented {
        undocumented.entry(path.split("::").next().unwrap_or_default()).or_default().push(path);
    }
    for (name, paths) in undocumented {
        let most = UNDOCUMENTED.iter().find(|(known, _)| *known == name).map_or(0, |(_, most)| *most);
        if paths.len() > most {
            faults.push(format!("{} public items of {name} have no documentation, more than {most}:", paths.len()));
            faults.extend(paths.iter().map(|path| format!("    {path}")));
        }
    }
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    Ok(faults.is_empty())
}

/// The descriptions of our crates, by their names as Rust writes them.
fn describe(root: &Path) -> Result<BTreeMap<String, Value>> {
    let metadata = cargo::command(root).args(["metadata", "--no-deps", "--format-version", "1", "--locked"]).output()?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout).context("cargo metadata wrote no JSON")?;
    let is_ours = |path: &str| path.contains("/crates/") && !path.ends_with("/testkit/Cargo.toml");
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let names: Vec<&str> = packages
        .filter(|package| package["manifest_path"].as_str().is_some_and(is_ours))
        .filter_map(|package| package["name"].as_str())
        .collect();
    let mut command = cargo::command(root);
    command.args(["doc", "--no-deps", "--lib", "--locked", "--quiet"]);
    command.args(names.iter().flat_map(|name| ["--package", *name]));
    command.env("RUSTDOC", std::env::current_exe().context("this program has no path")?).env(AS_RUSTDOC, "1");
    command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json -D warnings");
    if !command.status().context("cannot start cargo")?.success() {
        bail!("cargo doc failed");
    }
    let folder = Path::new(metadata["target_directory"].as_str().context("cargo metadata names no target folder")?).join("doc");
    let mut crates = BTreeMap::new();
    for name in names {
        let name = name.replace('-', "_");
        let file = folder.join(format!("{name}.json"));
        let text = std::fs::read(&file).with_context(|| format!("rustdoc wrote no {}", file.display()))?;
        crates.insert(name, serde_json::from_slice(&text)?);
    }
    Ok(crates)
}
