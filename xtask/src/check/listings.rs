//! What a registry asks of a crate: metadata in its manifest, and versions beside the paths of our own crates.

use super::Violation;
use crate::packages::Package;

pub(super) fn violations(packages: &[Package]) -> Vec<Violation> {
    packages.iter().filter(|package| is_a_crate(package)).flat_map(of_one).collect()
}

/// The tools of the repository are for nobody else.
fn is_a_crate(package: &Package) -> bool {
    package.manifest_path.iter().rev().nth(2).is_some_and(|folder| folder == "crates")
}

fn of_one(package: &Package) -> Vec<Violation> {
    let listing = &package.listing;
    let missing = [
        ("description", listing.description.is_none()),
        ("license", listing.license.is_none()),
        ("repository", listing.repository.is_none()),
        ("readme", listing.readme.is_none()),
        ("keywords", listing.keywords.is_empty()),
        ("categories", listing.categories.is_empty()),
    ];
    let violation =
        |fault, remedy: &str| Violation { rule: "listings", place: package.name.clone(), fault, remedy: remedy.to_owned() };
    let mut violations: Vec<_> = missing
        .into_iter()
        .filter(|(_, is_missing)| *is_missing)
        .map(|(key, _)| violation(format!("has no {key}"), "add it to the manifest, from the workspace if all crates share it"))
        .collect();
    if listing.publish.as_ref().is_none_or(|registries| !registries.is_empty()) {
        violations.push(violation("can be published".to_owned(), "add `publish.workspace = true`"));
    }
    let any_version = package.dependencies.iter().filter(|used| used.req == "*");
    violations.extend(any_version.map(|used| {
        violation(format!("takes any version of {}", used.name), "add the version beside the path, in the root manifest")
    }));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::samples::package;

    fn faults(package: Package) -> Vec<String> {
        violations(&[package]).into_iter().map(|violation| violation.fault).collect()
    }

    #[test]
    fn a_crate_has_all_that_a_registry_asks_and_stays_unpublished() {
        assert_eq!(faults(package("chancery-wire", &["chancery-protocol"])), Vec::<String>::new());
        let mut bare = package("chancery-wire", &[]);
        bare.listing = Default::default();
        let missing = ["has no description", "has no license", "has no repository", "has no readme", "has no keywords"];
        assert_eq!(faults(bare), [&missing[..], &["has no categories", "can be published"]].concat());
    }

    #[test]
    fn a_dependency_has_a_version_beside_its_path() {
        let mut wire = package("chancery-wire", &["chancery-protocol"]);
        wire.dependencies[0].req = "*".to_owned();
        assert_eq!(faults(wire), ["takes any version of chancery-protocol"]);
    }

    #[test]
    fn tools_of_the_repository_need_no_listing() {
        let mut tool = package("xtask", &[]);
        tool.listing = Default::default();
        assert_eq!(faults(tool), Vec::<String>::new());
    }
}
