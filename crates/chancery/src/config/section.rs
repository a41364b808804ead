//! Reads one table of a config: components take their keys, and a key that no component takes is a fault.

use std::ops::Range;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Deserializer};

use super::effect::{ChangedKey, ConfigKeys};
use super::fault::{ConfigFault, Faults};
use super::fields::field_names;
use super::inner_path::inner_path;
use super::literal_secrets::literal_secret;
use super::nearest::nearest;
use super::places::Places;
use super::plain_faults::{line_at, plain, plain_syntax, secret_advice};
use super::renamed_keys::new_name;
use super::shape::{closed, shape};

type Entry<'t> = (Spanned<DeString<'t>>, Spanned<DeValue<'t>>);

pub(super) struct Section<'f, 't> {
    /// As in `limits.` or `agents.echo.`; empty for the file itself.
    path: String,
    /// Where faults of the section as a whole are shown.
    place: Range<usize>,
    /// The entries that were not read yet, in the order of the text.
    left: Vec<Entry<'t>>,
    /// Keys that were asked for, whether they are there or not.
    known: Vec<&'static str>,
    /// Keys whose values were no good.
    refused: Vec<String>,
    faults: &'f mut Faults<'t>,
    faults_before: usize,
    /// What can stand here, while the reading is only done to find that out.
    outline: Option<Outline>,
}

/// What a table can hold, as JSON Schema.
#[derive(Default)]
struct Outline {
    properties: Map<String, Value>,
    /// The schema of tables whose names the author of the config chooses.
    others: Option<Value>,
    /// Every key that can stand here or below, with when a change of it takes effect.
    keys: Vec<ChangedKey>,
}

impl Outline {
    fn schema(self) -> Value {
        let mut schema = closed(self.properties);
        if let Some(others) = self.others {
            schema["additionalProperties"] = others;
        }
        schema
    }
}

/// Reads a whole text. Syntax faults do not hide the others, and `check` sees what was read even where it has faults.
pub(super) fn read<T>(
    text: &str,
    read: impl FnOnce(&mut Section<'_, '_>) -> T,
    check: impl FnOnce(&T, &Places) -> Vec<ConfigFault>,
) -> Result<(T, Places), Vec<ConfigFault>> {
    let (document, mistakes) = DeTable::parse_recoverable(text);
    let mut faults = Faults::new(text);
    for mistake in mistakes {
        let span = mistake.span().unwrap_or_default();
        let message = plain_syntax(line_at(text, span.start), mistake.message());
        // The parser reports each word of a line that it cannot read. One fault names the line.
        if !faults.has(&span, &message) {
            faults.add(&span, message);
        }
    }
    let mut others = Faults::new(text);
    let mut file = Section::new(String::new(), 0..0, document.into_inner(), &mut others);
    let value = read(&mut file);
    file.finish();
    let places = others.places();
    faults.add_consequences(others);
    let mut faults = faults.into_sorted();
    let contradictions = check(&value, &places);
    // A line that could not be read says nothing that could contradict another.
    let unread = |fault: &ConfigFault| faults.iter().any(|found| found.line == fault.line);
    let contradictions: Vec<ConfigFault> = contradictions.into_iter().filter(|fault| !unread(fault)).collect();
    faults.extend(contradictions);
    faults.sort_by_key(|fault| (fault.line, fault.column));
    if faults.is_empty() { Ok((value, places)) } else { Err(faults) }
}

/// The JSON Schema of all that `read` would ask a text for.
pub(super) fn outline<T>(read: impl FnOnce(&mut Section<'_, '_>) -> T) -> Value {
    let mut faults = Faults::new("");
    let mut file = Section::new(String::new(), 0..0, DeTable::new(), &mut faults);
    file.outline = Some(Outline::default());
    read(&mut file);
    file.outline.take().unwrap_or_default().schema()
}

/// Every key that `read` would ask a text for, by its whole name.
pub(super) fn declared_keys<T>(read: impl FnOnce(&mut Section<'_, '_>) -> T) -> Vec<ChangedKey> {
    let mut faults = Faults::new("");
    let mut file = Section::new(String::new(), 0..0, DeTable::new(), &mut faults);
    file.outline = Some(Outline::default());
    read(&mut file);
    file.outline.take().unwrap_or_default().keys
}

impl<'f, 't> Section<'f, 't> {
    fn new(path: String, place: Range<usize>, table: DeTable<'t>, faults: &'f mut Faults<'t>) -> Self {
        let mut left: Vec<Entry<'t>> = table.into_iter().collect();
        left.sort_by_key(|(key, _)| key.span().start);
        let faults_before = faults.len();
        Self { path, place, left, known: Vec::new(), refused: Vec::new(), faults, faults_before, outline: None }
    }

