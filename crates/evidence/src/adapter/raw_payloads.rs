//! Where raw packets are kept before anyone reads them, so that also what cannot be read can be looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::canonical::sha256_hex;
use super::error::AdapterError;

/// How a batch refers to the bytes it was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RawPayloadRef {
    /// Of the exact bytes, in lower-case hex without a prefix.
    pub sha256: String,
    pub size_bytes: u64,
    pub media_type: String,
}

impl RawPayloadRef {
    pub fn of(bytes: &[u8], media_type: impl Into<String>) -> Self {
        Self { sha256: sha256_hex(bytes), size_bytes: bytes.len() as u64, media_type: media_type.into() }
    }
}

/// Keeps the bytes of packets. Its errors end a conversion as they are; failures of storage are of kind `infrastructure`.
/// What it keeps may hold secrets: no implementation logs it.
pub trait RawPayloads {
    fn keep(&self, bytes: &[u8], media_type: &str) -> Result<RawPayloadRef, AdapterError>;
}

/// What may be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentPolicy {
    max_payload_bytes: u64,
    media_types: BTreeSet<String>,
}

impl AttachmentPolicy {
    /// Media types in their canonical form: lower case, without parameters.
    pub fn new<S: Into<String>>(max_payload_bytes: u64, media_types: impl IntoIterator<Item = S>) -> Self {
        Self { max_payload_bytes, media_types: media_types.into_iter().map(Into::into).collect() }
    }

    /// The canonical media type if bytes of that type may be kept.
    pub fn admit(&self, bytes: &[u8], media_type: &str) -> Result<String, AdapterError> {
        let max = self.max_payload_bytes;
        if bytes.len() as u64 > max {
            return Err(AdapterError::measurement(format!("payload exceeds attachment policy max_payload_bytes ({max})")));
        }
        let media_type = canonical_media_type(media_type)?;
        if !self.media_types.contains(&media_type) {
            return Err(AdapterError::measurement(format!("unsupported attachment media type: {media_type}")));
        }
        Ok(media_type)
    }
}

fn canonical_media_type(media_type: &str) -> Result<String, AdapterError> {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence.is_empty() {
        return Err(AdapterError::measurement("attachment media type must not be empty"));
    }
    let plain = essence.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.+-".contains(&byte));
    let two_sides = essence.split_once('/').is_some_and(|(kind, subtype)| {
        let empty = kind.is_empty() || subtype.is_empty();
        !empty && !subtype.contains('/')
    });
    if plain && two_sides { Ok(essence) } else { Err(AdapterError::measurement("attachment media type is invalid")) }
}

/// Packets by digest, for as long as the process lives.
#[derive(Debug)]
pub struct MemoryRawPayloads {
    policy: AttachmentPolicy,
    kept: Mutex<RawPayloadMap>,
}

#[derive(Default)]
struct RawPayloadMap(BTreeMap<String, Vec<u8>>);

/// Packets are not for logs.
impl std::fmt::Debug for RawPayloadMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} packets", self.0.len())
    }
}

impl MemoryRawPayloads {
    pub fn new(policy: AttachmentPolicy) -> Self {
        Self { policy, kept: Mutex::default() }
    }

    /// The bytes behind a digest.
    pub fn get(&self, sha256: &str) -> Option<Vec<u8>> {
        self.kept().0.get(sha256).cloned()
    }

    pub fn len(&self) -> usize {
        self.kept().0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kept(&self) -> MutexGuard<'_, RawPayloadMap> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RawPayloads for MemoryRawPayloads {
    /// Keeping the same bytes again is no error and takes no more room.
    fn keep(&self, bytes: &[u8], media_type: &str) -> Result<RawPayloadRef, AdapterError> {
        let reference = RawPayloadRef::of(bytes, self.policy.admit(bytes, media_type)?);
        self.kept().0.entry(reference.sha256.clone()).or_insert_with(|| bytes.to_vec());
        Ok(reference)
    }
}
