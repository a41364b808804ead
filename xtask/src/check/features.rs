//! Features only leave dependencies out for programs that embed a node: each is listed here, documented, and built alone.

use super::Violation;
use crate::features::{ALONE, PAGE};
use crate::packages::Package;
use crate::tree::File;

/// The features of the lower crates, each for a feature of the facade. What a node does is chosen in its config.
const LOWER: &[(&str, &str)] = &[
    ("chancery-evidence", "bundles"),
    ("chancery-inbound", "grpc"),
    ("chancery-inbound", "swp"),
    ("chancery-memory", "schemas"),
    ("chancery-memory", "tier"),
    ("chancery-outbound", "grpc"),
    ("chancery-outbound", "swp"),
    ("chancery-store", "postgres"),
    ("chancery-swp", "frames"),
    ("chancery-wire", "grpc"),
    ("chancery-wire", "protobuf"),
    ("chancery-wire", "swp"),
];

const FACADE: &str = "chancery";

pub(super) fn violations(packages: &[Package], files: &[File]) -> Vec<Violation> {
    let violation = |package: &Package, fault: String, remedy: &str| Violation {
        rule: "features",
        place: package.name.clone(),
        fault,
        remedy: remedy.to_owned(),
    };
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |file| &file.text);
    let mut violations = Vec::new();
    for package in packages {
        for feature in package.features.keys().filter(|feature| *feature != "default") {
            if package.name != FACADE {
                if !LOWER.contains(&(&package.name, feature)) {
                    let remedy =
                        "make it a config setting, or list it in xtask/src/check/features.rs with a feature of the facade";
                    violations.push(violation(package, format!("has the feature {feature:?}"), remedy));
                }
                continue;
            }
            if feature != "cli" && !ALONE.contains(&feature.as_str()) {
                let fault = format!("has the feature {feature:?}, which is never built alone");
                violations.push(violation(package, fault, "add it to xtask/src/features.rs"));
            }
            if !page.contains(&format!("| `{feature}` |")) {
                let fault = format!("has the feature {feature:?}, which {PAGE} does not list");
                violations.push(violation(package, fault, "add its row to the table there"));
            }
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
    fn a_feature_of_a_lower_crate_that_is_not_listed_is_refused() {
        let mut memory = package("chancery-memory", &[]);
        memory.features.insert("default".into(), vec!["tier".into()]);
        memory.features.insert("tier".into(), vec![]);
        let mut store = package("chancery-store", &[]);
        store.features.insert("postgres".into(), vec![]);
        store.features.insert("extra".into(), vec![]);
        let places: Vec<_> = violations(&[memory, store], &[]).into_iter().map(|v| format!("{} {}", v.place, v.fault)).collect();
        assert_eq!(places, ["chancery-store has the feature \"extra\""]);
    }

    #[test]
    fn a_feature_of_the_facade_is_documented_and_built_alone() {
        let mut facade = package("chancery", &[]);
        facade.features.insert("cli".into(), vec![]);
        facade.features.insert("schemas".into(), vec![]);
        facade.features.insert("extra".into(), vec![]);
        let page = file(PAGE, "| `cli` | commands |\n| `extra` | more |\n");
        let faults: Vec<_> = violations(&[facade], &[page]).into_iter().map(|v| v.fault).collect();
        let alone = "has the feature \"extra\", which is never built alone";
        assert_eq!(faults, [alone, "has the feature \"schemas\", which docs/embedding.md does not list"]);
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
