//! Documents say one fact a sentence, in at most thirty words, and use words that readers search for.
//!
//! Checked are the documents of the root, everything below `docs`, every README, the Unreleased part of the changelog, the comments of the
//! example config, and in the crates comments and string literals. What ends a sentence is in [`sentences::split`], what counts as a word in [`sentences::words`].

mod levels;
mod phrases;
mod rust_texts;
mod sentences;
mod widths;

use super::Violation;
use super::unwraps::is_shipped;
use crate::tree::File;
use phrases::{REFUSED, REFUSED_IN_PRINT, RefusedPhrase};
use sentences::ProseUnit;

const MOST_WORDS: usize = 30;
const DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];
const CHANGELOG: &str = "CHANGELOG.md";
const CONFIG: &str = "examples/chancery.toml";

pub(super) fn violations(file: &File) -> Vec<Violation> {
    let mut violations = Vec::new();
    if is_page(&file.path) {
        violations.extend(widths::violations(file));
    }
    for unit in units(file) {
        violations.extend(long_sentences(file, &unit));
        violations.extend(refused_phrases(file, &unit, REFUSED_IN_PRINT.iter().chain(REFUSED)));
    }
    violations
}

/// The same for the help texts and string literals of the crates.
pub(super) fn violations_in_printed_texts(file: &File) -> Vec<Violation> {
    if !is_shipped(&file.path) {
        return Vec::new();
    }
    let mut violations = levels::violations(file);
    for unit in rust_texts::of_rust(&file.text) {
        violations.extend(long_sentences(file, &unit));
        violations.extend(refused_phrases(file, &unit, REFUSED_IN_PRINT.iter().chain(REFUSED)));
    }
    violations
}

/// The same for the `//!` and `///` comments of the crates.
pub(super) fn violations_in_comments(file: &File) -> Vec<Violation> {
    if !file.is_rust() || !file.path.starts_with("crates/") || !file.path.contains("/src/") {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for unit in rust_texts::comments(&file.text, "//!").into_iter().chain(rust_texts::comments(&file.text, "///")) {
        violations.extend(long_sentences(file, &unit));
        violations.extend(refused_phrases(file, &unit, REFUSED.iter()));
    }
    violations
}

fn units(file: &File) -> Vec<ProseUnit> {
    let path = file.path.as_str();
    if is_page(path) {
        sentences::of_markdown(&file.text)
    } else if path == CHANGELOG {
        sentences::of_markdown(unreleased(&file.text))
    } else if path == CONFIG {
        sentences::of_toml_comments(&file.text)
    } else {
        Vec::new()
    }
}

fn is_page(path: &str) -> bool {
    let is_readme = path == "README.md" || path.ends_with("/README.md");
    is_readme || path.starts_with("docs/") && path.ends_with(".md") || DOCUMENTS.contains(&path)
}

/// The changelog down to the heading of the first release.
fn unreleased(text: &str) -> &str {
    let Some(start) = text.find("\n## ") else { return text };
    let end = text[start + 1..].find("\n## ").map_or(text.len(), |at| start + 1 + at);
    &text[..end]
}

fn long_sentences(file: &File, unit: &ProseUnit) -> Vec<Violation> {
    let sentences = sentences::split(unit).into_iter().map(|sentence| (sentences::words(sentence), sentence));
    let long = sentences.filter(|(words, _)| *words > MOST_WORDS);
    long.map(|(words, sentence)| Violation {
        rule: "prose",
        place: format!("{}:{}", file.path, unit.line),
        fault: format!("has a sentence of {words} words: \"{} …\"", beginning(sentence)),
        remedy: format!("write one fact a sentence, at most {MOST_WORDS} words, or make it a list or a table"),
    })
    .collect()
}

fn refused_phrases<'a>(file: &File, unit: &ProseUnit, phrases: impl Iterator<Item = &'a RefusedPhrase>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut text = format!(" {} ", plain_words(&unit.text));
    for refused in phrases {
        let phrase = format!(" {} ", refused.phrase);
        while let Some(at) = text.find(&phrase) {
            violations.push(Violation {
                rule: "prose",
                place: format!("{}:{}", file.path, unit.line),
                fault: format!("says \"{}\"", refused.phrase),
                remedy: format!("write instead: {}", refused.instead),
            });
            // Found once: a shorter phrase inside it is not a second violation.
            text.replace_range(at..at + phrase.len(), " | ");
        }
    }
    violations
}

