//! The files of the repository as git would track them, found without git so that a plain source archive can be checked too.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// One file: its path from the root with `/` between names, and its bytes read as text.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub path: String,
    pub text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// Every file below `root` that no `.gitignore` names, in path order.
pub(crate) fn read(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    visit(root, "", &[], &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn visit(root: &Path, folder: &str, above: &[Ignored], files: &mut Vec<File>) -> Result<()> {
    let mut ignored = above.to_vec();
    let ignore_file = root.join(folder).join(".gitignore");
    if let Ok(text) = fs::read_to_string(&ignore_file) {
        ignored.extend(parse_ignores(folder, &text)?);
    }
    let entries = fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder:?}"))?;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        let Ok(name) = entry.file_name().into_string() else {
            bail!("a file in {folder:?} has a name that is not UTF-8");
        };
        let path = join(folder, &name);
        if name == ".git" || ignored.iter().any(|i| i.matches(&path, kind.is_dir())) {
            continue;
        }
        if kind.is_dir() {
            visit(root, &path, &ignored, files)?;
        } else if kind.is_file() {
            // A file may vanish between the listing and the reading while someone else works in the tree.
            if let Ok(bytes) = fs::read(entry.path()) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                files.push(File { path, text });
            }
        }
    }
    Ok(())
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// One line of a `.gitignore`.
#[derive(Debug, Clone)]
struct Ignored {
    folder: String,
    pattern: String,
    only_folders: bool,
    anchored: bool,
}

fn parse_ignores(folder: &str, text: &str) -> Result<Vec<Ignored>> {
    let mut ignored = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('!') || line.contains("**") || line.contains(['[', '?', '\\']) {
            bail!("{}: cannot read the pattern {line:?}; write it with names and * only", join(folder, ".gitignore"));
        }
        let pattern = line.trim_end_matches('/');
        ignored.push(Ignored {
            folder: folder.to_owned(),
            only_folders: line.ends_with('/'),
            anchored: pattern.contains('/'),
            pattern: pattern.trim_start_matches('/').to_owned(),
        });
    }
    Ok(ignored)
}

impl Ignored {
    fn matches(&self, path: &str, is_folder: bool) -> bool {
        if self.only_folders && !is_folder {
            return false;
        }
        let below = match self.folder.as_str() {
            "" => Some(path),
            folder => path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
        };
        let Some(below) = below else { return false };
        if self.anchored {
            let names: Vec<_> = below.split('/').collect();
            let patterns: Vec<_> = self.pattern.split('/').collect();
            names.len() == patterns.len() && names.iter().zip(patterns).all(|(name, pattern)| fits(pattern, name))
        } else {
            below.rsplit('/').next().is_some_and(|name| fits(&self.pattern, name))
        }
    }
}

/// Whether a name fits a pattern in which `*` stands for any run of characters.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name
            .strip_prefix(before)
            .is_some_and(|rest| (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits(after, &rest[at..]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(entries: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in entries {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let files = read(root.path()).unwrap();
        files.into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn ignored_files_and_the_git_folder_are_left_out() {
        let found = paths(&[
            (".gitignore", "/target\nnode_modules/\n*.pyc\n# a remark\n\n"),
            (".git/config", ""),
            ("target/debug/a.rs", ""),
            ("a/target/kept.rs", ""),
            ("a/node_modules/b.js", ""),
            ("a/b/c.pyc", ""),
            ("a/b/c.py", ""),
        ]);
        assert_eq!(found, [".gitignore", "a/b/c.py", "a/target/kept.rs"]);
    }

    #[test]
    fn a_gitignore_below_the_root_counts_for_its_own_folder_only() {
        let found = paths(&[("a/.gitignore", "/out/x*\n"), ("a/out/x1", ""), ("a/out/y", ""), ("out/x1", "")]);
        assert_eq!(found, ["a/.gitignore", "a/out/y", "out/x1"]);
    }

    #[test]
    fn a_pattern_that_is_not_understood_is_an_error_and_not_a_guess() {
        assert!(parse_ignores("", "!keep").is_err());
        assert!(parse_ignores("", "a/**/b").is_err());
    }
}
