//! Which cards of agents elsewhere were fetched, for the record, whatever was judged of them: each at first, and again when it has changed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chancery_core::{CardObserved, Chancery, Note};
use chancery_evidence::record::from_hex;

use super::remote::Remote;

#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// What was seen last, by agent and replica.
    digests: Mutex<HashMap<String, String>>,
}

impl Observed {
    /// Nothing is done for a node that keeps no record.
    pub(crate) async fn note(&self, remote: &Remote, chancery: &Chancery) {
        let Some(record) = chancery.record() else { return };
        for replica in remote.pool().replicas() {
            let Some(found) = replica.seen().shown else { continue };
            let place = format!("{} {}", remote.name, replica.name());
            if self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(&place) == Some(&found.digest) {
                continue;
            }
            let observed = CardObserved {
                agent: remote.name.clone(),
                url: found.url.as_str().into(),
                protocol_version: found.version.as_str().into(),
                sha256: from_hex(&found.digest).unwrap_or_default(),
                bytes: found.text.len() as u64,
                at: chancery.now(),
            };
            match record.note(Note::CardObserved(Box::new(observed))).await {
                Ok(()) => {
                    let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
                    digests.insert(place, found.digest.clone());
                }
                Err(fault) => tracing::error!(error = &fault as &dyn std::error::Error, "a card could not be recorded"),
            }
        }
    }
}
