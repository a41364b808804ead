//! Where in a config each key stands, for what is found out about it after it was read.

use std::collections::BTreeMap;

use super::fault::ConfigFault;

/// Line and column of each key that was read, by its whole name: `listen`, `callers.planner.may_call`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    keys: BTreeMap<String, (usize, usize)>,
    warnings: Vec<ConfigFault>,
}

impl Places {
    pub(super) fn new(keys: impl IntoIterator<Item = (String, (usize, usize))>, warnings: Vec<ConfigFault>) -> Self {
        Self { keys: keys.into_iter().collect(), warnings }
    }

    /// What was read although it should be written otherwise, in the order of the text: keys under an old name.
    pub fn warnings(&self) -> &[ConfigFault] {
        &self.warnings
    }

    /// A fault at a key; where the key is not written, at its section, or else at the beginning.
    pub fn fault(&self, key: &str, message: &str) -> ConfigFault {
        let mut name = key;
        let (line, column) = loop {
            match (self.keys.get(name), name.rfind('.')) {
                (Some(place), _) => break *place,
                (None, Some(dot)) => name = &name[..dot],
                (None, None) => break (1, 1),
            }
        };
        ConfigFault { line, column, message: format!("{key}: {message}") }
    }

    /// A fault at a line of a text over several lines, counted from 1, or at the key if its text has one line.
    pub(super) fn fault_in_text(&self, key: &str, (line, column): (usize, usize), message: &str) -> ConfigFault {
        let fault = self.fault(key, message);
        match self.keys.get(&Self::first_line_of(key)) {
            Some((first, indent)) if line == 1 => ConfigFault { line: *first, column: indent + column - 1, ..fault },
            Some((first, _)) => ConfigFault { line: first + line - 1, column, ..fault },
            None => fault,
        }
    }

    /// The name under which the place of the first line of a text is noted. No key has such a name.
    pub(super) fn first_line_of(key: &str) -> String {
        format!("{key}\n")
    }

    /// The same keys at other positions.
    pub(super) fn moved(self, to: impl Fn((usize, usize)) -> (usize, usize)) -> Self {
        let warnings = self.warnings.into_iter().map(|warning| {
            let (line, column) = to((warning.line, warning.column));
            ConfigFault { line, column, ..warning }
        });
        let warnings = warnings.collect();
        Self { keys: self.keys.into_iter().map(|(key, place)| (key, to(place))).collect(), warnings }
    }

    /// Returns whether the file has the key.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// The names that are written directly under a section, whether what they hold could be read or not.
    pub fn names_in<'a>(&'a self, section: &'a str) -> impl Iterator<Item = &'a str> {
        let direct = move |key: &'a String| key.strip_prefix(section)?.strip_prefix('.').filter(|name| !name.contains('.'));
        self.keys.keys().filter_map(direct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_stands_at_its_key_or_at_what_is_around_it() {
        let places =
            Places::new([("a".to_owned(), (2, 1)), ("a.b".to_owned(), (3, 5)), ("a.b.c".to_owned(), (4, 7))], Vec::new());
        for (key, place) in [("a.b", (3, 5)), ("a.b.c", (4, 7)), ("a.b.d", (3, 5)), ("a.x.y", (2, 1)), ("z", (1, 1))] {
            let fault = places.fault(key, "is odd");
            assert_eq!((fault.line, fault.column), place, "{key}");
            assert_eq!(fault.message, format!("{key}: is odd"));
        }
        assert_eq!(places.names_in("a").collect::<Vec<_>>(), ["b"]);
    }
}
