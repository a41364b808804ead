//! Who may depend on whom: the dependency table of the architecture as data, and the rule that compares it with cargo's.

use super::Violation;
use crate::packages::{Dependency, Package};

/// One crate of the house. A crate may be listed before it exists.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    /// What its tests may use on top of that.
    tests_may_use: &'static [&'static str],
}

const TESTKIT: &str = "chancery-testkit";

/// The control plane whole. The binary knows every adapter, and the bench measures the binary.
const THE_HOUSE: &[&str] = &[
    "chancery",
    "chancery-core",
    "chancery-evidence",
    "chancery-identity",
    "chancery-inbound",
    "chancery-memory",
    "chancery-outbound",
    "chancery-protocol",
    "chancery-receiver",
    "chancery-rules",
    "chancery-store",
    "chancery-swp",
    "chancery-wire",
];

/// Adapters behind a port see the port's crate, keys and the model, and never one another.
const BEHIND_A_PORT: &[&str] = &["chancery-core", "chancery-identity", "chancery-protocol"];

/// Doors also turn bytes into the model.
const AT_A_DOOR: &[&str] = &["chancery-core", "chancery-identity", "chancery-protocol", "chancery-wire"];

const TABLE: &[Room] = &[
    room("chancery-protocol", &[], &[]),
    room("chancery-swp", &[], &[]),
    room("chancery-rules", &["chancery-protocol"], &[]),
    room("chancery-identity", &["chancery-protocol"], &[]),
    room("chancery-wire", &["chancery-protocol", "chancery-swp"], &[]),
    // What is delivered from a store is tried on a real one.
    room("chancery-core", &["chancery-protocol", "chancery-rules"], &["chancery-store", TESTKIT]),
    // A record is kept by the store and written by evidence; only together can it be tampered with and checked.
    room("chancery-store", BEHIND_A_PORT, &[TESTKIT, "chancery-evidence"]),
    room("chancery-memory", BEHIND_A_PORT, &[TESTKIT]),
    room("chancery-evidence", BEHIND_A_PORT, &[TESTKIT]),
    // Doors are tried in front of a real service, which needs a real store.
    room("chancery-inbound", AT_A_DOOR, &[TESTKIT, "chancery-store"]),
    room("chancery-outbound", AT_A_DOOR, &[TESTKIT]),
    // The other end of push stands alone: it is for programs that have no node.
    room("chancery-receiver", &["chancery-identity", "chancery-protocol", "chancery-wire"], &[]),
    room("chancery", THE_HOUSE, &[TESTKIT]),
    // Fakes for the ports of core; only tests may use it, so it is in nobody's first list.
    room(TESTKIT, &["chancery-core", "chancery-protocol", "chancery-rules"], &[]),
    // Runs agents written for the official SDK. Outside the binary, so `chancery` does not list it.
    room("chancery-a2a-sdk", &["chancery-core", "chancery-protocol"], &["chancery", TESTKIT]),
    // Runs agents written for the rvagent crates, whose wire is the original protocol.
    room("chancery-rvagent", &["chancery-core", "chancery-protocol", "chancery-wire"], &["chancery", TESTKIT]),
    room("chancery-bench", THE_HOUSE, &[TESTKIT]),
    room("xtask", &[], &[]),
    room("xtask-codegen", &[], &[]),
];

