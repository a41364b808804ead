//! Finds the texts in Rust files that users read: the comments that become help texts, and every string literal.

use super::super::rust_text::{StringLiteral, code_only, strings};
use super::super::unwraps::test_blocks;
use super::sentences::{ProseUnit, plain};

/// In a comment on the line of a literal or on the line above, followed by a reason: the literal is not prose.
const EXEMPT: &str = "// not prose: ";

/// What SQL begins with.
const SQL: &[&str] =
    &["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "DROP ", "PRAGMA ", "BEGIN ", "WITH ", "WHERE ", "AND "];

/// What a file with commands has in one of its `derive` attributes.
const COMMAND_DERIVES: &[&str] = &["Parser", "Args", "Subcommand", "ValueEnum"];

/// The help texts and the string literals of one Rust file, without those of its tests. In a file with commands every `///`
/// comment counts as help: which of them clap prints cannot be seen in the text alone.
pub(super) fn of_rust(text: &str) -> Vec<ProseUnit> {
    let mut units = literals(text);
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

/// The lines of each string literal with a space in it, except SQL, JSON, and what a comment exempts with [`EXEMPT`].
fn literals(text: &str) -> Vec<ProseUnit> {
    let tests = test_blocks(&code_only(text));
    let lines: Vec<&str> = text.lines().collect();
    let mut units = Vec::new();
    for literal in strings(text) {
        let line = text[..literal.at].matches('\n').count() + 1;
        let exempts = |line: &&str| line.split_once(EXEMPT).is_some_and(|(_, reason)| !reason.trim().is_empty());
        let is_exempt = lines[line.saturating_sub(2)..line].iter().any(exempts);
        let is_test = tests.iter().any(|block| block.contains(&literal.at));
        if is_prose(literal.body) && !is_exempt && !is_test {
            units.extend(paragraphs(&literal, line));
        }
    }
    units
}

fn is_prose(body: &str) -> bool {
    let body = body.trim_start_matches(['\\', '\n', ' ']);
    body.trim_end().contains(' ')
        && !SQL.iter().any(|word| body.starts_with(word))
        && !body.starts_with("{\\\"")
        && !body.starts_with("{\"")
}

/// The printed lines of a literal as prose. Lines without indentation that follow each other are one unit; an indented line is
/// one for itself, and two spaces in it separate a command from its remark.
fn paragraphs(literal: &StringLiteral<'_>, first_line: usize) -> Vec<ProseUnit> {
    let mut units: Vec<ProseUnit> = Vec::new();
    let mut open = false;
    for (line, printed) in printed_lines(literal, first_line) {
        let is_indented = printed.starts_with(' ') && first_line != line;
        match units.last_mut() {
            Some(unit) if open && !is_indented && !printed.is_empty() => {
                unit.text.push(' ');
                unit.text.push_str(printed.trim());
            }
            _ => {
                let columns = printed.split("  ").map(str::trim).filter(|column| !column.is_empty());
                units.extend(columns.map(|column| ProseUnit { line, text: column.to_owned(), terse: true }));
            }
        }
        open = !is_indented && !printed.is_empty();
    }
    units
}

/// The lines that a literal prints, each with the line of the file it stands on.
fn printed_lines(literal: &StringLiteral<'_>, first_line: usize) -> Vec<(usize, String)> {
    let mut lines = vec![(first_line, String::new())];
    let mut at = first_line;
    let mut chars = literal.body.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' && !literal.raw { chars.next() } else { None };
        match (c, escaped) {
            (_, Some('\n')) => {
                at += 1;
                while let Some(space) = chars.next_if(|c| c.is_whitespace()) {
                    at += usize::from(space == '\n');
                }
                if let Some((line, _)) = lines.last_mut().filter(|(_, printed)| printed.is_empty()) {
                    *line = at;
                }
            }
            (_, Some('n')) => lines.push((at, String::new())),
            ('\n', _) => {
                at += 1;
                lines.push((at, String::new()));
            }
            (c, escaped) => lines.last_mut().expect("there is a line").1.push(escaped.unwrap_or(c)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, String)> {
        of_rust(text).into_iter().map(|unit| (unit.line, unit.text)).collect()
    }

    #[test]
    fn literals_are_read_over_several_lines_with_their_escapes() {
        let text =
            "#[error(\"a \\\"b\\\" `x` {c}\")]\nA,\n#[error(\n    \"long \\\n     one\",\n)]\nB,\nlet a = r#\"raw \"one\"\"#;\n";
        assert_eq!(texts(text), [(1, "a \"b\"  {c}".to_owned()), (4, "long one".to_owned()), (8, "raw \"one\"".to_owned())]);
    }

    #[test]
    fn words_sql_json_tests_and_exempt_literals_are_not_prose() {
        let other = "a(\"word\", \"SELECT a FROM b\", \"\\\n   SELECT a\", \"{\\\"a\\\": 1}\", r#\"{\"a\": 1}\"#);\n";
        let tests = "#[cfg(test)]\nmod tests {\n    const A: &str = \"a b\";\n}\n";
        let exempt = "// not prose: a name of the schema\nlet a = \"a b\";\nlet b = \"b c\"; // not prose: so\n";
        for text in [other, tests, exempt] {
            assert_eq!(texts(text), [], "{text}");
        }
        assert_eq!(texts("// not prose: \nlet a = \"a b\";\n").len(), 1, "an exemption has a reason");
    }

    #[test]
    fn an_epilogue_is_read_line_by_line_and_its_remarks_apart_from_the_commands() {
        let text =
            "const A: &str = \"\\\nExamples:\n  chancery a B   what it does\n  chancery c\n\nOne\nsentence.\\n\\nLast one\";\n";
        let found = ["Examples:", "chancery a B", "what it does", "chancery c", "One sentence.", "Last one"];
        let lines = [2, 3, 3, 4, 6, 7];
        assert_eq!(texts(text), lines.into_iter().zip(found.map(str::to_owned)).collect::<Vec<_>>());
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
