//! `cargo xtask check`: every house rule over the whole tree, all violations at once, each with its remedy.

mod features;
mod fences;
mod layers;
mod listings;
mod lockfiles;
mod machine_paths;
pub(crate) mod opening;
mod own_files;
mod pages;
mod promises;
mod proof_types;
mod prose;
mod rust_text;
mod secret_comparisons;
mod sizes;
mod threat_rows;
mod type_names;
mod unwraps;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::packages::{self, Package};
use crate::tree::{self, File};

/// One broken rule: where, what is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    rule: &'static str,
    place: String,
    fault: String,
    remedy: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, place, fault, remedy } = self;
        write!(f, "{rule}: {place}: {fault}\n    -> {remedy}")
    }
}

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let packages = packages::read(root)?.packages;
    let files = tree::read(root)?;
    let violations = violations(&packages, &files);
    for violation in &violations {
        println!("{violation}");
    }
    let seen = format!("{} packages, {} files", packages.len(), files.len());
    if violations.is_empty() {
        println!("check: {seen}, nothing to object to");
        return Ok(ExitCode::SUCCESS);
    }
    println!("check: {seen}, {} violation(s)", violations.len());
    Ok(ExitCode::FAILURE)
}

fn violations(packages: &[Package], files: &[File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    violations.extend(layers::violations(packages));
    violations.extend(fences::violations(packages));
    violations.extend(features::violations(packages, files));
    violations.extend(listings::violations(packages));
    violations.extend(threat_rows::violations(files));
    violations.extend(promises::violations(files));
    violations.extend(pages::violations(files));
    violations.extend(type_names::violations(files));
    for file in files {
        violations.extend(opening::violations(file));
        violations.extend(sizes::violations(file));
        violations.extend(unwraps::violations(file));
        violations.extend(secret_comparisons::violations(file));
        violations.extend(proof_types::violations(file));
        violations.extend(machine_paths::violations(file));
        violations.extend(own_files::violations(file));
        violations.extend(prose::violations(file));
        violations.extend(prose::violations_in_printed_texts(file));
        violations.extend(prose::violations_in_comments(file));
        violations.extend(lockfiles::violations(file));
        violations.extend(features::unlinted(file));
    }
    violations
}

#[cfg(test)]
mod samples {
    use crate::tree::File;

    pub(super) fn file(path: &str, text: impl Into<String>) -> File {
        File { path: path.to_owned(), text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::samples::package;
    use samples::file;

    #[test]
    fn all_violations_are_reported_at_once() {
        let packages = [package("chancery-rules", &["chancery-core", "tokio"]), package("chancery-extras", &[])];
        let long = format!("fn f() {{\n{}}}\n", "    g().unwrap();\n".repeat(400));
        let files = [file("crates/rules/src/long.rs", long)];
        let found = violations(&packages, &files);
        let mut rules: Vec<_> = found.iter().map(|violation| violation.rule).collect();
        rules.dedup();
        assert_eq!(rules, ["layers", "fences", "opening", "sizes", "unwraps"]);
    }

    #[test]
    fn a_violation_reads_as_place_fault_and_remedy() {
        let violation =
            Violation { rule: "sizes", place: "a.rs".into(), fault: "has 401 lines".into(), remedy: "split it".into() };
        assert_eq!(violation.to_string(), "sizes: a.rs: has 401 lines\n    -> split it");
    }
}
