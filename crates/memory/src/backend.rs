//! What ruLake sees of the tier: bundles whose generation is the digest of their content, and vectors that were checked against it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ruvector_rulake::{BackendAdapter, PulledBatch, Result, RuLakeBundle, RuLakeError};

use crate::{Digest, Witness};

/// One collection for each witness.
#[derive(Debug)]
pub(crate) struct CheckedCollections {
    shard: String,
    collections: Mutex<HashMap<String, Collection>>,
}

#[derive(Debug)]
struct Collection {
    bundle: RuLakeBundle,
    generation: u64,
    /// Handed on once; the lake keeps its own form of it.
    vectors: Option<PulledBatch>,
}

impl CheckedCollections {
    pub(crate) fn new(shard: &str) -> Self {
        Self { shard: shard.to_owned(), collections: Mutex::default() }
    }

    /// Vectors with the digest that the bundle names. The caller has checked the digest.
    pub(crate) fn offer(&self, witness: &Witness, bundle: RuLakeBundle, digest: &Digest, vectors: PulledBatch) {
        let generation = u64::from_be_bytes(*digest.bytes().first_chunk().unwrap_or(&[0; 8]));
        let collection = Collection { bundle, generation, vectors: Some(PulledBatch { generation, ..vectors }) };
        self.lock().insert(witness.to_string(), collection);
    }

    pub(crate) fn forget(&self, witness: &Witness) {
        self.lock().remove(witness.as_str());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Collection>> {
        self.collections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self, collection: &str) -> RuLakeError {
        RuLakeError::UnknownCollection { backend: self.shard.clone(), collection: collection.to_owned() }
    }
}

impl BackendAdapter for CheckedCollections {
    fn id(&self) -> &str {
        &self.shard
    }

    fn list_collections(&self) -> Result<Vec<String>> {
        Ok(self.lock().keys().cloned().collect())
    }

    fn pull_vectors(&self, collection: &str) -> Result<PulledBatch> {
        let vectors = self.lock().get_mut(collection).and_then(|held| held.vectors.take());
        vectors.ok_or_else(|| self.unknown(collection))
    }

    fn generation(&self, collection: &str) -> Result<u64> {
        self.lock().get(collection).map(|held| held.generation).ok_or_else(|| self.unknown(collection))
    }

    fn current_bundle(&self, collection: &str, _: u64, _: usize) -> Result<RuLakeBundle> {
        self.lock().get(collection).map(|held| held.bundle.clone()).ok_or_else(|| self.unknown(collection))
    }
}
