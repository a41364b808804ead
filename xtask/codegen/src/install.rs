//! Puts generated modules into their folder, or says how the folder differs from them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::compile::Modules;

/// Makes the folder hold these modules and no other; files that are right already are not touched, so nothing is rebuilt.
pub(crate) fn install(folder: &Path, modules: &Modules) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for name in present(folder)? {
        if !modules.contains_key(&name) {
            fs::remove_file(folder.join(name))?;
        }
    }
    for (name, code) in modules {
        let path = folder.join(name);
        if fs::read_to_string(&path).ok().as_ref() != Some(code) {
            fs::write(&path, code).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// One line for each file that is missing, that no schema gives any more, or whose content is another.
pub(crate) fn differences(folder: &Path, modules: &Modules) -> Result<Vec<String>> {
    let present = present(folder)?;
    let mut differences: Vec<String> =
        present.iter().filter(|name| !modules.contains_key(*name)).map(|name| format!("{name}: no schema gives it")).collect();
    for (name, code) in modules {
        if !present.contains(name) {
            differences.push(format!("{name}: is missing"));
            continue;
        }
        let committed = fs::read_to_string(folder.join(name))?;
        if committed != *code {
            let line = committed.lines().zip(code.lines()).take_while(|(a, b)| a == b).count() + 1;
            differences.push(format!("{name}:{line}: differs from what the schemas give"));
        }
    }
    Ok(differences)
}

fn present(folder: &Path) -> Result<BTreeSet<String>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(BTreeSet::new());
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(entries: &[(&str, &str)]) -> Modules {
        entries.iter().map(|(name, code)| ((*name).to_owned(), (*code).to_owned())).collect()
    }

    #[test]
    fn what_was_installed_does_not_differ() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("generated");
        let modules = modules(&[("a.rs", "// a\n"), ("b.rs", "// b\n")]);
        install(&folder, &modules).unwrap();
        assert_eq!(differences(&folder, &modules).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_missing_a_stale_and_a_changed_file_are_each_reported() {
        let folder = tempfile::tempdir().unwrap();
        install(folder.path(), &modules(&[("changed.rs", "// one\n// two\n"), ("stale.rs", "")])).unwrap();
        let wanted = modules(&[("changed.rs", "// one\n// 2\n"), ("missing.rs", "")]);
        assert_eq!(
            differences(folder.path(), &wanted).unwrap(),
            ["stale.rs: no schema gives it", "changed.rs:2: differs from what the schemas give", "missing.rs: is missing"]
        );
    }

    #[test]
    fn installing_removes_what_no_schema_gives_any_more() {
        let folder = tempfile::tempdir().unwrap();
        install(folder.path(), &modules(&[("old.rs", "")])).unwrap();
        install(folder.path(), &modules(&[("new.rs", "")])).unwrap();
        assert_eq!(present(folder.path()).unwrap().into_iter().collect::<Vec<_>>(), ["new.rs"]);
    }
}
