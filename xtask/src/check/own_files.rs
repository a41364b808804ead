//! A crate reads only its own files: no source and no test of `crates/*` names a path that leaves its crate.

use super::Violation;
use crate::tree::File;

/// What makes the rest of a line a path from the folder of the file.
const FROM_THE_FILE: [&str; 4] = ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];

/// What makes the rest of a line a path from the folder of the package.
const FROM_THE_PACKAGE: &str = "CARGO_MANIFEST_DIR";

pub(super) fn violations(file: &File) -> Vec<Violation> {
    let Some(depth) = depth_in_crate(file) else {
        return Vec::new();
    };
    let lines = file.text.lines().enumerate();
    let leaving = lines.filter(|(_, line)| climbs(line).any(|(steps, from)| steps > if from == Base::File { depth } else { 0 }));
    leaving
        .map(|(number, _)| Violation {
            rule: "own files",
            place: format!("{}:{}", file.path, number + 1),
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

/// For each path that begins on the line: how many folders it goes up at once, and from where.
fn climbs(line: &str) -> impl Iterator<Item = (usize, Base)> {
    let from_file = FROM_THE_FILE
        .iter()
        .flat_map(move |start| line.match_indices(start).map(move |(at, _)| (steps_up(&line[at + start.len()..]), Base::File)));
    let from_package = line.match_indices(FROM_THE_PACKAGE).map(move |(at, _)| {
        let rest = &line[at..];
        (rest.find("..").map_or(0, |up| steps_up(&rest[up..])), Base::Package)
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
    }

    #[test]
    fn what_is_no_crate_may_read_the_repository() {
        assert_eq!(count("benches/src/a.rs", "include_str!(\"../../docs/a.md\")"), 0);
        assert_eq!(count("xtask/src/a.rs", "include_str!(\"../../docs/a.md\")"), 0);
    }
}
