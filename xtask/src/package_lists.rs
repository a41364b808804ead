//! What `cargo package` would put into the package of each crate: sources, tests, their fixtures, and the files a registry shows.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cargo;

/// Files at the root of every package.
const REQUIRED: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// Files at the root of some packages: those that cargo adds, and the README of the facade for a registry.
const ALLOWED: [&str; 4] = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml.orig", "PACKAGE.md"];

/// The folders of a package, each with the endings that its files may have.
const FOLDERS: [(&str, &[&str]); 6] = [
    ("src/", &["rs", "sql"]),
    ("tests/", &["rs", "c"]),
    ("examples/", &["rs", "toml"]),
    ("docs/", &["md"]),
    ("fixtures/", &["http", "json", "jsonl", "md", "sse", "toml"]),
    ("proto/", &["proto", "txt"]),
];

/// Lists the package of each crate, and prints each fault.
pub(crate) fn check(root: &Path) -> Result<bool> {
    let mut folders: Vec<_> = std::fs::read_dir(root.join("crates")).context("cannot read crates")?.collect::<Result<_, _>>()?;
    folders.sort_by_key(std::fs::DirEntry::file_name);
    let mut is_clean = true;
    for folder in folders {
        let name = folder.file_name().to_string_lossy().into_owned();
        let list = list(root, &folder.path())?;
        let readme = std::fs::read_to_string(folder.path().join(readme_of(&folder.path())?))?;
        for fault in list_faults(&list).into_iter().chain(link_faults(&readme)) {
            eprintln!("crates/{name}: {fault}");
            is_clean = false;
        }
    }
    Ok(is_clean)
}

fn list(root: &Path, folder: &Path) -> Result<String> {
    let mut command = cargo::command(root);
    command.args(["package", "--list", "--allow-dirty", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo package --list: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn readme_of(folder: &Path) -> Result<String> {
    let manifest: toml::Table = std::fs::read_to_string(folder.join("Cargo.toml"))?.parse()?;
    let readme = manifest.get("package").and_then(|package| package.get("readme")).and_then(toml::Value::as_str);
    Ok(readme.context("the manifest names no readme of the crate's own")?.to_owned())
}

fn list_faults(list: &str) -> Vec<String> {
    let missing = REQUIRED.iter().filter(|name| !list.lines().any(|line| line == **name));
    let stray = list.lines().filter(|path| !belongs(path));
    missing
        .map(|name| format!("the package has no {name}; add the file, or a link to that of the repository"))
        .chain(stray.map(|path| format!("the package has {path}; move it, or add it to `exclude`")))
        .collect()
}

fn belongs(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_at_root = REQUIRED.contains(&path) || ALLOWED.contains(&path);
    is_at_root || FOLDERS.iter().any(|(folder, endings)| path.starts_with(folder) && endings.contains(&ending))
}

/// A registry shows the README alone, so that links to other files lead nowhere there.
fn link_faults(readme: &str) -> Vec<String> {
    let links = readme.match_indices("](").filter_map(|(at, _)| readme[at + 2..].split(')').next());
    let relative = links.filter(|link| !link.starts_with("https://") && !link.starts_with('#'));
    relative.map(|link| format!("the README links to {link}, which a registry does not have; write the whole URL")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str =
        "Cargo.toml\nLICENSE-APACHE\nLICENSE-MIT\nREADME.md\n.cargo_vcs_info.json\nsrc/lib.rs\ntests/it/main.rs\n";

    #[test]
    fn a_package_of_sources_tests_and_licences_is_clean() {
        assert_eq!(list_faults(WHOLE), Vec::<String>::new());
    }

    #[test]
    fn stray_files_and_missing_ones_are_faults() {
        for stray in ["tests/proptest-regressions/a.txt", "src/probe.c", "notes.md", "src/a", "target/a.rs"] {
            assert_eq!(list_faults(&format!("{WHOLE}{stray}\n")).len(), 1, "{stray}");
        }
        assert_eq!(list_faults(&WHOLE.replace("LICENSE-MIT\n", "")).len(), 1);
    }

    #[test]
    fn a_link_without_a_host_is_a_fault() {
        assert_eq!(link_faults("[a](https://example.org/a) [b](#b)"), Vec::<String>::new());
        assert_eq!(link_faults("[a](docs/a.md) and [b](../b.md#c)").len(), 2);
    }
}