const fn room(name: &'static str, may_use: &'static [&'static str], tests_may_use: &'static [&'static str]) -> Room {
    Room { name, may_use, tests_may_use }
}

pub(super) fn violations(packages: &[Package]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages {
        violations.extend(misplaced(package));
        let Some(room) = TABLE.iter().find(|room| room.name == package.name) else {
            violations.push(unknown(package));
            continue;
        };
        let ours = package.dependencies.iter().filter(|dependency| {
            let name = &dependency.name;
            TABLE.iter().any(|room| room.name == name) || packages.iter().any(|p| p.name == *name)
        });
        violations
            .extend(ours.filter(|dependency| !allowed(room, dependency)).map(|dependency| forbidden(package, room, dependency)));
    }
    violations
}

fn allowed(room: &Room, dependency: &Dependency) -> bool {
    let name = dependency.name.as_str();
    room.may_use.contains(&name) || (dependency.is_only_for_tests() && room.tests_may_use.contains(&name))
}

fn forbidden(package: &Package, room: &Room, dependency: &Dependency) -> Violation {
    let used = &dependency.name;
    let remedy = if room.tests_may_use.contains(&used.as_str()) {
        format!("only its tests may use {used}: move it to [dev-dependencies]")
    } else if room.may_use.is_empty() {
        "it may use none of our crates: move the code that needs this to a crate above".to_owned()
    } else {
        format!("it may use {}: move the code, or put a port into core and an adapter outside", room.may_use.join(", "))
    };
    Violation { rule: "layers", place: package.name.clone(), fault: format!("may not depend on {used}"), remedy }
}

fn unknown(package: &Package) -> Violation {
    Violation {
        rule: "layers",
        place: package.name.clone(),
        fault: "is not in the dependency table".to_owned(),
        remedy: "say what it may use in xtask/src/check/layers.rs and in ARCHITECTURE.md".to_owned(),
    }
}

/// Folders carry the plain word, packages the prefix.
fn misplaced(package: &Package) -> Option<Violation> {
    let folder = package.manifest_path.parent()?;
    if folder.parent()?.file_name()? != "crates" {
        return None;
    }
    let word = folder.file_name()?.to_string_lossy();
    let expected = match word.as_ref() {
        "chancery" => "chancery".to_owned(),
        word => format!("chancery-{word}"),
    };
    (package.name != expected).then(|| Violation {
        rule: "layers",
        place: format!("crates/{word}"),
        fault: format!("holds the package {}", package.name),
        remedy: format!("name the package {expected}, or move it to the folder of its name"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::samples::package;
    use std::path::PathBuf;

    fn faults(packages: &[Package]) -> Vec<String> {
        let found = violations(packages).into_iter();
        found.map(|v| format!("{} {}", v.place, v.fault)).collect()
    }

    #[test]
    fn the_spine_as_it_is_drawn_passes() {
        let spine = [
            package("chancery-protocol", &["serde"]),
            package("chancery-rules", &["chancery-protocol"]),
            package("chancery-core", &["chancery-protocol", "chancery-rules", "dev:chancery-testkit"]),
            package("chancery-wire", &["chancery-protocol", "chancery-swp"]),
            package("chancery-store", &["chancery-core", "chancery-protocol"]),
            package("chancery-inbound", &["chancery-core", "chancery-wire", "chancery-identity"]),
            package("chancery", &["chancery-inbound", "chancery-store", "dev:chancery-testkit"]),
            package("chancery-testkit", &["chancery-core", "chancery-protocol"]),
            package("chancery-a2a-sdk", &["chancery-core", "chancery-protocol", "dev:chancery"]),
        ];
        assert_eq!(faults(&spine), Vec::<String>::new());
    }

    #[test]
    fn a_lower_crate_that_reaches_up_is_refused() {
        for (lower, upper) in [
            ("chancery-protocol", "chancery-rules"),
            ("chancery-rules", "chancery-core"),
            ("chancery-core", "chancery-wire"),
            ("chancery-core", "chancery-store"),
            ("chancery-wire", "chancery-core"),
            ("chancery-swp", "chancery-protocol"),
            ("chancery-identity", "chancery-core"),
            ("chancery-a2a-sdk", "chancery-inbound"),
            ("xtask", "chancery-protocol"),
        ] {
            let expected = format!("{lower} may not depend on {upper}");
            assert_eq!(faults(&[package(lower, &[upper])]), [expected]);
        }
    }

    #[test]
    fn adapters_never_depend_on_each_other_and_only_two_do_in_their_tests() {
        let adapters = ["chancery-store", "chancery-memory", "chancery-evidence", "chancery-inbound", "chancery-outbound"];
        for one in adapters {
            for other in adapters.into_iter().filter(|other| *other != one) {
                assert_eq!(faults(&[package(one, &[other])]).len(), 1, "{one} -> {other}");
                let in_tests = format!("dev:{other}");
                let is_tried_with =
                    [("chancery-store", "chancery-evidence"), ("chancery-inbound", "chancery-store")].contains(&(one, other));
                assert_eq!(faults(&[package(one, &[&in_tests])]).is_empty(), is_tried_with, "{one} -> {other}");
            }
        }
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        for user in ["chancery", "chancery-core", "chancery-store", "chancery-bench"] {
            let found = violations(&[package(user, &[TESTKIT])]);
            assert_eq!(found.len(), 1, "{user}");
            assert!(found[0].remedy.contains("[dev-dependencies]"));
        }
        assert_eq!(faults(&[package("chancery-protocol", &["dev:chancery-testkit"])]).len(), 1);
    }

    #[test]
    fn the_sdk_adapter_stays_outside_the_binary() {
        assert_eq!(faults(&[package("chancery", &["chancery-a2a-sdk"])]).len(), 1);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_refused_by_itself_and_as_a_dependency() {
        let found = faults(&[package("chancery-extras", &[]), package("chancery", &["chancery-extras"])]);
        assert_eq!(found, ["chancery-extras is not in the dependency table", "chancery may not depend on chancery-extras"]);
    }

    #[test]
    fn a_package_whose_name_is_not_its_folders_word_is_refused() {
        let mut package = package("chancery-core", &[]);
        package.manifest_path = PathBuf::from("crates/kernel/Cargo.toml");
        assert_eq!(faults(&[package]), ["crates/kernel holds the package chancery-core"]);
    }

    #[test]
    fn every_name_in_the_table_has_a_room_of_its_own() {
        for room in TABLE {
            for used in room.may_use.iter().chain(room.tests_may_use) {
                assert!(TABLE.iter().any(|r| r.name == *used), "{} -> {used}", room.name);
            }
        }
    }
}
