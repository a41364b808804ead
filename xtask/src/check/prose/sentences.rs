//! Splits Markdown and config comments into the sentences that the prose rule measures.

/// A run of prose that is read as one: a paragraph, a heading, a list item, a table cell or a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProseUnit {
    /// The line of the file that it starts on, from 1.
    pub line: usize,
    /// Its text in one line. [`CODE`] stands for each code span outside tables.
    pub text: String,
    /// Whether `;` ends a sentence too: in table cells and config comments it separates entries of a list.
    pub terse: bool,
}

/// What a code span becomes in prose: one word.
const CODE: &str = "`code`";

/// Gathers lines into units.
#[derive(Default)]
struct UnitBuilder {
    units: Vec<ProseUnit>,
    open: Option<ProseUnit>,
}

impl UnitBuilder {
    fn add(&mut self, line: usize, text: &str, terse: bool) {
        let open = self.open.get_or_insert_with(|| ProseUnit { line, text: String::new(), terse });
        if !open.text.is_empty() {
            open.text.push(' ');
        }
        open.text.push_str(text.trim());
    }

    fn close(&mut self) {
        self.units.extend(self.open.take());
    }

    fn finish(mut self) -> Vec<ProseUnit> {
        self.close();
        let mut units = self.units;
        for unit in &mut units {
            unit.text = plain(&unit.text, unit.terse);
        }
        units.retain(|unit| !unit.text.trim().is_empty());
        units
    }
}

/// The units of a Markdown file. Code blocks and HTML comments are left out.
pub(super) fn of_markdown(text: &str) -> Vec<ProseUnit> {
    let mut built = UnitBuilder::default();
    let (mut fenced, mut commented) = (false, false);
    for (number, raw) in text.lines().enumerate() {
        let line = raw.trim_start().trim_start_matches("> ").trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            built.close();
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        if commented || line.starts_with("<!--") {
            built.close();
            commented = !line.contains("-->");
            continue;
        }
        if line.is_empty() {
            built.close();
        } else if line.starts_with('|') {
            built.close();
            for cell in cells(line) {
                built.add(number + 1, &cell, true);
                built.close();
            }
        } else if line.starts_with('#') {
            built.close();
            built.add(number + 1, line.trim_start_matches('#'), false);
            built.close();
        } else {
            if let Some(item) = list_item(line) {
                built.close();
                built.add(number + 1, item, false);
                continue;
            }
            built.add(number + 1, line, false);
        }
    }
    built.finish()
}

/// The units of the comments in a TOML file: comment lines that follow each other are one unit, and a comment behind a value
/// goes on in the indented comment lines below it. A line that is a setting commented out is no prose, only what follows it.
pub(super) fn of_toml_comments(text: &str) -> Vec<ProseUnit> {
    let mut built = UnitBuilder::default();
    for (number, line) in text.lines().enumerate() {
        let (setting, comment) = match line.strip_prefix('#') {
            Some(rest) if is_setting(rest) => (true, behind_value(rest)),
            Some(rest) => (false, Some(rest)),
            None => match line.trim_start().strip_prefix('#') {
                Some(rest) => (false, Some(rest)),
                None => (true, behind_value(line)),
            },
        };
        if setting {
            built.close();
        }
        match comment.map(|comment| comment.trim_start_matches(['#', ' ']).trim()) {
            Some(comment) if !comment.is_empty() => built.add(number + 1, comment, true),
            _ => built.close(),
        }
    }
    built.finish()
}

/// Whether a comment's text is a setting or a table header that is commented out.
fn is_setting(text: &str) -> bool {
    let text = text.trim();
    let is_key = |c: char| c.is_alphanumeric() || "_-.\"".contains(c);
    let key_of_value = text.split_once(" = ").is_some_and(|(key, _)| key.chars().all(is_key));
    key_of_value || text.starts_with('[') || text.starts_with('{') || text.starts_with(']')
}

/// The comment behind a value, if there is one: a `#` outside of quotes.
fn behind_value(line: &str) -> Option<&str> {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return Some(&line[at + 1..]),
            _ => {}
        }
    }
    None
}

fn list_item(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some(rest);
    }
    let digits = line.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
    line[digits..].strip_prefix(". ")
}

/// The cells of a table row; a `|` that is escaped or inside a code span does not end one.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let (mut code, mut escaped) = (false, false);
    for c in line.trim_matches('|').chars() {
        if c == '|' && !code && !escaped {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push(c);
        }
        code ^= c == '`';
        escaped = c == '\\';
    }
    cells.retain(|cell| cell.contains(char::is_alphabetic));
    cells
}

