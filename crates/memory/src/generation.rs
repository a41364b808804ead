//! A new generation of a collection: what was there, with vectors added or replaced. The old one stays what it is.

use std::collections::HashMap;

use crate::{MemoryError, PublishedCollection, Tier, VectorShape, Witness};

/// Of one write.
const MAX_WRITTEN: usize = 10_000;

impl Tier {
    /// Stores the collection of a witness again, with these vectors. A vector with a known id replaces the
    /// old one.
    pub fn extend(
        &self,
        witness: &Witness,
        data_ref: Option<&str>,
        vectors: &[(u64, Vec<f32>)],
    ) -> Result<PublishedCollection, MemoryError> {
        if vectors.is_empty() || vectors.len() > MAX_WRITTEN {
            return Err(MemoryError::Reference { field: "vectors", reason: "must be from 1 to 10000" });
        }
        let (bundle, _, old) = self.pull(witness, data_ref)?;
        if let Some((_, vector)) = vectors.iter().find(|(_, vector)| vector.len() != old.dim) {
            return Err(MemoryError::Dimensions { wanted: old.dim, found: vector.len() });
        }
        // Of several with one id, the last counts.
        let mut new: HashMap<u64, &[f32]> = vectors.iter().map(|(id, vector)| (*id, &vector[..])).collect();
        let replaced = old.ids.iter().filter(|id| new.contains_key(id)).count();
        let dim = u32::try_from(old.dim).map_err(|_| MemoryError::NotVectors("too many dimensions"))?;
        let shape = VectorShape { count: (old.ids.len() - replaced + new.len()) as u64, dim };
        let mut incoming = self.begin()?;
        incoming.take(&shape.header())?;
        let mut record = Vec::with_capacity(usize::try_from(shape.record_bytes()).unwrap_or(0));
        let mut put = |id: u64, numbers: &[f32]| {
            record.clear();
            record.extend_from_slice(&id.to_le_bytes());
            record.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            incoming.take(&record)
        };
        for (id, vector) in old.ids.iter().zip(&old.vectors) {
            put(*id, new.remove(id).unwrap_or(vector))?;
        }
        for (id, _) in vectors {
            if let Some(vector) = new.remove(id) {
                put(*id, vector)?;
            }
        }
        self.publish(incoming, bundle.memory_class)
    }
}
