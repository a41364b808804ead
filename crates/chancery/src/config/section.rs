//! One table of a config while it is being read: who asks for its keys gets them, what nobody asked for is a fault.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Deserializer};

use super::fault::{Fault, Faults};
use super::fields::field_names;
use super::nearest::nearest;

type Entry<'t> = (Spanned<DeString<'t>>, Spanned<DeValue<'t>>);

pub(super) struct Section<'f, 't> {
    /// As in `limits.` or `agents.echo.`; empty for the file itself.
    path: String,
    /// Where faults of the section as a whole are shown.
    place: Range<usize>,
    /// What nobody has asked for yet, in the order of the text.
    left: Vec<Entry<'t>>,
    /// Keys that were asked for, whether they are there or not.
    known: Vec<&'static str>,
    /// Keys whose values were no good.
    refused: Vec<String>,
    faults: &'f mut Faults<'t>,
    faults_before: usize,
}

/// Reads a whole text. Syntax faults do not hide the others.
pub(super) fn read<T>(text: &str, read: impl FnOnce(&mut Section<'_, '_>) -> T) -> Result<T, Vec<Fault>> {
    let (document, mistakes) = DeTable::parse_recoverable(text);
    let mut faults = Faults::new(text);
    for mistake in mistakes {
        faults.add(&mistake.span().unwrap_or_default(), mistake.message().to_owned());
    }
    let mut others = Faults::new(text);
    let mut file = Section::new(String::new(), 0..0, document.into_inner(), &mut others);
    let value = read(&mut file);
    file.finish();
    faults.add_consequences(others);
    match faults.into_sorted() {
        sound if sound.is_empty() => Ok(value),
        faulty => Err(faulty),
    }
}

impl<'f, 't> Section<'f, 't> {
    fn new(path: String, place: Range<usize>, table: DeTable<'t>, faults: &'f mut Faults<'t>) -> Self {
        let mut left: Vec<Entry<'t>> = table.into_iter().collect();
        left.sort_by_key(|(key, _)| key.span().start);
        let faults_before = faults.len();
        Self { path, place, left, known: Vec::new(), refused: Vec::new(), faults, faults_before }
    }

    /// Reads the keys that a struct knows. Each is tried by itself, so that one bad value does not hide the next.
    pub(super) fn fields<T: DeserializeOwned + Default>(&mut self) -> T {
        let names = field_names::<T>();
        self.known.extend(names);
        let mut good = DeTable::new();
        for (key, value) in self.take(|key| names.contains(&key)) {
            match read_table::<T>(DeTable::from_iter([(key.clone(), value.clone())])) {
                Ok(_) => {
                    good.insert(key, value);
                }
                Err(fault) => {
                    let name = key.into_inner();
                    let message = format!("{}{name}: {}", self.path, with_what_was_meant(fault.message().trim()));
                    self.faults.add(&fault.span().unwrap_or(value.span()), message);
                    self.refused.push(name.into_owned());
                }
            }
        }
        read_table(good).unwrap_or_default()
    }

    /// Reads a table under a name, if there is one.
    pub(super) fn section<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Section<'_, 't>) -> T) -> Option<T> {
        self.known.push(name);
        let (key, value) = self.take(|key| key == name).pop()?;
        self.inner(key, value, read)
    }

    /// Reads every table that is left, under whatever name.
    pub(super) fn each(&mut self, mut read: impl FnMut(&str, &mut Section<'_, 't>)) {
        for (key, value) in std::mem::take(&mut self.left) {
            let name = key.get_ref().clone();
            self.inner(key, value, |section| read(&name, section));
        }
    }

    fn inner<T>(
        &mut self,
        key: Spanned<DeString<'t>>,
        value: Spanned<DeValue<'t>>,
        read: impl FnOnce(&mut Section<'_, 't>) -> T,
    ) -> Option<T> {
        let path = format!("{}{}", self.path, key.get_ref());
        let place = key.span();
        match value.into_inner() {
            DeValue::Table(table) => {
                let mut section = Section::new(format!("{path}."), place, table, self.faults);
                let read = read(&mut section);
                section.finish();
                Some(read)
            }
            other => {
                self.faults.add(&place, format!("{path}: must be a section, not {}", with_article(other.type_str())));
                None
            }
        }
    }

    /// A fault of the section as a whole.
    pub(super) fn complain(&mut self, message: String) {
        let path = self.path.trim_end_matches('.');
        self.faults.add(&self.place, format!("{path}: {message}"));
    }

    pub(super) fn has_fault_at(&self, key: &str) -> bool {
        self.refused.iter().any(|refused| refused == key)
    }

    /// Whether nothing in it was found wrong so far.
    pub(super) fn is_sound(&self) -> bool {
        self.faults.len() == self.faults_before
    }

    fn take(&mut self, wanted: impl Fn(&str) -> bool) -> Vec<Entry<'t>> {
        self.left.extract_if(.., |(key, _)| wanted(key.get_ref())).collect()
    }

    fn finish(self) {
        for (key, _) in self.left {
            let meant = match nearest(key.get_ref(), self.known.iter().copied()) {
                Some(name) => format!("; did you mean `{name}`?"),
                None => format!("; there are: {}", self.known.join(", ")),
            };
            self.faults.add(&key.span(), format!("unknown key `{}{}`{meant}", self.path, key.get_ref()));
        }
    }
}

fn read_table<T: DeserializeOwned>(table: DeTable<'_>) -> Result<T, toml::de::Error> {
    T::deserialize(Deserializer::from(Spanned::new(0..0, table)))
}

/// To a word that is none of a list the message also names the one of the list that was probably meant.
fn with_what_was_meant(message: &str) -> String {
    let words = message.strip_prefix("unknown variant `").and_then(|rest| rest.split_once("`, expected "));
    let meant = words.and_then(|(word, list)| nearest(word, list.split('`').skip(1).step_by(2)));
    meant.map_or_else(|| message.to_owned(), |name| format!("{message}; did you mean `{name}`?"))
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}
