//! One build for everybody: no feature flags, and every package under the same lints.

use super::Violation;
use crate::packages::Package;
use crate::tree::File;

/// Features somebody argued for, with the argument. Transports and stores are chosen in config and never belong here.
const ALLOWED: &[(&str, &str)] = &[];

pub(super) fn violations(packages: &[Package]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        for feature in package.features.keys() {
            if ALLOWED.contains(&(&package.name, feature)) {
                continue;
            }
            violations.push(Violation {
                rule: "features",
                place: package.name.clone(),
                fault: format!("has the feature {feature:?}"),
                remedy: "make it a config setting, or make the dependency unconditional: there is one build".to_owned(),
            });
        }
    }
    violations
}

/// A package that forgets `[lints] workspace = true` would quietly be allowed `unsafe`.
pub(super) fn unlinted(file: &File) -> Option<Violation> {
    if !file.path.ends_with("/Cargo.toml") {
        return None;
    }
    // A separate workspace cannot inherit from this one and answers for itself.
    let manifest = file.text.parse::<toml::Table>().ok()?;
    if !manifest.contains_key("package") || manifest.contains_key("workspace") {
        return None;
    }
    let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
    (inherits != Some(true)).then(|| Violation {
        rule: "features",
        place: file.path.clone(),
        fault: "does not inherit the workspace's lints".to_owned(),
        remedy: "add `[lints]` with `workspace = true`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;
    use crate::packages::samples::package;

    #[test]
    fn a_feature_for_a_transport_or_a_store_is_refused() {
        let mut inbound = package("chancery-inbound", &[]);
        inbound.features.insert("grpc".into(), vec!["dep:tonic".into()]);
        let mut store = package("chancery-store", &[]);
        store.features.insert("postgres".into(), vec![]);
        let places: Vec<_> = violations(&[inbound, store, package("chancery", &[])])
            .into_iter()
            .map(|v| format!("{} {}", v.place, v.fault))
            .collect();
        assert_eq!(places, ["chancery-inbound has the feature \"grpc\"", "chancery-store has the feature \"postgres\""]);
    }

    #[test]
    fn a_package_without_the_shared_lints_is_refused() {
        let bare = "[package]\nname = \"x\"\n";
        assert!(unlinted(&file("crates/x/Cargo.toml", bare)).is_some());
        let off = format!("{bare}[lints]\nworkspace = false\n");
        assert!(unlinted(&file("crates/x/Cargo.toml", off)).is_some());
        let on = format!("{bare}[lints]\nworkspace = true\n");
        assert!(unlinted(&file("crates/x/Cargo.toml", on)).is_none());
        let apart = format!("{bare}[workspace]\n");
        assert!(unlinted(&file("tests/apart/Cargo.toml", apart)).is_none());
    }
}