/// The text without URLs and code spans; outside of terse units each span leaves [`CODE`].
pub(super) fn plain(text: &str, terse: bool) -> String {
    without_urls(&without_code(text, if terse { "" } else { CODE }))
}

/// The text with each code span replaced. A span without its closing backtick is left as it is.
fn without_code(text: &str, replacement: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].chars().take_while(|c| *c == '`').count();
        let body = &rest[start + ticks..];
        let Some(end) = body.find(&"`".repeat(ticks)) else { break };
        kept.push_str(&rest[..start]);
        kept.push_str(replacement);
        rest = &body[end + ticks..];
    }
    kept.push_str(rest);
    kept
}

/// The text with the targets of links and bare URLs taken out.
fn without_urls(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        kept.push_str(&rest[..at]);
        let target = &rest[at + 2..];
        rest = target.find(')').map_or("", |end| &target[end + 1..]);
    }
    kept.push_str(rest);
    kept.split(' ').filter(|word| !word.contains("://")).collect::<Vec<_>>().join(" ")
}

/// The sentences of a unit. `.`, `?`, `!` and `:` end one when a space or the end follows, in terse units `;` does too.
/// The colon counts because a list, an example or a definition follows it. "e.g." and "i.e." end nothing.
pub(super) fn split(unit: &ProseUnit) -> Vec<&str> {
    let text = unit.text.as_str();
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let ends = matches!(c, '.' | '?' | '!' | ':') || (unit.terse && c == ';');
        let after = text[at + c.len_utf8()..].trim_start_matches(['"', '”', ')', '*', '_', '\'']);
        let abbreviates = ["e.g", "i.e", "vs"].iter().any(|short| text[start..at].ends_with(short));
        if ends && !abbreviates && (after.is_empty() || after.starts_with(' ')) {
            sentences.push(text[start..=at].trim());
            start = at + c.len_utf8();
        }
    }
    sentences.push(text[start..].trim());
    sentences.retain(|sentence| sentence.contains(char::is_alphanumeric));
    sentences
}

/// How many words a sentence has: runs between spaces with a letter or digit in them.
pub(super) fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(units: &[ProseUnit]) -> Vec<(usize, &str)> {
        units.iter().map(|unit| (unit.line, unit.text.as_str())).collect()
    }

    #[test]
    fn paragraphs_items_headings_and_cells_are_units_of_their_own() {
        let units = of_markdown(
            "# A title\n\nOne line\nand its next.\n- item\n  goes on\n1. second\n\n| a | b |\n|---|---|\n| c `x|y` | d |\n",
        );
        let expected = [
            (1, "A title"),
            (3, "One line and its next."),
            (5, "item goes on"),
            (7, "second"),
            (9, "a"),
            (9, "b"),
            (11, "c"),
            (11, "d"),
        ];
        let units: Vec<_> = texts(&units).into_iter().map(|(line, text)| (line, text.trim())).collect();
        assert_eq!(units, expected);
    }

    #[test]
    fn code_blocks_comments_and_urls_are_left_out() {
        let units = of_markdown("a\n```sh\nwhoever\n```\nb [link text](docs/x.md#y), https://example.org z\n<!-- c -->\n");
        assert_eq!(texts(&units), [(1, "a"), (5, "b [link text, z")]);
    }

    #[test]
    fn a_code_span_is_one_word_in_prose_and_none_in_a_table() {
        let prose = of_markdown("run `chancery serve --agent echo` now");
        assert_eq!(words(&prose[0].text), 3);
        let table = of_markdown("| run `chancery serve --agent echo` now |");
        assert_eq!(words(&table[0].text), 2);
    }

    #[test]
    fn sentences_end_at_stops_and_colons_and_not_inside_numbers_or_names() {
        let unit = |text: &str, terse| ProseUnit { line: 1, text: text.to_owned(), terse };
        let prose = unit("Version 1.0 is new. It has two forms: a; b (see c.d). Is it e.g. this? Yes", false);
        assert_eq!(split(&prose), ["Version 1.0 is new.", "It has two forms:", "a; b (see c.d).", "Is it e.g. this?", "Yes"]);
        assert_eq!(split(&unit("a; b", true)), ["a;", "b"]);
    }

    #[test]
    fn comments_of_a_config_are_read_with_and_without_a_value() {
        let text =
            "# First line\n# and next.\n\nkey = \"a#b\" # behind it\n            # goes on\n# off = 3 # what it does\n# [a.b]\n";
        let units = of_toml_comments(text);
        assert_eq!(texts(&units), [(1, "First line and next."), (4, "behind it goes on"), (6, "what it does")]);
    }
}
