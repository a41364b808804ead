//! The ruLake tier of a node: collections are put in, found by their witness, checked and searched.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ruvector_rulake::{Generation, PulledBatch, RuLake, RuLakeBundle, RuLakeError};
use serde::Serialize;

use crate::backend::CheckedCollections;
use crate::bucket::BucketTier;
use crate::folder::Folder;
use crate::storage_backend::{StorageBackend, vectors_name};
use crate::{Digest, Incoming, MemoryConfig, MemoryError, VectorShape, Witness, ruvec};

/// The same for every node, so that codes and neighbours are.
const ROTATION_SEED: u64 = 159;
/// Candidates looked at exactly for each neighbour that is wanted.
const RERANK_FACTOR: usize = 20;
/// As ruLake bounds what it reads.
const MAX_BUNDLE: u64 = 64 * 1024;
/// Neighbours of one query.
pub(crate) const MAX_NEIGHBOURS: usize = 1_000;
const DIGEST: &str = "sha256:";

/// What was put into the tier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedCollection {
    pub witness: Witness,
    pub data_ref: String,
    pub dim: u32,
    pub count: u64,
    pub bytes: u64,
}

/// What a witness stands for, checked and ready to be searched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resolved {
    pub witness: Witness,
    pub data_ref: String,
    pub dim: u32,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Neighbour {
    pub id: u64,
    /// The square of the distance.
    pub score: f32,
}

pub struct Tier {
    shard: String,
    shelf: Arc<dyn StorageBackend>,
    lake: RuLake,
    checked: Arc<CheckedCollections>,
    max_collection_bytes: u64,
    resident_bytes: u64,
    /// Least recently used first. Also held while one is loaded, so that there is room for one at a time.
    resident: Mutex<VecDeque<(Resolved, u64)>>,
}

impl std::fmt::Debug for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tier({} in {:?})", self.shard, self.shelf)
    }
}

impl Tier {
    /// Nothing, if the config has no tier.
    pub fn open(config: &MemoryConfig) -> Result<Option<Self>, MemoryError> {
        let Some(place) = &config.tier else { return Ok(None) };
        if BucketTier::is(place) {
            return Self::on(Arc::new(BucketTier::open(place)?), config).map(Some);
        }
        let folder = place.strip_prefix("file://").unwrap_or(place);
        Self::on(Arc::new(Folder::open(Path::new(folder))?), config).map(Some)
    }

    fn on(shelf: Arc<dyn StorageBackend>, config: &MemoryConfig) -> Result<Self, MemoryError> {
        let checked = Arc::new(CheckedCollections::new(&config.shard));
        let lake = RuLake::new(RERANK_FACTOR, ROTATION_SEED);
        lake.register_backend(checked.clone())?;
        Ok(Self {
            shard: config.shard.clone(),
            shelf,
            lake,
            checked,
            max_collection_bytes: config.max_collection_bytes,
            resident_bytes: config.resident_bytes,
            resident: Mutex::default(),
        })
    }

    pub fn shard(&self) -> &str {
        &self.shard
    }

    /// What all its references begin with.
    pub fn url(&self) -> &str {
        self.shelf.url()
    }

    pub(crate) fn shelf(&self) -> &dyn StorageBackend {
        &*self.shelf
    }

    /// For the vectors of a new collection.
    pub fn begin(&self) -> Result<Incoming, MemoryError> {
        Incoming::new(self.shelf.blank()?, self.max_collection_bytes)
    }

    /// Puts a collection in. The same vectors are there once, by one witness, however often they come.
    pub fn publish(&self, vectors: Incoming, memory_class: Option<String>) -> Result<PublishedCollection, MemoryError> {
        let (path, shape, digest) = vectors.finish()?;
        self.shelf.take_vectors(&digest, path)?;
        let data_ref = self.reference(&digest);
        let generation = Generation::Opaque(format!("{DIGEST}{digest}"));
        let mut bundle = RuLakeBundle::new(&data_ref, shape.dim as usize, ROTATION_SEED, RERANK_FACTOR, generation);
        bundle.memory_class = memory_class;
        let witness: Witness = bundle.rvf_witness.parse().map_err(|_| MemoryError::Tampered("ruLake made no witness"))?;
        self.shelf.write(&bundle_name(&witness), bundle.to_json()?.as_bytes())?;
        Ok(PublishedCollection { witness, data_ref, dim: shape.dim, count: shape.count, bytes: shape.bytes() })
    }

