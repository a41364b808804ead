//! What `cargo metadata` says about our packages: their dependencies, features and manifests.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;

use crate::cargo;

#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    pub packages: Vec<Package>,
    pub target_directory: PathBuf,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    pub name: String,
    pub manifest_path: PathBuf,
    pub dependencies: Vec<Dependency>,
    pub features: BTreeMap<String, Vec<String>>,
    #[serde(flatten)]
    pub listing: Listing,
}

/// What a registry shows of a package.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Listing {
    pub description: Option<String>,
    pub license: Option<String>,
    pub repository: Option<String>,
    pub readme: Option<PathBuf>,
    pub keywords: Vec<String>,
    pub categories: Vec<String>,
    /// The registries that may have the package; none for a package that stays unpublished.
    pub publish: Option<Vec<String>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dependency {
    /// The package's own name, also where the manifest renames it.
    pub name: String,
    /// The versions that will do; `*` where the manifest has a path alone.
    #[serde(default)]
    pub req: String,
    pub kind: Option<DependencyKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DependencyKind {
    Dev,
    Build,
}

impl Dependency {
    pub(crate) fn is_only_for_tests(&self) -> bool {
        self.kind == Some(DependencyKind::Dev)
    }
}

/// Reads the workspace without resolving anything, so it needs no network and no up-to-date lock file.
pub(crate) fn read(root: &Path) -> Result<Workspace> {
    let output = cargo::command(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata printed something unexpected")
}

#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    /// A package that depends on `uses`; names with the prefix `dev:` are dev-dependencies.
    pub(crate) fn package(name: &str, uses: &[&str]) -> Package {
        let folder = match name.strip_prefix("chancery-") {
            Some(word) => format!("crates/{word}"),
            None if name == "chancery" => "crates/chancery".to_owned(),
            None => name.to_owned(),
        };
        let dependencies = uses
            .iter()
            .map(|used| match used.strip_prefix("dev:") {
                Some(name) => (name, Some(DependencyKind::Dev)),
                None => (*used, None),
            })
            .map(|(name, kind)| Dependency { name: name.to_owned(), req: "^1".to_owned(), kind })
            .collect();
        Package {
            name: name.to_owned(),
            manifest_path: PathBuf::from(format!("{folder}/Cargo.toml")),
            dependencies,
            features: BTreeMap::new(),
            listing: Listing {
                description: Some("Words".to_owned()),
                license: Some("MIT".to_owned()),
                repository: Some("https://example.org/it".to_owned()),
                readme: Some(PathBuf::from("README.md")),
                keywords: vec!["a2a".to_owned()],
                categories: vec!["network-programming".to_owned()],
                publish: Some(Vec::new()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_can_be_read_and_holds_xtask_itself() {
        let root = crate::repository_root().unwrap();
        let workspace = read(&root).unwrap();
        let xtask = workspace.packages.iter().find(|p| p.name == "xtask");
        let names: Vec<_> = xtask.unwrap().dependencies.iter().map(|d| &d.name).collect();
        assert!(names.iter().any(|name| *name == "anyhow"), "{names:?}");
    }

    #[test]
    fn the_kind_of_a_dependency_is_kept() {
        let json = r#"[{"name":"a","kind":null},{"name":"b","kind":"dev"},{"name":"c","kind":"build"}]"#;
        let dependencies: Vec<Dependency> = serde_json::from_str(json).unwrap();
        let kinds: Vec<_> = dependencies.iter().map(|d| d.is_only_for_tests()).collect();
        assert_eq!(kinds, [false, true, false]);
    }
}
