//! Finds the texts in Rust files that users read: help texts of commands, messages of errors and lines of the log.

use super::sentences::{ProseUnit, plain};

/// What a file with commands has in one of its `derive` attributes.
const COMMAND_DERIVES: &[&str] = &["Parser", "Args", "Subcommand", "ValueEnum"];

/// The macros of `tracing` that write a line of the log.
const LOG_MACROS: &[&str] = &["tracing::trace!(", "tracing::debug!(", "tracing::info!(", "tracing::warn!(", "tracing::error!("];

/// The help texts, error messages and log messages of one Rust file. In a file with commands every `///` comment counts as help: which of
/// them clap prints cannot be seen in the text alone.
pub(super) fn of_rust(text: &str) -> Vec<ProseUnit> {
    let mut units = error_messages(text);
    units.extend(log_messages(text));
    if has_commands(text) {
        units.extend(doc_comments(text, "///"));
    }
    for unit in &mut units {
        unit.text = plain(&unit.text, unit.terse);
    }
    units
}

fn has_commands(text: &str) -> bool {
    let derives = text.lines().filter_map(|line| line.trim().strip_prefix("#[derive("));
    let mut names = derives.flat_map(|derived| derived.split([',', ')'])).map(|name| name.trim().trim_start_matches("clap::"));
    names.any(|name| COMMAND_DERIVES.contains(&name))
}

/// The comments of one Rust file that begin with `mark`, for the prose rule.
pub(super) fn comments(text: &str, mark: &str) -> Vec<ProseUnit> {
    let mut units = doc_comments(text, mark);
    for unit in &mut units {
        unit.text = plain(&unit.text, unit.terse);
    }
    units
}

/// Each run of lines that begin with `mark`, paragraph by paragraph. Items of a list and rows of a table are paragraphs of
/// their own, and code blocks are left out.
fn doc_comments(text: &str, mark: &str) -> Vec<ProseUnit> {
    let mut units: Vec<ProseUnit> = Vec::new();
    let (mut open, mut fenced) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix(mark).map(str::trim);
        let is_fence = comment.is_some_and(|comment| comment.starts_with("```"));
        fenced = comment.is_some() && fenced != is_fence;
        let comment = comment.filter(|comment| !comment.is_empty() && !fenced && !is_fence);
        let is_item = comment.is_some_and(|comment| comment.starts_with("- ") || comment.starts_with('|'));
        match (comment, units.last_mut()) {
            (Some(comment), Some(unit)) if open && !is_item => {
                unit.text.push(' ');
                unit.text.push_str(comment);
            }
            (Some(comment), _) => units.push(ProseUnit { line: number + 1, text: comment.to_owned(), terse: true }),
            (None, _) => {}
        }
        open = comment.is_some();
    }
    units
}

/// The string in each `#[error("…")]`, and the one behind each `ErrorKind::NAME,`, in a `format!` or not.
fn error_messages(text: &str) -> Vec<ProseUnit> {
    let of_types = text.match_indices("#[error(").map(|(at, opening)| (at, &text[at + opening.len()..]));
    let of_kinds = text.match_indices("ErrorKind::").filter_map(|(at, opening)| {
        let name = &text[at + opening.len()..];
        let behind = name.trim_start_matches(|c: char| c.is_alphanumeric()).strip_prefix(',')?.trim_start();
        Some((at, behind.strip_prefix("format!(").unwrap_or(behind)))
    });
    let mut units = Vec::new();
    for (at, rest) in of_types.chain(of_kinds) {
        let Some(literal) = rest.trim_start().strip_prefix('"') else { continue };
        units.push(message_unit(text, at, literal));
    }
    units
}

/// The message of each log macro: the string that is an argument of its own, not the value of a field.
fn log_messages(text: &str) -> Vec<ProseUnit> {
    let calls = LOG_MACROS.iter().flat_map(|name| text.match_indices(name));
    calls.filter_map(|(at, opening)| Some(message_unit(text, at, own_argument(&text[at + opening.len()..])?))).collect()
}

