//! What is remembered of a task or a result to tell a repetition from a contradiction: a keyed hash, because inputs may be megabytes.

use std::hash::{BuildHasher, Hash, RandomState};

/// 128 bits of what was said.
pub(super) type Fingerprint = (u64, u64);

/// The keys of one memory. Nobody outside knows them, so nobody can look for two contents that hash alike.
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
