//! An entry of the record, read back, and its hash.

use chancery_core::Block;
use chancery_protocol::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::shorthand::{Garbled, SHORTHAND, write_hex_string, write_number, write_out};
use super::{Hash, hex};

/// What the first entry of all follows.
pub const NOTHING: Hash = [0; 32];

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub index: u64,
    pub at: Timestamp,
    pub kind: String,
    pub data: Value,
    pub prev: Hash,
    pub hash: Hash,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("entry {index} cannot be read: {why}")]
pub struct BadLine {
    pub index: u64,
    pub why: String,
}

/// A line with its link, which follows from its place.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    at: i64,
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(rename = "index")]
    _index: IgnoredAny,
    #[serde(rename = "prev")]
    _prev: IgnoredAny,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// `"index":N,"prev":"HEX",`
pub(super) fn write_link(to: &mut Vec<u8>, index: u64, prev: &Hash) {
    to.extend_from_slice(br#""index":"#);
    write_number(to, index);
    to.extend_from_slice(br#","prev":"#);
    write_hex_string(to, prev);
    to.push(b',');
}

/// The hash of an entry by its parts, in any form: canonical JSON is made again.
pub(crate) fn hash_of_parts(at: Timestamp, kind: &str, data: &Value, index: u64, prev: &Hash) -> Result<Hash, String> {
    let entry = serde_json::json!({ "at": at.micros(), "data": data, "index": index, "prev": hex(prev), "type": kind });
    let bytes = chancery_identity::jcs::canonical(&entry).map_err(|fault| fault.to_string())?;
    Ok(super::sha256(&bytes))
}

/// The entries of a block that follows an entry of this hash. They are read as they stand: whether the last one's hash is
/// the one the block says is for the caller to see.
pub fn entries_of(block: &Block, prev: Hash) -> Result<Vec<Entry>, BadLine> {
    // No line is shorter than a byte, whatever the count says.
    let mut entries = Vec::with_capacity(usize::try_from(block.count).unwrap_or_default().min(block.entries.len()));
    let (mut lines, mut whole, mut prev) = (Hand::of(&block.entries), Vec::new(), prev);
    for index in block.first.. {
        let bad = |why: &dyn std::fmt::Display| BadLine { index, why: why.to_string() };
        whole.clear();
        if !lines.next(&mut whole, |to| write_link(to, index, &prev)).map_err(|fault| bad(&fault))? {
            break;
        }
        let hash = super::sha256(&whole);
        let Line { at, data, kind, .. } = serde_json::from_slice(&whole).map_err(|fault| bad(&fault))?;
        let data = serde_json::from_str(data.get()).map_err(|fault| bad(&fault))?;
        entries.push(Entry { index, at: Timestamp::from_micros(at), kind: kind.to_owned(), data, prev, hash });
        prev = hash;
    }
    Ok(entries)
}

/// The lines of a block in JSON, without their links, each with a line feed.
pub fn text_of(block: &Block) -> Result<String, BadLine> {
    let (mut lines, mut text) = (Hand::of(&block.entries), Vec::new());
    for index in block.first.. {
        if !lines.next(&mut text, |_| {}).map_err(|why| BadLine { index, why: why.to_string() })? {
            break;
        }
        text.push(b'\n');
    }
    String::from_utf8(text).map_err(|fault| BadLine { index: block.first, why: fault.to_string() })
}

/// How the lines of a block are written, and those that are still to be read.
enum Hand<'a> {
    Short(&'a [u8]),
    /// In JSON, each with a line feed, as records were kept before there was a shorthand.
    Long(&'a [u8]),
}

#[derive(Debug, thiserror::Error)]
enum Illegible {
    #[error(transparent)]
    Short(#[from] Garbled),
    #[error("the entry has no event type at its end")]
    NoType,
}

impl<'a> Hand<'a> {
    fn of(entries: &'a [u8]) -> Self {
        match entries {
            [SHORTHAND, lines @ ..] => Self::Short(lines),
            lines => Self::Long(lines),
        }
    }

    /// Writes the next line out, if there is one, with its link where it belongs.
    fn next(&mut self, to: &mut Vec<u8>, link: impl FnOnce(&mut Vec<u8>)) -> Result<bool, Illegible> {
        match self {
            Self::Short([]) | Self::Long([]) => return Ok(false),
            Self::Short(lines) => write_out(lines, to, link)?,
            Self::Long(lines) => {
                let end = lines.iter().position(|byte| *byte == b'\n').unwrap_or(lines.len());
                let (line, rest) = lines.split_at(end);
                *lines = rest.get(1..).unwrap_or_default();
                let (before, kind) = line.split_at(line.len().saturating_sub(tail_of(line).ok_or(Illegible::NoType)?));
                to.extend_from_slice(before);
                link(to);
                to.extend_from_slice(kind);
            }
        }
        Ok(true)
    }
}

/// How long `"type":"…"}` is at the end of a line.
fn tail_of(line: &[u8]) -> Option<usize> {
    const TYPE: &[u8] = br#""type":""#;
    let kind = line.strip_suffix(br#""}"#)?.rsplit(|byte| *byte == b'"').next()?;
    let tail = TYPE.len() + kind.len() + 2;
    line.get(line.len().checked_sub(tail)?..)?.starts_with(TYPE).then_some(tail)
}
