//! The digest of a message or artifact, which the record holds instead of the content.
//!
//! The digest is SHA-256 over all parts in order, each as one letter (`t` text, `r` bytes, `u` link, `d` data), its length in
//! bytes as eight bytes, the highest first, and the bytes: text and links in UTF-8, data as the JSON text it came in.

use aws_lc_rs::digest::{Context, SHA256};
use chancery_protocol::{Part, PartContent};

use super::Hash;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub parts: usize,
    /// Of all parts together.
    pub bytes: u64,
    pub sha256: Hash,
}

/// Up to so much is hashed at once, which takes less than to begin, to go on and to end.
const SMALL: usize = 512;

pub fn content_of(parts: &[Part]) -> Content {
    let bytes = parts.iter().map(|part| lettered(part).1.len()).sum::<usize>();
    let mut sha256 = [0; 32];
    let length = bytes + HEAD * parts.len();
    if length <= SMALL {
        let (mut small, mut end) = ([0; SMALL], 0);
        each(parts, |piece| {
            small[end..end + piece.len()].copy_from_slice(piece);
            end += piece.len();
        });
        sha256 = super::sha256(&small[..end]);
    } else {
        let mut digest = Context::new(&SHA256);
        each(parts, |piece| digest.update(piece));
        sha256.copy_from_slice(digest.finish().as_ref());
    }
    Content { parts: parts.len(), bytes: bytes as u64, sha256 }
}

/// A letter and a length.
const HEAD: usize = 9;

fn lettered(part: &Part) -> (u8, &[u8]) {
    match &part.content {
        PartContent::Text(text) => (b't', text.as_bytes()),
        PartContent::Raw(raw) => (b'r', raw.as_ref()),
        PartContent::Url(url) => (b'u', url.as_bytes()),
        PartContent::Data(json) => (b'd', json.text().as_bytes()),
    }
}

fn each(parts: &[Part], mut hash: impl FnMut(&[u8])) {
    for part in parts {
        let (letter, content) = lettered(part);
        let mut head = [letter; HEAD];
        head[1..].copy_from_slice(&(content.len() as u64).to_be_bytes());
        hash(&head);
        hash(content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hashed_at_once_has_the_digest_it_has_piece_by_piece() {
        for length in [0, 1, 484, 485, 486, 5000] {
            let parts = [Part::text("a".repeat(length)), Part::text("b".repeat(9))];
            let mut all = Vec::new();
            each(&parts, |bytes| all.extend_from_slice(bytes));
            assert_eq!(all.len(), length + 27);
            let expected = Content { parts: 2, bytes: length as u64 + 9, sha256: crate::record::sha256(&all) };
            assert_eq!(content_of(&parts), expected);
        }
    }
}