    /// Finds what a witness stands for and checks all of it: the bundle against the witness, the vectors against the bundle.
    /// A reference that came with it must be the one of the bundle; it is compared and never followed.
    pub fn resolve(&self, witness: &Witness, data_ref: Option<&str>) -> Result<Resolved, MemoryError> {
        if let Some(data_ref) = data_ref {
            self.digest_in(data_ref)?;
        }
        let mut resident = self.lock();
        if let Some(held) = touch(&mut resident, witness) {
            return same_place(held, data_ref);
        }
        let (bundle, digest, vectors) = self.pull(witness, data_ref)?;
        let shape = VectorShape { count: vectors.ids.len() as u64, dim: u32::try_from(bundle.dim).unwrap_or(u32::MAX) };
        self.make_room(&mut resident, shape.bytes())?;
        let data_ref = bundle.data_ref.clone();
        let resolved = Resolved { witness: witness.clone(), data_ref, dim: shape.dim, count: shape.count };
        self.checked.offer(witness, bundle, &digest, vectors);
        // No queries: this has ruLake take the vectors in and make its codes.
        if let Err(error) = self.lake.search_batch(&self.shard, witness.as_str(), &[], 1) {
            self.checked.forget(witness);
            return Err(error.into());
        }
        resident.push_back((resolved.clone(), shape.bytes()));
        Ok(resolved)
    }

    /// The vectors as they lie there, after all was checked.
    pub(crate) fn pull(
        &self,
        witness: &Witness,
        data_ref: Option<&str>,
    ) -> Result<(RuLakeBundle, Digest, PulledBatch), MemoryError> {
        let bundle = self.bundle(witness)?;
        if data_ref.is_some_and(|said| said != bundle.data_ref) {
            return Err(MemoryError::Reference { field: "data_ref", reason: "is not where the witness says the data is" });
        }
        let digest = self.digest_of(&bundle)?;
        let vectors = self.shelf.vectors(&digest, self.max_collection_bytes)?;
        if vectors.dim != bundle.dim || ruvec::digest(&vectors)? != digest {
            return Err(MemoryError::Tampered("the vectors are not those of the bundle"));
        }
        Ok((bundle, digest, vectors))
    }

    /// Resolves a bundle that another program put into a folder; its vectors have to be in this tier.
    pub fn warm_from_dir(&self, folder: &Path) -> Result<Resolved, MemoryError> {
        let bundle = RuLakeBundle::read_from_dir(folder)?;
        let witness = bundle.rvf_witness.parse().map_err(|_| MemoryError::Tampered("the witness of the bundle is invalid"))?;
        self.resolve(&witness, Some(&bundle.data_ref))
    }

    /// The nearest to each query, nearest first. Resolves the witness if that was not done.
    pub fn search(&self, witness: &Witness, queries: &[Vec<f32>], k: usize) -> Result<Vec<Vec<Neighbour>>, MemoryError> {
        if k == 0 || k > MAX_NEIGHBOURS {
            return Err(MemoryError::Reference { field: "k", reason: "must be from 1 to 1000" });
        }
        let resolved = self.resolve(witness, None)?;
        let dim = resolved.dim as usize;
        if let Some(query) = queries.iter().find(|query| query.len() != dim) {
            return Err(MemoryError::Dimensions { wanted: dim, found: query.len() });
        }
        if queries.iter().flatten().any(|number| !number.is_finite()) {
            return Err(MemoryError::NotVectors("a number of the query is not finite"));
        }
        let found = match self.lake.search_batch(&self.shard, witness.as_str(), queries, k) {
            // Put out to make room between the two steps.
            Err(RuLakeError::UnknownCollection { .. }) => {
                self.resolve(witness, None)?;
                self.lake.search_batch(&self.shard, witness.as_str(), queries, k)?
            }
            found => found?,
        };
        let neighbour = |hit: ruvector_rulake::SearchResult| Neighbour { id: hit.id, score: hit.score };
        Ok(found.into_iter().map(|hits| hits.into_iter().map(neighbour).collect()).collect())
    }

