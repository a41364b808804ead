//! A crate reads only its own files: no source and no test of `crates/*` names a path that leaves its crate.

use super::Violation;
use crate::tree::File;

/// What makes the text behind it a path from the folder of the file.
const FROM_THE_FILE: [&str; 4] = ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];

/// What makes the rest of a statement a path from the folder of the package.
const FROM_THE_PACKAGE: &str = "CARGO_MANIFEST_DIR";

pub(super) fn violations(file: &File) -> Vec<Violation> {
    let Some(depth) = depth_in_crate(file) else {
        return Vec::new();
    };
    let mut leaving: Vec<usize> = climbs(&file.text)
        .filter(|(_, steps, from)| *steps > if *from == Base::File { depth } else { 0 })
        .map(|(at, _, _)| file.text[..at].matches('\n').count() + 1)
        .collect();
    leaving.sort_unstable();
    leaving.dedup();
    leaving
        .into_iter()
        .map(|line| Violation {
            rule: "own files",
            place: format!("{}:{line}", file.path),
            fault: "reads a file outside its crate, which a package of the crate does not have".to_owned(),
            remedy: "move the file into the crate, or add a symbolic link to it there".to_owned(),
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    File,
    Package,
}

/// How many folders are between the file and the root of its crate; nothing for a file that is in no crate.
fn depth_in_crate(file: &File) -> Option<usize> {
    let within = file.path.strip_prefix("crates/").filter(|_| file.is_rust())?;
    // The first name is the crate, the last one the file.
    within.matches('/').count().checked_sub(1)
}

/// Returns for each path where it begins, how many folders it goes up, and from which folder. A statement of more lines is
/// read to its end, because formatting breaks it between the folder and the path.
fn climbs(text: &str) -> impl Iterator<Item = (usize, usize, Base)> {
    let from_file = FROM_THE_FILE.iter().flat_map(move |start| {
        let quote = start.len() - 1;
        // The macro may be followed by a line break and spaces.
        text.match_indices(&start[..quote]).filter_map(move |(at, _)| {
            let path = text[at + quote..].trim_start().strip_prefix('"')?;
            Some((at, steps_up(path), Base::File))
        })
    });
    let from_package = text.match_indices(FROM_THE_PACKAGE).map(move |(at, _)| {
        let statement = text[at..].split([';', '}']).next().unwrap_or_default();
        let literals = statement.split('"').filter(|literal| literal.starts_with("..") || literal.starts_with("/.."));
        (at, literals.map(|path| steps_up(path.trim_start_matches('/'))).sum(), Base::Package)
    });
    from_file.chain(from_package)
}

fn steps_up(path: &str) -> usize {
    path.split('/').take_while(|name| name.starts_with("..")).count()
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn count(path: &str, line: &str) -> usize {
        violations(&file(path, line)).len()
    }

    #[test]
    fn an_included_file_may_be_as_far_up_as_the_root_of_the_crate_and_no_farther() {
        for start in FROM_THE_FILE {
            let of_the_crate = format!("{start}../docs/a.md\")");
            assert_eq!(count("crates/wire/src/a.rs", &of_the_crate), 0, "{of_the_crate}");
            let outside = format!("{start}../../docs/a.md\")");
            assert_eq!(count("crates/wire/src/a.rs", &outside), 1, "{outside}");
            assert_eq!(count("crates/wire/src/json/a.rs", &outside), 0, "{outside}");
        }
    }

    #[test]
    fn a_path_from_the_package_may_not_go_up() {
        let joined = concat!("Path::new(env!(\"CARGO_MANI", "FEST_DIR\")).join(\"../../docs\")");
        assert_eq!(count("crates/wire/tests/it/a.rs", joined), 1);
        let own = concat!("Path::new(env!(\"CARGO_MANI", "FEST_DIR\")).join(\"docs\")");
        assert_eq!(count("crates/wire/tests/it/a.rs", own), 0);
        let concatenated = concat!("concat!(env!(\"CARGO_MANI", "FEST_DIR\"), \"/../../docs\")");
        assert_eq!(count("crates/wire/tests/it/a.rs", concatenated), 1);
    }

    #[test]
    fn a_path_on_the_next_line_counts_and_one_of_another_statement_does_not() {
        let start = concat!("Path::new(env!(\"CARGO_MANI", "FEST_DIR\"))");
        let broken = format!("let root = {start}\n    .parent()\n    .join(\"../..\");");
        assert_eq!(count("crates/wire/tests/it/a.rs", &broken), 1);
        let other = format!("let root = {start};\nlet up = \"../..\";");
        assert_eq!(count("crates/wire/tests/it/a.rs", &other), 0);
        let included = concat!("include_st", "r!(\n    \"../../../docs/a.md\"\n)");
        assert_eq!(count("crates/wire/src/a.rs", included), 1);
    }

    #[test]
    fn what_is_no_crate_may_read_the_repository() {
        assert_eq!(count("benches/src/a.rs", "include_str!(\"../../docs/a.md\")"), 0);
        assert_eq!(count("xtask/src/a.rs", "include_str!(\"../../docs/a.md\")"), 0);
    }
}
