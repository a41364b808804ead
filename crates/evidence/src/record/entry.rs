//! An entry of the record, read back, and its hash.

use aws_lc_rs::digest::{Context, SHA256};
use chancery_core::Block;
use chancery_protocol::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    at: i64,
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// The hash of an entry that is kept as this line: its link is put where it belongs.
pub(super) fn hash(line: &str, link: usize, index: u64, prev: &Hash) -> Hash {
    let mut digest = Context::new(&SHA256);
    digest.update(&line.as_bytes()[..link]);
    let mut between = [0; 128];
    let length = write_link(&mut between, index, prev);
    digest.update(&between[..length]);
    digest.update(&line.as_bytes()[link..]);
    let mut hash = [0; 32];
    hash.copy_from_slice(digest.finish().as_ref());
    hash
}

/// `"index":N,"prev":"HEX",`
fn write_link(to: &mut [u8; 128], index: u64, prev: &Hash) -> usize {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut length = 0;
    let mut put = |bytes: &[u8]| {
        to[length..length + bytes.len()].copy_from_slice(bytes);
        length += bytes.len();
    };
    put(br#""index":"#);
    let mut number = [0; 20];
    let (mut start, mut rest) = (number.len(), index);
    loop {
        start -= 1;
        number[start] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    put(&number[start..]);
    put(br#","prev":""#);
    let mut digits = [0; 64];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(prev) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    put(&digits);
    put(br#"","#);
    length
}

/// The hash of an entry by its parts, in whatever form they came: canonical JSON is made anew.
pub(crate) fn hash_of_parts(at: Timestamp, kind: &str, data: &Value, index: u64, prev: &Hash) -> Result<Hash, String> {
    let entry = serde_json::json!({ "at": at.micros(), "data": data, "index": index, "prev": hex(prev), "type": kind });
    let bytes = chancery_identity::jcs::canonical(&entry).map_err(|fault| fault.to_string())?;
    Ok(super::sha256(&bytes))
}

/// The entries of a block that follows an entry of this hash. They are read as they stand: whether the last one's hash is
/// the one the block says is for the caller to see.
pub fn entries_of(block: &Block, prev: Hash) -> Result<Vec<Entry>, BadLine> {
    let mut entries = Vec::with_capacity(usize::try_from(block.count).unwrap_or_default());
    let mut prev = prev;
    for (line, index) in block.entries.lines().zip(block.first..) {
        let bad = |why: &dyn std::fmt::Display| BadLine { index, why: why.to_string() };
        let read: Line<'_> = serde_json::from_str(line).map_err(|fault| bad(&fault))?;
        let kind = format!(r#""type":"{}"}}"#, read.kind);
        let link = line.len().checked_sub(kind.len()).filter(|link| line.get(*link..) == Some(&kind));
        let link = link.ok_or_else(|| bad(&"it does not end with its type"))?;
        let hash = hash(line, link, index, &prev);
        let data = serde_json::from_str(read.data.get()).map_err(|fault| bad(&fault))?;
        entries.push(Entry { index, at: Timestamp::from_micros(read.at), kind: read.kind.to_owned(), data, prev, hash });
        prev = hash;
    }
    Ok(entries)
}