/// The text behind the quote of the first string that is an argument of its own in a macro call.
fn own_argument(arguments: &str) -> Option<&str> {
    let (mut depth, mut before, mut rest) = (0_usize, ',', arguments);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '"' if depth == 0 && before == ',' => return Some(rest),
            '"' => rest = rest[up_to_quote(rest).len()..].strip_prefix('"').unwrap_or_default(),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if !c.is_whitespace() {
            before = c;
        }
    }
    None
}

/// A string literal as one line of prose, at the line of `at`.
fn message_unit(text: &str, at: usize, literal: &str) -> ProseUnit {
    let line = text[..at].matches('\n').count() + 1;
    let message = up_to_quote(literal).split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ");
    ProseUnit { line, text: message, terse: true }
}

/// The literal's text up to its closing quote.
fn up_to_quote(literal: &str) -> &str {
    let mut escaped = false;
    for (at, c) in literal.char_indices() {
        if c == '"' && !escaped {
            return &literal[..at];
        }
        escaped = c == '\\' && !escaped;
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, String)> {
        of_rust(text).into_iter().map(|unit| (unit.line, unit.text)).collect()
    }

    #[test]
    fn error_messages_are_read_over_several_lines_and_up_to_their_quote() {
        let text =
            "#[error(\"a \\\"b\\\" `x` {c}\")]\nA,\n#[error(\n    \"long \\\n     one\",\n)]\nB,\n#[error(transparent)]\nC,\n";
        assert_eq!(texts(text), [(1, "a \\\"b\\\"  {c}".to_owned()), (3, "long one".to_owned())]);
    }

    #[test]
    fn messages_of_error_kinds_are_read_with_and_without_a_format() {
        let text = "Error::new(ErrorKind::A, \"one\")\nError::new(\n    ErrorKind::B,\n    format!(\"two {x}\"),\n)\nErrorKind::C => 1,\n";
        assert_eq!(texts(text), [(1, "one".to_owned()), (3, "two {x}".to_owned())]);
    }

    #[test]
    fn log_messages_are_read_and_the_values_of_their_fields_are_not() {
        let text = "tracing::info!(\"one\");\ntracing::warn!(%a, way = \"left\", x = f(b, \"c\"), \"two {a}\", a);\n\
                    tracing::error!(\n    name,\n    \"three \\\n     lines\",\n);\ntracing::debug!(way = \"no message\");\ninfo!(\"no\");\n";
        let mut found = texts(text);
        found.sort();
        assert_eq!(found, [(1, "one".to_owned()), (2, "two {a}".to_owned()), (3, "three lines".to_owned())]);
    }

    #[test]
    fn comments_are_read_by_their_mark_without_code_and_item_by_item() {
        let text = "//! File.\n\n/// One\n/// more:\n/// - a\n/// - b\n///\n/// ```\n/// code\n/// ```\n/// Last.\nstruct A;\n";
        let found = |mark| comments(text, mark).into_iter().map(|unit| (unit.line, unit.text)).collect::<Vec<_>>();
        assert_eq!(found("//!"), [(1, "File.".to_owned())]);
        let expected = [(3, "One more:"), (5, "- a"), (6, "- b"), (11, "Last.")].map(|(line, text)| (line, text.to_owned()));
        assert_eq!(found("///"), expected);
    }

    #[test]
    fn doc_comments_count_as_help_only_in_a_file_with_commands() {
        let comments = "/// First\n/// line.\n///\n/// Second.\nstruct A;\n";
        assert_eq!(texts(comments), []);
        let command = format!("#[derive(Debug, clap::Args)]\n{comments}");
        assert_eq!(texts(&command), [(2, "First line.".to_owned()), (5, "Second.".to_owned())]);
        assert_eq!(texts(&format!("#[derive(ArgsOfMine)]\n{comments}")), []);
    }
}
