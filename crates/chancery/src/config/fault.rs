//! What is wrong with a config, and where.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use serde::Serialize;

use super::places::Places;

/// One fault, at a line and column counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigFault {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

/// Every fault of a text that is no valid config, as an error with a line for each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", joined(.0))]
pub struct ConfigFaults(pub Vec<ConfigFault>);

fn joined(faults: &[ConfigFault]) -> String {
    let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Why a config file cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {file}: {reason}", file = file.display())]
    Unreadable {
        /// The path of the file.
        file: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// The file has faults.
    #[error("{}", listed(file, faults))]
    Faulty {
        /// The path of the file.
        file: PathBuf,
        /// Every fault, in the order of the lines.
        faults: Vec<ConfigFault>,
    },
}

/// A line per fault, in the form editors and terminals make clickable.
fn listed(file: &std::path::Path, faults: &[ConfigFault]) -> String {
    let lines: Vec<_> = faults.iter().map(|fault| format!("{}:{fault}", file.display())).collect();
    lines.join("\n")
}

impl ConfigError {
    /// The faults one by one; a file that cannot be read has one, at its beginning.
    pub fn faults(&self) -> Vec<ConfigFault> {
        match self {
            Self::Unreadable { .. } => vec![ConfigFault { line: 1, column: 1, message: self.to_string() }],
            Self::Faulty { faults, .. } => faults.clone(),
        }
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// Faults as they are found, by their place in the text.
pub(super) struct Faults<'t> {
    text: &'t str,
    found: Vec<(usize, ConfigFault)>,
    /// Where each key that was read stands.
    noted: Vec<(String, (usize, usize))>,
    /// What is read although it should be written otherwise.
    warnings: Vec<ConfigFault>,
}

impl<'t> Faults<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new(), noted: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn note(&mut self, key: String, span: &Range<usize>) {
        let place = place(self.text, span.start);
        self.noted.push((key, place));
    }

    /// Notes a value, and of a text in `'''` or `"""` also where its first line stands.
    pub(super) fn note_text(&mut self, key: String, span: &Range<usize>) {
        let quoted = self.text.get(span.clone()).unwrap_or_default();
        if let Some(text) = quoted.strip_prefix("'''").or_else(|| quoted.strip_prefix("\"\"\"")) {
            // TOML drops a line break right after the quotes.
            let dropped = ["\r\n", "\n"].into_iter().find(|newline| text.starts_with(newline)).map_or(0, str::len);
            self.noted.push((Places::first_line_of(&key), place(self.text, span.start + 3 + dropped)));
        }
        self.note(key, span);
    }

    pub(super) fn places(&mut self) -> Places {
        Places::new(std::mem::take(&mut self.noted), std::mem::take(&mut self.warnings))
    }

    pub(super) fn warn(&mut self, span: &Range<usize>, message: String) {
        let (line, column) = place(self.text, span.start);
        self.warnings.push(ConfigFault { line, column, message });
    }

    pub(super) fn add(&mut self, span: &Range<usize>, message: String) {
        let (line, column) = place(self.text, span.start);
        self.found.push((span.start, ConfigFault { line, column, message }));
    }

    /// Whether the line of this place has a fault with this message already.
    pub(super) fn has(&self, span: &Range<usize>, message: &str) -> bool {
        let line = place(self.text, span.start).0;
        self.found.iter().any(|(_, fault)| fault.line == line && fault.message == message)
    }

    pub(super) fn lines(&self) -> Vec<usize> {
        self.found.iter().map(|(_, fault)| fault.line).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Adds what others found, but not on lines where something was found before: it would only be a consequence.
    pub(super) fn add_consequences(&mut self, others: Self) {
        let lines = self.lines();
        self.found.extend(others.found.into_iter().filter(|(_, fault)| !lines.contains(&fault.line)));
    }

    pub(super) fn into_sorted(mut self) -> Vec<ConfigFault> {
        self.found.sort_by_key(|(at, _)| *at);
        self.found.into_iter().map(|(_, fault)| fault).collect()
    }
}

/// Line and column of a byte, counted from 1, columns in characters.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_from_one_and_in_characters() {
        let text = "a\nüü = 1\n";
        let one = text.find('1').unwrap();
        assert_eq!(place(text, 0), (1, 1));
        assert_eq!(place(text, one), (2, 6));
        assert_eq!(place(text, text.len()), (3, 1));
    }
}