    /// Every witness there is a bundle for.
    pub fn witnesses(&self) -> Result<Vec<Witness>, MemoryError> {
        Ok(self.shelf.list("bundles")?.iter().filter_map(|name| name.parse().ok()).collect())
    }

    fn bundle(&self, witness: &Witness) -> Result<RuLakeBundle, MemoryError> {
        let content = self.shelf.read(&bundle_name(witness), MAX_BUNDLE)?;
        let content = content.ok_or_else(|| MemoryError::Unknown(witness.to_string()))?;
        let tampered = MemoryError::Tampered;
        let text = std::str::from_utf8(&content).map_err(|_| tampered("the bundle is not text"))?;
        let bundle = RuLakeBundle::from_json(text).map_err(|_| tampered("the bundle is not one"))?;
        if bundle.rvf_witness != witness.as_str() || !bundle.verify_witness() {
            return Err(tampered("the bundle is not what the witness says"));
        }
        if bundle.rotation_seed != ROTATION_SEED || bundle.rerank_factor != RERANK_FACTOR {
            return Err(tampered("the bundle was made with other settings than those of this tier"));
        }
        Ok(bundle)
    }

    /// The digest a bundle names twice: as its generation and in its reference.
    fn digest_of(&self, bundle: &RuLakeBundle) -> Result<Digest, MemoryError> {
        let digest = self.digest_in(&bundle.data_ref)?;
        match &bundle.generation {
            Generation::Opaque(said) if said.strip_prefix(DIGEST).and_then(|hex| hex.parse().ok()) == Some(digest) => Ok(digest),
            _ => Err(MemoryError::Tampered("the generation of the bundle is not the digest of its vectors")),
        }
    }

    fn reference(&self, digest: &Digest) -> String {
        format!("{}{}", self.shelf.url(), vectors_name(digest))
    }

    /// Only a reference that this tier could have made is one.
    fn digest_in(&self, data_ref: &str) -> Result<Digest, MemoryError> {
        let digest = data_ref.rsplit('/').next().and_then(|name| name.strip_suffix(".ruvec")).and_then(|hex| hex.parse().ok());
        let outside = MemoryError::Reference { field: "data_ref", reason: "is not in the tier of this node" };
        digest.filter(|digest| self.reference(digest) == data_ref).ok_or(outside)
    }

    fn make_room(&self, resident: &mut VecDeque<(Resolved, u64)>, bytes: u64) -> Result<(), MemoryError> {
        if bytes > self.resident_bytes {
            return Err(MemoryError::TooLarge { what: "vectors", bytes, limit: self.resident_bytes });
        }
        while resident.iter().map(|(_, bytes)| bytes).sum::<u64>() + bytes > self.resident_bytes {
            let Some((oldest, _)) = resident.pop_front() else { break };
            self.lake.invalidate_cache(&(self.shard.clone(), oldest.witness.to_string()));
            self.checked.forget(&oldest.witness);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Resolved, u64)>> {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn touch(resident: &mut VecDeque<(Resolved, u64)>, witness: &Witness) -> Option<Resolved> {
    let at = resident.iter().position(|(held, _)| held.witness == *witness)?;
    let held = resident.remove(at)?;
    resident.push_back(held.clone());
    Some(held.0)
}

fn same_place(held: Resolved, data_ref: Option<&str>) -> Result<Resolved, MemoryError> {
    if data_ref.is_some_and(|said| said != held.data_ref) {
        return Err(MemoryError::Reference { field: "data_ref", reason: "is not where the witness says the data is" });
    }
    Ok(held)
}

fn bundle_name(witness: &Witness) -> String {
    format!("bundles/{witness}/{}", RuLakeBundle::SIDECAR_FILENAME)
}
