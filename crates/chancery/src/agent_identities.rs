//! The AgentIDs of this node's agents: from the cards that the node serves, and from the proofs and pins of
//! remote agents.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use chancery_core::lineage::AgentIdIndex;
use chancery_core::{AgentIdentities, Clock};
use chancery_identity::{Algorithm, KeyUse};
use chancery_protocol::{AgentId, AgentName};

use crate::gateway::Gateway;
use crate::key_registry::KeyRegistry;

/// Keys and cards are gone through again after so long.
const KEPT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct NodeIdentities {
    keys: Arc<KeyRegistry>,
    clock: Arc<dyn Clock>,
    gateway: Weak<Gateway>,
    kept: Mutex<Option<(Duration, Arc<AgentIdIndex>)>>,
}

impl NodeIdentities {
    pub(crate) fn new(keys: Arc<KeyRegistry>, clock: Arc<dyn Clock>, gateway: &Arc<Gateway>) -> Self {
        Self { keys, clock, gateway: Arc::downgrade(gateway), kept: Mutex::default() }
    }

    fn made(&self) -> AgentIdIndex {
        let mut ids = card_ids(&self.keys, self.clock.as_ref());
        for remote in self.gateway.upgrade().into_iter().flat_map(|gateway| gateway.agents_elsewhere()) {
            for replica in remote.pool().replicas() {
                let proven = replica.seen().counts.map(|card| card.verification.agent_ids().to_vec()).unwrap_or_default();
                let pinned = replica.address().agent_id.clone();
                ids.extend(proven.into_iter().chain(pinned).map(|id| (remote.name.clone(), id)));
            }
        }
        AgentIdIndex::new(ids)
    }
}

impl AgentIdentities for NodeIdentities {
    fn index(&self) -> Arc<AgentIdIndex> {
        let now = self.clock.elapsed();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((made, index)) if now.saturating_sub(*made) < KEPT => Arc::clone(index),
            _ => Arc::clone(&kept.insert((now, Arc::new(self.made()))).1),
        }
    }
}

/// Those of the cards that this node signs for its agents; of several keys the one that signs comes first.
pub(crate) fn card_ids(keys: &KeyRegistry, clock: &dyn Clock) -> Vec<(AgentName, AgentId)> {
    let (ring, now) = (keys.ring(), clock.now());
    let of_cards = ring.published(now).filter(|key| key.key_use == KeyUse::Cards && key.algorithm() == Algorithm::EdDsa);
    let mut of_cards: Vec<_> = of_cards.collect();
    of_cards.sort_by_key(|key| (key.used_from > now, std::cmp::Reverse((key.given, key.used_from, key.made_at))));
    let named = of_cards.into_iter().filter_map(|key| Some((AgentName::from(key.owner.as_deref()?), key.public.agent_id()?)));
    named.collect()
}
