//! Where a tier keeps things: small ones by name, vectors by digest.

use std::fmt::Debug;
use std::path::PathBuf;

use ruvector_rulake::PulledBatch;

use crate::{Digest, MemoryError};

/// A folder or a bucket. Names are made here from digests, witnesses and ids; none ever comes from a caller.
pub(crate) trait StorageBackend: Send + Sync + Debug {
    /// What all references into this tier begin with; ends with a slash.
    fn url(&self) -> &str;

    /// A thing of at most so many bytes, if it is there.
    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, MemoryError>;

    /// Durable when it returns. What is there by that name is replaced.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), MemoryError>;

    fn exists(&self, name: &str) -> Result<bool, MemoryError>;

    /// The length of a thing, if it is there.
    fn size(&self, name: &str) -> Result<Option<u64>, MemoryError>;

    /// So many bytes of a thing from a place on, or fewer at its end.
    fn read_range(&self, name: &str, from: u64, most: u64) -> Result<Vec<u8>, MemoryError>;

    /// Removes all that is under a name.
    fn remove_all(&self, under: &str) -> Result<(), MemoryError>;

    /// What is directly under a name.
    fn list(&self, under: &str) -> Result<Vec<String>, MemoryError>;

    /// How many bytes lie directly under a name.
    fn weight(&self, under: &str) -> Result<u64, MemoryError>;

    /// A new file to fill, on this machine.
    fn blank(&self) -> Result<PathBuf, MemoryError>;

    /// Takes a filled file in, under the digest of its content.
    fn take_vectors(&self, digest: &Digest, filled: PathBuf) -> Result<(), MemoryError>;

    /// The vectors of this digest as they lie there, if they take at most so many bytes.
    fn vectors(&self, digest: &Digest, limit: u64) -> Result<PulledBatch, MemoryError>;
}

/// The name of the vectors with this digest, the same in every backend.
pub(crate) fn vectors_name(digest: &Digest) -> String {
    format!("vectors/{digest}.ruvec")
}
