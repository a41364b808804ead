//! Nothing in the tree names a folder of somebody's machine, where it would be wrong for everybody else.

use super::Violation;
use crate::tree::File;

/// Where people and build machines keep things. Written in halves, so that this file passes its own rule.
const ROOTS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/workspa", "ces/"),
    concat!("/bui", "lds/"),
    concat!("/mn", "t/"),
    concat!("/tm", "p/"),
    concat!("/var/tm", "p/"),
    concat!("C:\\Us", "ers\\"),
];

pub(super) fn violations(file: &File) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let named = ROOTS.iter().find(|root| names_folder(line, root));
        violations.extend(named.map(|root| Violation {
            rule: "paths",
            place: format!("{}:{}", file.path, number + 1),
            fault: format!("names the machine folder {root}"),
            remedy: "use a path from the root, a setting, or a temporary folder made by the test".to_owned(),
        }));
    }
    violations
}

/// Whether the line holds an absolute path that begins with `root`. In the middle of a URL or of a relative path it is a
/// name like any other.
fn names_folder(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = &line[..at];
        let starts_a_path = !before.ends_with(|c: char| c.is_alphanumeric() || "_-.}~/".contains(c));
        starts_a_path || before.ends_with("file://")
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let found = violations(&file("docs/a.md", text)).into_iter();
        found.map(|v| v.place).collect()
    }

    #[test]
    fn a_path_on_somebodys_machine_is_refused_wherever_it_stands() {
        for root in ROOTS {
            for text in [
                format!("{root}project/x"),
                format!("run `{root}x`"),
                format!("a=\"{root}x\""),
                format!("see file://{root}x"),
                format!("PATH=$PATH:{root}bin"),
            ] {
                assert_eq!(lines(&format!("fine\n{text}\n")), ["docs/a.md:2"], "{text}");
            }
        }
    }

    #[test]
    fn urls_and_relative_paths_with_the_same_words_are_fine() {
        for text in [
            concat!("https://example.com/wo", "rk/item"),
            concat!("./tm", "p/x and ../ho", "me/x"),
            concat!("crates/wo", "rk/src"),
            "/usr/bin/env, /etc/hosts, /dev/null, /agents/home",
        ] {
            assert!(lines(text).is_empty(), "{text}");
        }
    }
}
