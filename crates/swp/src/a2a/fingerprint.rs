//! What is remembered of a task or a result to tell a repetition from a contradiction: a keyed hash, because inputs may be megabytes.

use std::hash::{BuildHasher, Hash, RandomState};

/// 128 bits of a hash over the content.
pub(super) type Fingerprint = (u64, u64);

/// The keys of one memory. They are secret, so no peer can search for two contents with the same hash.
#[derive(Debug, Default)]
pub(super) struct Fingerprints {
    one: RandomState,
    other: RandomState,
}

impl Fingerprints {
    pub(super) fn of(&self, content: impl Hash) -> Fingerprint {
        (self.one.hash_one(&content), self.other.hash_one(&content))
    }
}
