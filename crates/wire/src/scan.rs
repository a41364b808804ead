//! Scans JSON before it is read, and rejects text that two readers could understand differently.
//!
//! Duplicate keys at any depth, bytes that are not UTF-8, and nesting or node counts past the limits never get as far
//! as a typed reader. Plain syntax is left to that reader.

use std::borrow::Cow;
use std::collections::HashSet;

use chancery_protocol::raw_json::quote_or_escape;
use chancery_protocol::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

/// Part of the `[limits]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonLimits {
    /// Arrays and objects inside each other.
    pub json_depth: usize,
    /// Values in one document.
    pub json_nodes: usize,
    /// Bytes of one member name.
    pub json_key_bytes: usize,
}

impl Default for JsonLimits {
    fn default() -> Self {
        Self { json_depth: 64, json_nodes: 100_000, json_key_bytes: 256 }
    }
}

/// From this many keys on, an object's keys are kept in a set instead of compared one by one.
const MANY_KEYS: usize = 16;

struct Frame {
    is_object: bool,
    /// Where this object's keys begin in the shared list.
    first_key: usize,
    /// Elements before the current one, of an array.
    index: usize,
    /// It has so many keys that they are in the last of the sets.
    crowded: bool,
}

struct Key<'a> {
    /// Keys that differ mostly differ in this, which is compared at once.
    mark: u64,
    name: Cow<'a, str>,
}

struct Scan<'a, 'l> {
    text: &'a str,
    limits: &'l JsonLimits,
    frames: Vec<Frame>,
    keys: Vec<Key<'a>>,
    /// A set for each crowded object that is open.
    crowds: Vec<HashSet<Cow<'a, str>>>,
    nodes: usize,
    wants_key: bool,
}

/// The text, if it is fit to be read.
pub fn scan<'a>(bytes: &'a [u8], limits: &JsonLimits) -> Result<&'a str, Error> {
    let text = std::str::from_utf8(bytes).map_err(|fault| parse_error(format!("not UTF-8 at byte {}", fault.valid_up_to())))?;
    let (frames, keys) = (Vec::with_capacity(8), Vec::with_capacity(16));
    Scan { text, limits, frames, keys, crowds: Vec::new(), nodes: 0, wants_key: false }.run()?;
    Ok(text)
}

fn parse_error(message: String) -> Error {
    Error::new(ErrorKind::Parse, message)
}

/// Names that the JSON library reserves. The library would parse the value of such a member as JSON text and
/// put the result in the place of the object. Then the same bytes would mean one thing here and another at
/// another reader.
const RESERVED: &str = "$serde_json::private::";

impl<'a> Scan<'a, '_> {
    fn run(&mut self) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'"' => at = self.string(at)?,
                b'{' | b'[' => self.open(byte == b'{')?,
                b'}' | b']' => self.close(),
                b',' => self.next_one()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn node(&mut self) -> Result<(), Error> {
        self.nodes += 1;
        if self.nodes > self.limits.json_nodes {
            return Err(parse_error(format!("more than limits.json_nodes = {} values", self.limits.json_nodes)));
        }
        Ok(())
    }

    fn next_one(&mut self) -> Result<(), Error> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        frame.index += 1;
        self.wants_key = frame.is_object;
        self.node()
    }

    fn open(&mut self, is_object: bool) -> Result<(), Error> {
        if self.frames.len() >= self.limits.json_depth {
            let path = self.path(None);
            return Err(parse_error(format!("{path}: deeper than limits.json_depth = {}", self.limits.json_depth)));
        }
        self.node()?;
        self.frames.push(Frame { is_object, first_key: self.keys.len(), index: 0, crowded: false });
        self.wants_key = is_object;
        Ok(())
    }

    fn close(&mut self) {
        if let Some(frame) = self.frames.pop() {
            self.keys.truncate(frame.first_key);
            if frame.crowded {
                self.crowds.pop();
            }
        }
        self.wants_key = false;
    }

    /// Passes over a string whose first character is at `at`; where it is a key, remembers it. Answers the place behind it.
    fn string(&mut self, at: usize) -> Result<usize, Error> {
        let bytes = self.text.as_bytes();
        let mut end = at;
        let mut escaped = false;
        loop {
            let Some(ahead) = quote_or_escape(bytes, end) else { return Ok(bytes.len()) };
            if bytes[ahead] == b'"' {
                end = ahead;
                break;
            }
            escaped = true;
            end = ahead + 2;
        }
        if std::mem::take(&mut self.wants_key) {
            self.key(at, end, escaped)?;
        }
        Ok(end + 1)
    }

    fn key(&mut self, start: usize, end: usize, escaped: bool) -> Result<(), Error> {
        let Some(spelled) = self.text.get(start..end) else { return Ok(()) };
        // A key with escapes is compared by what it means, so that "\u0069d" and "id" are the same.
        let name: Cow<'a, str> = if escaped {
            match serde_json::from_str::<String>(&self.text[start - 1..=end]) {
                Ok(name) => Cow::Owned(name),
                Err(fault) => return Err(parse_error(format!("bad member name: {fault}"))),
            }
        } else {
            Cow::Borrowed(spelled)
        };
        if name.len() > self.limits.json_key_bytes {
            let path = self.path(None);
            return Err(parse_error(format!(
                "{path}: a member name is longer than limits.json_key_bytes = {}",
                self.limits.json_key_bytes
            )));
        }
        if name.starts_with(RESERVED) {
            return Err(parse_error(format!("{}: a name of this kind cannot be carried", self.path(Some(&name)))));
        }
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        let mark = mark(name.as_bytes());
        let siblings = &self.keys[frame.first_key..];
        if !frame.crowded && siblings.len() >= MANY_KEYS {
            frame.crowded = true;
            self.crowds.push(siblings.iter().map(|key| key.name.clone()).collect());
        }
        let known = match self.crowds.last_mut().filter(|_| frame.crowded) {
            Some(crowd) => !crowd.insert(name.clone()),
            None => siblings.iter().any(|key| key.mark == mark && key.name == name),
        };
        if known {
            return Err(parse_error(format!("{}: appears twice", self.path(Some(&name)))));
        }
        // Keys of a crowded object live in its set; the list then only needs the current one, for the path.
        if frame.crowded {
            self.keys.truncate(frame.first_key);
        }
        self.keys.push(Key { mark, name });
        Ok(())
    }

    /// Where we are, for a human: `params.message.parts[2]`.
    fn path(&self, key: Option<&str>) -> String {
        let mut path = String::new();
        for (depth, frame) in self.frames.iter().enumerate() {
            let ends = self.frames.get(depth + 1).map_or(self.keys.len(), |next| next.first_key);
            let innermost = depth + 1 == self.frames.len();
            let name = match key {
                Some(key) if innermost => Some(key),
                _ => self.keys[frame.first_key..ends].last().map(|key| &*key.name),
            };
            if !frame.is_object {
                path.push_str(&format!("[{}]", frame.index));
            } else if let Some(name) = name {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
        }
        if path.is_empty() { "the document".to_owned() } else { path }
    }
}