    /// Reads the keys that a struct knows. Each is tried by itself, so that one bad value does not hide the next.
    pub(super) fn fields<T: DeserializeOwned + Default + ConfigKeys>(&mut self) -> T {
        let names = field_names::<T>();
        self.known.extend(names);
        if let Some(outline) = &mut self.outline {
            let key = |(name, takes_effect): &(&str, _)| ChangedKey {
                key: format!("{}{name}", self.path),
                takes_effect: *takes_effect,
            };
            outline.keys.extend(T::KEYS.iter().map(key));
        }
        if let Some(outline) = &mut self.outline
            && let Some(Value::Object(properties)) = shape::<T>().get_mut("properties").map(Value::take)
        {
            outline.properties.extend(properties);
        }
        self.rename_old_keys(names);
        let mut good = DeTable::new();
        for (key, value) in self.take(|key| names.contains(&key)) {
            self.faults.note(format!("{}{}", self.path, key.get_ref()), &value.span());
            self.note_items(key.get_ref(), &value);
            match read_table::<T>(DeTable::from_iter([(key.clone(), value.clone())])) {
                Ok(_) => match literal_secret(key.get_ref(), &value) {
                    Some((place, fault)) => {
                        let name = key.into_inner();
                        self.faults.add(&place, format!("{}{name}: {fault}", self.path));
                        self.refused.push(name.into_owned());
                    }
                    None => drop(good.insert(key, value)),
                },
                Err(fault) => {
                    let name = key.into_inner();
                    let place = fault.span().unwrap_or(value.span());
                    let inner = inner_path(&value, &place);
                    let plain = plain(fault.message().trim(), value.get_ref().as_str());
                    self.faults.add(&place, format!("{}{name}{inner}: {plain}", self.path));
                    self.refused.push(name.into_owned());
                }
            }
        }
        read_table(good).unwrap_or_default()
    }

    /// Notes where the keys of the tables in a list stand: `policy.rules[0].deny_when`.
    fn note_items(&mut self, key: &str, value: &Spanned<DeValue<'t>>) {
        let DeValue::Array(items) = value.get_ref() else { return };
        for (index, item) in items.iter().enumerate() {
            let DeValue::Table(table) = item.get_ref() else { continue };
            for (inner, value) in table {
                self.faults.note_text(format!("{}{key}[{index}].{}", self.path, inner.get_ref()), &value.span());
            }
        }
    }

    /// Puts the new name in the place of an old one, with a warning. A key that stands there under both names is a fault.
    fn rename_old_keys(&mut self, names: &[&str]) {
        let renamed = |key: &str| new_name(&self.path, key).filter(|new| names.contains(new));
        let is_old = |(key, _): &Entry<'t>| renamed(key.get_ref()).is_some();
        let old: Vec<Entry<'t>> = self.left.extract_if(.., |entry| is_old(entry)).collect();
        for (key, value) in old {
            let Some(new) = new_name(&self.path, key.get_ref()) else { continue };
            let (path, place) = (&self.path, key.span());
            if self.left.iter().any(|(other, _)| other.get_ref() == new) {
                let message = format!("{path}{}: is the old name of {path}{new}, which is set too; remove it", key.get_ref());
                self.faults.add(&place, message);
                continue;
            }
            self.faults.warn(&place, format!("{path}{}: is the old name of this key; write {path}{new}", key.get_ref()));
            self.left.push((Spanned::new(place, new.into()), value));
        }
    }

    /// Reads a table under a name, if there is one.
    pub(super) fn section<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Section<'_, 't>) -> T) -> Option<T> {
        self.known.push(name);
        if self.outline.is_some() {
            let (read, schema) = self.outlined(name, read);
            let outline = self.outline.as_mut()?;
            outline.properties.insert(name.to_owned(), schema);
            return Some(read);
        }
        let (key, value) = self.take(|key| key == name).pop()?;
        self.inner(key, value, read)
    }

    /// Reads every table that is left, for any name.
    pub(super) fn each(&mut self, mut read: impl FnMut(&str, &mut Section<'_, 't>)) {
        if self.outline.is_some() {
            let ((), schema) = self.outlined("NAME", |section| read("NAME", section));
            if let Some(outline) = &mut self.outline {
                outline.others = Some(schema);
            }
        }
        for (key, value) in std::mem::take(&mut self.left) {
            let name = key.get_ref().clone();
            self.inner(key, value, |section| read(&name, section));
        }
    }

    /// Reads a table that is not there, to see what it could hold.
    fn outlined<T>(&mut self, name: &str, read: impl FnOnce(&mut Section<'_, 't>) -> T) -> (T, Value) {
        let mut section = Section::new(format!("{}{name}.", self.path), 0..0, DeTable::new(), self.faults);
        section.outline = Some(Outline::default());
        let read = read(&mut section);
        let mut inner = section.outline.take().unwrap_or_default();
        if let Some(outline) = &mut self.outline {
            outline.keys.append(&mut inner.keys);
        }
        (read, inner.schema())
    }

    fn inner<T>(
        &mut self,
        key: Spanned<DeString<'t>>,
        value: Spanned<DeValue<'t>>,
        read: impl FnOnce(&mut Section<'_, 't>) -> T,
    ) -> Option<T> {
        let path = format!("{}{}", self.path, key.get_ref());
        let place = key.span();
        self.faults.note(path.clone(), &place);
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
            let advice = secret_advice(key.get_ref(), &self.known);
            let meant = match (advice, nearest(key.get_ref(), self.known.iter().copied())) {
                (Some(advice), _) => format!("; {advice}"),
                (None, Some(name)) => format!("; did you mean `{name}`?"),
                (None, None) => format!("; there are: {}", self.known.join(", ")),
            };
            self.faults.add(&key.span(), format!("unknown key `{}{}`{meant}", self.path, key.get_ref()));
        }
    }
}

fn read_table<T: DeserializeOwned>(table: DeTable<'_>) -> Result<T, toml::de::Error> {
    T::deserialize(Deserializer::from(Spanned::new(0..0, table)))
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}
