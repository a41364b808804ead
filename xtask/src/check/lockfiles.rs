//! Lock files point at the public registries only, so that a fresh clone resolves anywhere.

use super::Violation;
use crate::tree::File;

const PUBLIC: &[&str] =
    &["github.com/rust-lang/crates.io-index", "index.crates.io", "registry.npmjs.org", "pypi.org", "files.pythonhosted.org"];

/// Settings files that may choose a registry, and lock files that remember one.
const NAMES: &[&str] =
    &["Cargo.lock", "config.toml", "package-lock.json", "npm-shrinkwrap.json", ".npmrc", "uv.lock", "poetry.lock", "pip.conf"];

pub(super) fn violations(file: &File) -> Vec<Violation> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let is_requirements = name.starts_with("requirements") && name.ends_with(".txt");
    if !NAMES.contains(&name) && !is_requirements {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        violations.extend(private_source(name, line).map(|source| Violation {
            rule: "lockfiles",
            place: format!("{}:{}", file.path, number + 1),
            fault: format!("points at {source}"),
            remedy: "resolve it again from the public registry".to_owned(),
        }));
    }
    violations
}

/// The source a line fetches from, when that is not a public registry.
fn private_source<'a>(name: &str, line: &'a str) -> Option<&'a str> {
    // Other addresses in these files (a package's funding page, say) are not fetched from.
    let fetches = match name {
        "Cargo.lock" => line.starts_with("source = "),
        "config.toml" => line.trim_start().starts_with("registry") || line.contains("index = "),
        "package-lock.json" | "npm-shrinkwrap.json" => line.contains("\"resolved\""),
        _ => true,
    };
    if !fetches {
        return None;
    }
    let (_, rest) = line.split_once("://")?;
    let source = rest.split(['"', '\'', ' ', '#', '?']).next()?;
    let is_public =
        PUBLIC.iter().any(|public| source.strip_prefix(public).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    (!is_public).then_some(source)
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn refused(path: &str, line: &str) -> bool {
        !violations(&file(path, format!("\n{line}\n"))).is_empty()
    }

    #[test]
    fn a_mirror_in_a_lock_file_is_refused() {
        assert!(refused("Cargo.lock", r#"source = "sparse+https://mirror.example/index/""#));
        assert!(refused("tests/interop/rvagent/Cargo.lock", r#"source = "git+https://github.com/a/b?rev=1#2""#));
        assert!(refused("console/package-lock.json", r#"  "resolved": "http://mirror.example/a.tgz","#));
        assert!(refused(".npmrc", "registry=https://registry.npmjs.org.mirror.example/"));
        assert!(refused("tests/interop/requirements.txt", "--index-url https://mirror.example/simple"));
        assert!(refused(".cargo/config.toml", r#"registry = "sparse+https://mirror.example/""#));
    }

    #[test]
    fn the_public_registries_pass() {
        let crates = r#"source = "registry+https://github.com/rust-lang/crates.io-index""#;
        assert!(!refused("Cargo.lock", crates));
        let npm = r#"  "resolved": "https://registry.npmjs.org/a/-/a-1.0.0.tgz","#;
        assert!(!refused("console/package-lock.json", npm));
        assert!(!refused("console/package-lock.json", r#"  "funding": "https://somebody.example","#));
        assert!(!refused("tests/interop/requirements.txt", "a2a-sdk==1.3.0"));
        assert!(!refused("README.md", "https://mirror.example"));
    }
}
