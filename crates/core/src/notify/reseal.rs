//! Secrets of registrations are brought over to the vault's new key, while deliveries go on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::engine::Engine;
use crate::StoreError;
use crate::push::{LaneFilter, Resealed};

/// Registrations looked at in one go.
const PAGE: usize = 500;

/// The outcome for the secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealing {
    /// Now under the new key.
    pub moved: u64,
    /// Cannot be opened by any key there is.
    pub lost: u64,
}

impl Engine {
    /// Everything another key sealed is sealed by the one in use. What is registered meanwhile is already.
    pub async fn reseal(&self) -> Result<Resealing, StoreError> {
        let (mut done, mut after) = (Resealing::default(), Some(0));
        while let Some(from) = after {
            let page = self.outbox.lanes(&LaneFilter::default(), from, PAGE).await?;
            let current = self.vault.current();
            let mut anew = Vec::new();
            for registration in page.lanes.iter().map(|lane| &lane.registration) {
                let Some(before) = registration.sealed.clone().filter(|sealed| sealed.kek_id != current) else { continue };
                let bound = registration.bound_to();
                match self.vault.open(&bound, &before) {
                    Some(secret) => {
                        anew.push(Resealed { lane: registration.lane, before, after: self.vault.seal(&bound, secret.expose()) });
                    }
                    None => done.lost += 1,
                }
            }
            if !anew.is_empty() {
                done.moved += self.outbox.reseal(anew).await?;
            }
            after = page.next;
        }
        Ok(done)
    }

    /// How many registrations each key has sealed, by its name.
    pub async fn sealed_by(&self) -> Result<BTreeMap<Arc<str>, u64>, StoreError> {
        let (mut counts, mut after) = (BTreeMap::<Arc<str>, u64>::new(), Some(0));
        while let Some(from) = after {
            let page = self.outbox.lanes(&LaneFilter::default(), from, PAGE).await?;
            for sealed in page.lanes.iter().filter_map(|lane| lane.registration.sealed.as_ref()) {
                *counts.entry(Arc::clone(&sealed.kek_id)).or_default() += 1;
            }
            after = page.next;
        }
        Ok(counts)
    }
}
