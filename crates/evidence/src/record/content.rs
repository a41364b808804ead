//! The digest of what was said, in place of what was said.
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

pub fn content_of(parts: &[Part]) -> Content {
    let mut digest = Context::new(&SHA256);
    let mut bytes = 0;
    for part in parts {
        let (letter, content) = match &part.content {
            PartContent::Text(text) => (b't', text.as_bytes()),
            PartContent::Raw(raw) => (b'r', raw.as_ref()),
            PartContent::Url(url) => (b'u', url.as_bytes()),
            PartContent::Data(json) => (b'd', json.text().as_bytes()),
        };
        let mut head = [letter; 9];
        head[1..].copy_from_slice(&(content.len() as u64).to_be_bytes());
        digest.update(&head);
        digest.update(content);
        bytes += content.len() as u64;
    }
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest.finish().as_ref());
    Content { parts: parts.len(), bytes, sha256 }
}
