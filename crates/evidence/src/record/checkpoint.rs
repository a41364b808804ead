//! Signed words on how the record stands.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_core::Checkpoint;
use chancery_identity::keys::Receipts;
use chancery_identity::{Algorithm, PublicKey, SigningKey};
use chancery_protocol::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Hash, from_hex, hex, sha256};

/// What is signed, members in canonical order. Hashes are in hex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointBody {
    /// In microseconds.
    pub at: i64,
    /// Of the entry before the segment.
    pub before: String,
    /// Entries of the segment so far.
    pub count: u64,
    /// The index of the segment's first entry.
    pub first: u64,
    /// Of the newest entry.
    pub hash: String,
    pub kid: String,
    /// Always `chancery.evidence.checkpoint`: nothing else that is signed for this use says so.
    pub kind: String,
    /// Counts all checkpoints from 1.
    pub number: u64,
    /// The digest of the body that sealed the segment before; zeros for the first segment.
    pub previous: String,
    /// The Ed25519 key, raw, in base64url.
    pub public: String,
    /// Of the Merkle tree over the segment so far.
    pub root: String,
    /// The segment is whole.
    pub sealed: bool,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CheckpointFault {
    #[error("checkpoint {0} cannot be read: {1}")]
    Unreadable(u64, String),
    #[error("checkpoint {0} names another key than the one it carries")]
    OtherKey(u64),
    #[error("checkpoint {0} is not signed by the key it carries")]
    Signature(u64),
}

const KIND: &str = super::types::CHECKPOINT;

/// How a segment stands.
#[derive(Debug)]
pub(super) struct SegmentState<'a> {
    pub(super) at: Timestamp,
    pub(super) before: &'a Hash,
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) hash: &'a Hash,
    pub(super) root: &'a Hash,
    pub(super) number: u64,
    pub(super) previous: &'a Hash,
    pub(super) sealed: bool,
}

pub(super) fn sign(stand: &SegmentState<'_>, key: &SigningKey<Receipts>) -> Result<Checkpoint, String> {
    let body = CheckpointBody {
        at: stand.at.micros(),
        before: hex(stand.before),
        count: stand.count,
        first: stand.first,
        hash: hex(stand.hash),
        kid: key.kid().to_owned(),
        kind: KIND.to_owned(),
        number: stand.number,
        previous: hex(stand.previous),
        public: URL_SAFE_NO_PAD.encode(key.public().raw()),
        root: hex(stand.root),
        sealed: stand.sealed,
    };
    let body = serde_json::to_string(&body).map_err(|fault| fault.to_string())?;
    let signature = key.sign(body.as_bytes()).map_err(|fault| fault.to_string())?;
    let (number, end) = (stand.number, stand.first + stand.count);
    Ok(Checkpoint { number, end, sealed: stand.sealed, at: stand.at, body, signature })
}

/// What a checkpoint says, if it is signed by the key it carries. Whose key that is, is for the reader to know.
pub fn signed_body(checkpoint: &Checkpoint) -> Result<CheckpointBody, CheckpointFault> {
    let number = checkpoint.number;
    let unreadable = |why: String| CheckpointFault::Unreadable(number, why);
    let body: CheckpointBody = serde_json::from_str(&checkpoint.body).map_err(|fault| unreadable(fault.to_string()))?;
    let raw = URL_SAFE_NO_PAD.decode(&body.public).map_err(|fault| unreadable(fault.to_string()))?;
    let key = PublicKey::from_raw(Algorithm::EdDsa, &raw).map_err(|fault| unreadable(fault.to_string()))?;
    if key.kid() != body.kid {
        return Err(CheckpointFault::OtherKey(number));
    }
    if !key.verify::<Receipts>(checkpoint.body.as_bytes(), &checkpoint.signature) {
        return Err(CheckpointFault::Signature(number));
    }
    if body.kind != KIND || body.number != number || body.first.checked_add(body.count) != Some(checkpoint.end) {
        return Err(unreadable("its signed number, kind or range differs from the stored one".to_owned()));
    }
    if [&body.before, &body.hash, &body.previous, &body.root].iter().any(|hash| from_hex(hash).is_none()) {
        return Err(unreadable("it contains an invalid hash".to_owned()));
    }
    Ok(body)
}

pub(super) fn digest(checkpoint: &Checkpoint) -> Hash {
    sha256(checkpoint.body.as_bytes())
}
