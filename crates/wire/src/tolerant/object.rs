//! The members of one object, taken by name and written again.

use std::borrow::Cow;

use chancery_protocol::raw_json::members;
use serde_json::value::RawValue;

use super::unreadable::{MemberFault, join};
use super::{Leniency, Rewriter};

/// An object whose members are taken one by one. What is left at the end was not known.
pub(super) struct ObjectMembers<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> ObjectMembers<'a> {
    pub(super) fn read(raw: &'a str, path: &str) -> Result<Self, MemberFault> {
        if !raw.starts_with('{') {
            return Err(MemberFault::new(path, "must be an object"));
        }
        Ok(Self(members(raw).collect()))
    }

    /// Whether there is a member of one of these names that is not `null`.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.get(names).is_some()
    }

    /// The first member of one of these names that is not `null`.
    pub(super) fn get(&self, names: &[&str]) -> Option<&'a str> {
        let is_there = |(name, value): &&(Cow<'a, str>, &str)| names.contains(&&**name) && *value != "null";
        self.0.iter().find(is_there).map(|(_, value)| *value)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }
}

impl Rewriter {
    /// Takes a member out of an object. The first name is that of 1.0; the others are other spellings of it.
    pub(super) fn take<'a>(
        &mut self,
        object: &mut ObjectMembers<'a>,
        path: &str,
        names: &[&str],
    ) -> Result<Option<&'a str>, MemberFault> {
        let mut found: Option<&'a str> = None;
        let mut clash = false;
        let mut at = 0;
        while let Some((name, value)) = object.0.get(at) {
            let Some(spelling) = names.iter().position(|known| known == name) else {
                at += 1;
                continue;
            };
            match (*value, found) {
                ("null", _) => self.note(Leniency::NullMember),
                (value, Some(before)) => clash |= value != before,
                (value, None) => {
                    found = Some(value);
                    if spelling > 0 {
                        self.note_spelling();
                    }
                }
            }
            object.0.remove(at);
        }
        // Nothing says which of two values is meant.
        if clash {
            return Err(MemberFault { path: join(path, names[0]), reason: "is there twice, with two values".to_owned() });
        }
        Ok(found)
    }

    pub(super) fn open(&mut self) {
        self.out.push('{');
    }

    pub(super) fn close(&mut self) {
        self.out.push('}');
    }

    /// Begins a member. `name` is one of ours, and needs no escapes.
    pub(super) fn key(&mut self, name: &str) {
        self.comma();
        self.out.extend(["\"", name, "\":"]);
    }

    pub(super) fn member(&mut self, name: &str, raw: &str) {
        self.key(name);
        self.out.push_str(raw);
    }

    /// Writes the members that no reader took, in their spelling, and ends the object.
    pub(super) fn close_with(&mut self, rest: ObjectMembers<'_>) {
        for (name, value) in rest.0 {
            self.comma();
            self.out.push_str(&serde_json::Value::from(&*name).to_string());
            self.out.extend([":", value]);
        }
        self.close();
    }

    /// Writes a list whose items are written one by one.
    pub(super) fn list(
        &mut self,
        raw: &str,
        path: &str,
        mut item: impl FnMut(&mut Self, &str, &str, usize) -> Result<(), MemberFault>,
    ) -> Result<(), MemberFault> {
        let items = items(raw).ok_or_else(|| MemberFault::new(path, "must be a list"))?;
        self.out.push('[');
        for (place, raw) in items.into_iter().enumerate() {
            self.comma();
            item(self, raw.get(), &format!("{path}[{place}]"), place)?;
        }
        self.out.push(']');
        Ok(())
    }

    /// Writes text. A number or a boolean is taken for its spelling.
    pub(super) fn text_member(&mut self, name: &str, raw: &str, path: &str) -> Result<(), MemberFault> {
        match raw.as_bytes().first() {
            Some(b'"') => self.member(name, raw),
            Some(b'{' | b'[') | None => return Err(MemberFault { path: join(path, name), reason: "must be text".to_owned() }),
            Some(_) => {
                self.note(Leniency::NumberAsString);
                self.key(name);
                self.out.extend(["\"", raw, "\""]);
            }
        }
        Ok(())
    }

    /// The same for text that adds nothing to an answer: it is left out if it cannot be read.
    pub(super) fn optional_text(
        &mut self,
        object: &mut ObjectMembers<'_>,
        path: &str,
        names: &[&str],
    ) -> Result<(), MemberFault> {
        let Some(raw) = self.take(object, path, names)? else { return Ok(()) };
        if self.text_member(names[0], raw, path).is_err() {
            self.note(Leniency::DroppedMember);
        }
        Ok(())
    }

    pub(super) fn metadata(&mut self, object: &mut ObjectMembers<'_>, path: &str) -> Result<(), MemberFault> {
        match self.take(object, path, &["metadata"])? {
            Some(raw) if raw.starts_with('{') => self.member("metadata", raw),
            Some(_) => self.note(Leniency::DroppedMember),
            None => {}
        }
        Ok(())
    }

    /// A list of strings that adds nothing to an answer.
    pub(super) fn strings(&mut self, object: &mut ObjectMembers<'_>, path: &str, names: &[&str]) -> Result<(), MemberFault> {
        match self.take(object, path, names)? {
            Some(raw) if items(raw).is_some_and(|items| items.iter().all(|one| one.get().starts_with('"'))) => {
                self.member(names[0], raw);
            }
            Some(_) => self.note(Leniency::DroppedMember),
            None => {}
        }
        Ok(())
    }

    pub(super) fn boolean(&mut self, object: &mut ObjectMembers<'_>, path: &str, names: &[&str]) -> Result<(), MemberFault> {
        let Some(raw) = self.take(object, path, names)? else { return Ok(()) };
        let value = match raw {
            "true" | "false" => raw,
            r#""true""# | r#""True""# | r#""1""# | "1" => "true",
            r#""false""# | r#""False""# | r#""0""# | r#""""# | "0" => "false",
            _ => return Err(MemberFault { path: join(path, names[0]), reason: "must be true or false".to_owned() }),
        };
        if value != raw {
            self.note(Leniency::NumberAsString);
        }
        self.member(names[0], value);
        Ok(())
    }

    fn comma(&mut self) {
        if !self.out.ends_with(['{', '[', ':']) {
            self.out.push(',');
        }
    }
}

/// The items of a list as they are spelled.
pub(super) fn items(raw: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw).ok()
}

/// What a string says. Nothing for what is no string.
pub(super) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let plain = raw.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains('\\'));
    plain.map_or_else(|| serde_json::from_str::<String>(raw).ok().map(Cow::Owned), |text| Some(Cow::Borrowed(text)))
}
