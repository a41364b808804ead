//! Pages of `docs` open with what they are for and something to run, the index names each of them, and no link leads nowhere.

use std::collections::BTreeSet;

use super::Violation;
use crate::tree::File;

const INDEX: &str = "docs/README.md";
/// Pages without a command or a config of their own: the index, and one sentence for each term.
const LISTS: [&str; 2] = [INDEX, "docs/glossary.md"];
/// Documents outside `docs` whose links are checked too.
const ROOT: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];

pub(super) fn violations(files: &[File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let index = files.iter().find(|file| file.path == INDEX).map_or("", |file| file.text.as_str());
    for page in files.iter().filter(|file| is_guide(&file.path)) {
        violations.extend(opening_fault(page).map(|fault| violation(&page.path, fault)));
        let name = page.path.trim_start_matches("docs/");
        if !index.contains(&format!("]({name}")) {
            violations.push(violation(&page.path, format!("is in no row of {INDEX}: add the task that it is for")));
        }
    }
    for page in files.iter().filter(|file| has_links(&file.path)) {
        violations.extend(link_faults(page, files));
    }
    violations
}

fn violation(place: &str, fault: String) -> Violation {
    let remedy = "CONTRIBUTING.md says how pages are written".to_owned();
    Violation { rule: "pages", place: place.to_owned(), fault, remedy }
}

/// A page of `docs` itself, not of its folders.
fn is_guide(path: &str) -> bool {
    let name = path.strip_prefix("docs/").filter(|name| name.ends_with(".md") && !name.contains('/'));
    name.is_some() && !LISTS.contains(&path)
}

fn has_links(path: &str) -> bool {
    ROOT.contains(&path) || path.starts_with("docs/") && path.ends_with(".md")
}

/// A page begins with a paragraph, and has a block before its first section.
fn opening_fault(page: &File) -> Option<String> {
    let opening = page.text.split("\n## ").next().unwrap_or_default();
    let paragraph = opening.split("\n\n").nth(1).unwrap_or_default();
    if paragraph.is_empty() || paragraph.starts_with(['`', '|', '#', '-']) {
        return Some("does not begin with a paragraph that says what it is for".to_owned());
    }
    let has_block = opening.contains("\n```sh\n") || opening.contains("\n```toml\n") || opening.contains("\n```rust\n");
    (!has_block).then(|| "shows no command and no config before its first section".to_owned())
}

/// Links to files that do not exist, and to headings that their page does not have.
fn link_faults(page: &File, files: &[File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in lines_outside_blocks(&page.text) {
        for link in line.match_indices("](").filter_map(|(at, _)| line[at + 2..].split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.path.clone() } else { joined(&page.path, path) };
            let fault = match files.iter().find(|file| file.path == target) {
                None if files.iter().any(|file| file.path.starts_with(&format!("{target}/"))) => continue,
                None => format!("links to {link}, which does not exist"),
                Some(found) if heading.is_empty() || headings(&found.text).contains(heading) => continue,
                Some(_) => format!("links to {link}, and there is no such heading"),
            };
            violations.push(violation(&format!("{}:{number}", page.path), fault));
        }
    }
    violations
}

fn lines_outside_blocks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_block = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    })
}

/// The path of a link, from the root of the repository.
fn joined(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The names that links give to the headings of a page: lower case, without punctuation, with a hyphen for each space.
fn headings(text: &str) -> BTreeSet<String> {
    let lines = lines_outside_blocks(text)
        .filter_map(|(_, line)| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    let kept = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    lines.map(|line| line.trim().to_lowercase().chars().filter(|c| kept(*c)).collect::<String>().replace(' ', "-")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    const OPENING: &str = "# Push\n\nHow the node delivers.\n\n```sh\nchancery push ls\n```\n";

    fn faults(files: &[File]) -> Vec<String> {
        violations(files).into_iter().map(|v| format!("{}: {}", v.place, v.fault)).collect()
    }

    #[test]
    fn a_page_with_a_purpose_a_command_and_a_row_of_the_index_is_accepted() {
        let index = file(INDEX, "# Index\n\n| deliver | [push.md](push.md#what-is-sent-and-when) |\n");
        let page =
            file("docs/push.md", format!("{OPENING}\n## What is sent, and when?\n\n[up](#push), [code](../crates/core)\n"));
        assert_eq!(faults(&[index, page, file("crates/core/src/lib.rs", "")]), Vec::<String>::new());
    }

    #[test]
    fn a_page_without_purpose_command_or_row_is_refused() {
        for (text, words) in [
            ("# Push\n\n```sh\nchancery\n```\n", "begin with a paragraph"),
            ("# Push\n\nHow it is done.\n\n## A\n\n```sh\nchancery\n```\n", "no command and no config"),
            (OPENING, "is in no row"),
        ] {
            let found = faults(&[file("docs/push.md", text), file(INDEX, "# Index\n")]);
            assert!(found.iter().any(|fault| fault.contains(words)), "{words}: {found:?}");
        }
    }

    #[test]
    fn a_link_to_a_missing_file_or_heading_is_refused_outside_of_blocks() {
        let page = file("README.md", "[a](docs/b.md)\n[b](#gone)\n```\n[c](no.md)\n```\n[d](https://example.org/e#f)\n");
        let expected = [
            "README.md:1: links to docs/b.md, which does not exist",
            "README.md:2: links to #gone, and there is no such heading",
        ];
        assert_eq!(faults(&[page]), expected);
    }
}
