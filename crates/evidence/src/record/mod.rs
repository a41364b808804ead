//! The record: what was seen and decided, put into words, linked entry to entry, and signed.
//!
//! An entry is a JSON object with the members `at` (microseconds), `data`, `index`, `prev` and `type`; its hash is the SHA-256 of its
//! canonical form (RFC 8785), and `prev` is the hash of the entry before it. Entries are kept in shorthand, without `index` and
//! `prev`, which follow from their place. A segment is a fixed number of entries; over each there is a Merkle tree (RFC 6962) whose
//! leaves are the hashes of its entries. Checkpoints sign the hash of the newest entry and the root of its segment's tree.

mod chain;
mod checkpoint;
mod content;
mod entry;
mod examine;
mod line_writer;
mod lines;
pub mod merkle;
mod settings;
mod shorthand;
mod words;

pub use chain::Recorder;
pub use checkpoint::{CheckpointBody, CheckpointFault, signed_body};
pub use content::{Content, content_of};
pub(crate) use entry::hash_of_parts;
pub use entry::{BadLine, Entry, NOTHING, entries_of, text_of};
pub use examine::{BACK_DATED_MICROS, Examination, RecordFault, Segment, check_signers};
pub(crate) use examine::{check_order, is_back_dated_after};
pub use lines::EntryWriter;
pub use settings::EvidenceConfig;
pub use words::types;

/// A SHA-256 digest.
pub type Hash = [u8; 32];

pub fn sha256(bytes: &[u8]) -> Hash {
    chancery_identity::SealKey::digest(bytes)
}

/// In lower-case hex.
pub fn hex(hash: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = hash.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

/// Of 64 lower-case digits.
pub fn from_hex(text: &str) -> Option<Hash> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}
