//! Records each fetched card of a remote agent, accepted or not: the first one, and each change.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chancery_core::{CardObserved, Chancery, Record, RecordNote};
use chancery_evidence::record::{from_hex, hex, sha256};
use chancery_identity::jcs;
use chancery_outbound::remote::Replica;
use chancery_protocol::{AgentName, Timestamp};

use super::remote::Remote;

#[derive(Debug, Default)]
pub(crate) struct ObservedCards {
    /// What was seen last, by agent, replica and whether the card is the extended one.
    digests: Mutex<HashMap<String, String>>,
}

impl ObservedCards {
    /// Nothing is done for a node that keeps no record.
    pub(crate) async fn note(&self, remote: &Remote, chancery: &Chancery) {
        let Some(record) = chancery.record() else { return };
        for replica in remote.pool().replicas() {
            let place = format!("{} {}", remote.name, replica.name());
            let now = chancery.now();
            if let Some(card) = public_card(&remote.name, replica, now) {
                self.note_one(&*record, place.clone(), card).await;
            }
            if let Some(card) = extended_card(&remote.name, replica, now) {
                self.note_one(&*record, format!("{place} extended"), card).await;
            }
        }
    }

    /// Records a card unless the last one at this place was the same.
    async fn note_one(&self, record: &dyn Record, place: String, card: CardObserved) {
        let digest = hex(&card.sha256);
        if self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(&place) == Some(&digest) {
            return;
        }
        match record.note(RecordNote::CardObserved(Box::new(card))).await {
            Ok(()) => {
                let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
                digests.insert(place, digest);
            }
            Err(fault) => {
                tracing::error!(error = &fault as &dyn std::error::Error, "cannot write the card of an agent to the record")
            }
        }
    }
}

fn public_card(agent: &AgentName, replica: &Replica, at: Timestamp) -> Option<CardObserved> {
    let found = replica.seen().shown?;
    Some(CardObserved {
        agent: agent.clone(),
        url: found.url.as_str().into(),
        protocol_version: found.version.as_str().into(),
        extended: false,
        sha256: from_hex(&found.digest).unwrap_or_default(),
        bytes: found.text.len() as u64,
        at,
    })
}

/// An extended card may come over gRPC, which has no JSON. Its digest is over one form for all bindings.
fn extended_card(agent: &AgentName, replica: &Replica, at: Timestamp) -> Option<CardObserved> {
    let found = replica.seen_extended()?;
    let text = serde_json::to_value(&found.card).ok().and_then(|card| jcs::canonical(&card).ok())?;
    Some(CardObserved {
        agent: agent.clone(),
        url: found.url.as_str().into(),
        protocol_version: found.version.as_str().into(),
        extended: true,
        sha256: sha256(&text),
        bytes: text.len() as u64,
        at,
    })
}
