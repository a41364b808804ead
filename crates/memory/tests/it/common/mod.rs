//! A tier in a folder of its own, and vectors to put into it.

use std::path::Path;
use std::sync::Arc;

use chancery_memory::{Incoming, MemoryConfig, MemoryError, PublishedCollection, Tier, VectorShape};

pub(crate) const DIM: u32 = 16;

pub(crate) fn config(folder: &Path) -> MemoryConfig {
    MemoryConfig { tier: Some(folder.to_str().unwrap().to_owned()), ..MemoryConfig::default() }
}

pub(crate) fn tier(folder: &Path) -> Arc<Tier> {
    Arc::new(Tier::open(&config(folder)).unwrap().unwrap())
}

/// The same for the same seed.
pub(crate) fn vectors(seed: u64, count: u64, dim: u32) -> Vec<Vec<f32>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| (0..dim).map(|_| next()).collect()).collect()
}

/// As a file. Ids are not places: the first is 1000, and every third is left out.
pub(crate) fn file(vectors: &[Vec<f32>]) -> Vec<u8> {
    let dim = vectors.first().map_or(DIM, |vector| vector.len() as u32);
    let mut file = VectorShape { count: vectors.len() as u64, dim }.header().to_vec();
    for (place, vector) in vectors.iter().enumerate() {
        file.extend(id(place).to_le_bytes());
        file.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
    }
    file
}

pub(crate) fn id(place: usize) -> u64 {
    1000 + place as u64 * 3
}

pub(crate) fn incoming(tier: &Tier, file: &[u8]) -> Result<Incoming, MemoryError> {
    let mut incoming = tier.begin()?;
    for piece in file.chunks(1000) {
        incoming.take(piece)?;
    }
    Ok(incoming)
}

pub(crate) fn publish(tier: &Tier, vectors: &[Vec<f32>]) -> PublishedCollection {
    tier.publish(incoming(tier, &file(vectors)).unwrap(), None).unwrap()
}