/// The words of a text in lower case, one space between them. Punctuation becomes a mark of its own, so that no phrase is
/// found across it.
fn plain_words(text: &str) -> String {
    let mut plain = String::new();
    for word in text.split_whitespace() {
        let core = word.trim_matches(|c: char| !c.is_alphanumeric());
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(&core.to_lowercase());
        if word.ends_with(['.', ',', ';', ':', '?', '!', ')']) {
            plain.push_str(" |");
        }
    }
    plain
}

fn beginning(sentence: &str) -> String {
    sentence.split_whitespace().take(6).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        violations(&file(path, text)).into_iter().map(|v| format!("{}: {}", v.place, v.fault)).collect()
    }

    fn sentence(words: usize) -> String {
        format!("{}end.", "word ".repeat(words - 1))
    }

    #[test]
    fn thirty_words_pass_and_thirty_one_do_not() {
        for path in ["README.md", "docs/a.md", "docs/errors/B.md", "SECURITY.md"] {
            let lines = |words| sentence(words).replace("word word ", "word word\n");
            assert!(faults(path, &lines(30)).is_empty());
            let found = faults(path, &format!("Fine.\n\n{}\n", lines(31)));
            assert_eq!(found, [format!("{path}:3: has a sentence of 31 words: \"word word word word word word …\"")]);
        }
    }

    #[test]
    fn a_refused_phrase_is_found_in_any_case_over_line_breaks_and_once() {
        assert_eq!(faults("docs/a.md", "It goes to Those\nwho ask."), ["docs/a.md:1: says \"those who\""]);
        assert_eq!(faults("docs/a.md", "Nobody else."), ["docs/a.md:1: says \"nobody else\""]);
        assert!(faults("docs/a.md", "Of those, who asks? `whoever`").is_empty());
    }

    #[test]
    fn every_refused_phrase_is_found_by_itself_and_says_what_to_write() {
        for refused in REFUSED_IN_PRINT.iter().chain(REFUSED) {
            let found = violations(&file("docs/a.md", format!("It {} now.", refused.phrase)));
            assert_eq!(found.len(), 1, "{}: {found:?}", refused.phrase);
            assert!(found[0].remedy.contains(refused.instead));
        }
    }

    #[test]
    fn of_the_changelog_only_the_unreleased_part_is_read() {
        let text = format!("# Changelog\n\n## Unreleased\n- whoever\n\n## 0.1\n{}\n", sentence(40));
        assert_eq!(faults("CHANGELOG.md", &text), ["CHANGELOG.md:4: says \"whoever\""]);
    }

    #[test]
    fn config_comments_are_read_and_other_files_are_not() {
        assert_eq!(faults("examples/chancery.toml", "a = 1 # whoever\n"), ["examples/chancery.toml:1: says \"whoever\""]);
        assert_eq!(faults("benches/README.md", "whoever"), ["benches/README.md:1: says \"whoever\""]);
        assert!(faults("fixtures/frameworks/notes.md", "whoever").is_empty());
        assert!(faults("crates/core/src/a.rs", "// whoever").is_empty());
    }

    #[test]
    fn comments_of_the_crates_are_read_and_not_those_of_tests() {
        let found = |path: &str| {
            let found = violations_in_comments(&file(path, format!("//! Whoever.\n\n/// {}\nstruct A;\n", sentence(31))));
            found.len()
        };
        assert_eq!([found("crates/new/src/a.rs"), found("crates/new/tests/a.rs"), found("xtask/src/a.rs")], [2, 0, 0]);
    }

    #[test]
    fn printed_texts_are_read_in_the_sources_of_the_crates_alone() {
        for text in ["#[error(\"nobody called\")]\nstruct A;\n", "fn a() {\n    bail!(\"nobody called\");\n}\n"] {
            let found = |path: &str| violations_in_printed_texts(&file(path, text)).len();
            assert_eq!((found("crates/core/src/a.rs"), found("crates/core/tests/a.rs"), found("xtask/src/a.rs")), (1, 0, 0));
        }
    }
}