/// The length of a name and its first bytes.
fn mark(name: &[u8]) -> u64 {
    let mut first = [0; 8];
    let some = name.len().min(first.len());
    first[..some].copy_from_slice(&name[..some]);
    u64::from_le_bytes(first).rotate_left(name.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &[u8]) -> String {
        let error = scan(text, &JsonLimits::default()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Parse);
        error.message.into_owned()
    }

    #[test]
    fn names_that_would_be_read_as_something_else_are_refused_in_every_spelling() {
        for text in [
            r#"{"$serde_json::private::RawValue":"{\"a\":1}"}"#,
            r#"{"metadata":{"x":[{"\u0024serde_json::private::Number":"1"}]}}"#,
        ] {
            let error = scan(text.as_bytes(), &JsonLimits::default()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Parse, "{text}");
        }
        assert!(scan(br#"{"$serde":1,"a":"$serde_json::private::RawValue"}"#, &JsonLimits::default()).is_ok());
    }

    #[test]
    fn duplicate_keys_are_refused_at_every_level_and_in_every_spelling() {
        assert_eq!(fault(br#"{"a":1,"a":2}"#), "a: appears twice");
        assert_eq!(fault(br#"{"params":{"message":{"parts":[{},{"x":1,"x":1}]}}}"#), "params.message.parts[1].x: appears twice");
        assert_eq!(fault(br#"{"id":1,"\u0069d":2}"#), "id: appears twice");
        let many: Vec<_> = (0..100).map(|n| format!("\"k{n}\":{{\"a\":1}}")).collect();
        assert!(scan(format!("{{{}}}", many.join(",")).as_bytes(), &JsonLimits::default()).is_ok());
        assert_eq!(fault(format!("{{{},\"k3\":0}}", many.join(",")).as_bytes()), "k3: appears twice");
    }

    #[test]
    fn equal_keys_of_different_objects_are_fine() {
        for text in
            [r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}"#, r#"{"a":"a","b":"a"}"#, r#"["a","a",{"a":"}{"}]"#, "", "7", "}]"]
        {
            assert!(scan(text.as_bytes(), &JsonLimits::default()).is_ok(), "{text}");
        }
    }

    #[test]
    fn depth_is_held_at_its_edge() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(scan(nested(64).as_bytes(), &JsonLimits::default()).is_ok());
        assert!(fault(nested(65).as_bytes()).contains("limits.json_depth = 64"));
        assert!(fault("[".repeat(1_000_000).as_bytes()).contains("json_depth"));
    }

    #[test]
    fn node_count_and_key_length_are_held_at_their_edges() {
        let limits = JsonLimits { json_nodes: 4, json_key_bytes: 3, ..JsonLimits::default() };
        assert!(scan(b"[1,2,3,4]", &limits).is_ok());
        assert!(scan(b"[1,2,3,4,5]", &limits).is_err());
        assert!(scan(br#"{"abc":1}"#, &limits).is_ok());
        assert!(scan(br#"{"abcd":1}"#, &limits).is_err());
    }

    #[test]
    fn keys_with_the_same_beginning_are_told_apart() {
        assert!(scan(br#"{"gen_ai.usage.a":1,"gen_ai.usage.b":2,"gen_ai.u":3,"":4,"g":5}"#, &JsonLimits::default()).is_ok());
        assert_eq!(fault(br#"{"gen_ai.usage.a":1,"gen_ai.usage.b":2,"gen_ai.usage.a":3}"#), "gen_ai.usage.a: appears twice");
        assert_eq!(fault(br#"{"":1,"":2}"#), "the document: appears twice");
    }

    #[test]
    fn what_is_not_utf8_is_refused() {
        assert_eq!(fault(b"{\"a\":\"\xff\"}"), "not UTF-8 at byte 6");
    }
}
