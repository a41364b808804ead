//! Lines of prose in documents end at 110 columns. Tables, code and lines that cannot be broken may be longer.

use super::Violation;
use crate::tree::File;

const MOST_COLUMNS: usize = 110;

pub(super) fn violations(file: &File) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut fenced = false;
    for (number, line) in file.text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        let columns = line.chars().count();
        if fenced || is_fence || columns <= MOST_COLUMNS || !can_be_broken(line) {
            continue;
        }
        violations.push(Violation {
            rule: "prose",
            place: format!("{}:{}", file.path, number + 1),
            fault: format!("has {columns} columns"),
            remedy: format!("break the line before column {MOST_COLUMNS}"),
        });
    }
    violations
}

/// A table row and a comment have to stay on one line, and a long link or code span has no space to break at.
fn can_be_broken(line: &str) -> bool {
    let text = line.trim_start();
    let is_whole = text.trim_start_matches("> ").starts_with('|') || text.starts_with("<!--");
    !is_whole && text.chars().take(MOST_COLUMNS - (line.len() - text.len()).min(MOST_COLUMNS)).skip(3).any(|c| c == ' ')
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::file;
    use super::*;

    #[test]
    fn prose_ends_at_110_columns_and_tables_code_and_links_need_not() {
        let found = |text: &str| violations(&file("docs/a.md", text)).into_iter().map(|v| v.place).collect::<Vec<_>>();
        let (fits, wide) = (format!("{} end", "é".repeat(106)), format!("{} end!", "é".repeat(106)));
        assert_eq!(found(&format!("{fits}\n{wide}\n")), ["docs/a.md:2"]);
        assert_eq!(found(&format!("| {wide} |\n```sh\n{wide}\n```\n- {}\n<!-- {wide} -->\n", "x".repeat(130))), [""; 0]);
    }
}
