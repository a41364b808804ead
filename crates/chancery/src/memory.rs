//! The node's memory tier behind the port of the service: grants are checked with the node's keys, and work that blocks runs beside the event loop.

use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::{Chancery, Collection, Nearest, RecallRequest, SharedMemory, WrittenGeneration};
use chancery_identity::{Algorithm, KeyRing, KeyUse};
use chancery_memory::{MemoryConfig, MemoryError, MemoryGate, MemoryRequest, Tier, Witness};
use chancery_protocol::{AgentId, Error, ErrorKind, Timestamp};

use crate::key_registry::{KeyRegistry, KeyRegistryError};

#[derive(Clone, Debug)]
pub(crate) struct NodeMemory {
    pub(crate) gate: Arc<MemoryGate>,
    pub(crate) keys: Arc<KeyRegistry>,
}

/// Why the node's memory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum MemoryBuildError {
    /// The folder of the tier cannot be used.
    #[error("memory.tier: {0}")]
    Tier(#[from] MemoryError),
    /// The key of grants cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyRegistryError),
}

impl NodeMemory {
    /// What agents of a control plane look at. Nothing, if the config has no tier.
    pub(crate) fn of(
        chancery: &Chancery,
        config: &MemoryConfig,
        keys: &Arc<KeyRegistry>,
        now: Timestamp,
    ) -> Result<Option<Self>, MemoryBuildError> {
        let memory = Self::open(config, keys, now)?;
        if let Some(memory) = &memory {
            chancery.set_memory(Arc::new(memory.clone()));
        }
        Ok(memory)
    }

    /// A node with a tier has a key for grants.
    fn open(config: &MemoryConfig, keys: &Arc<KeyRegistry>, now: Timestamp) -> Result<Option<Self>, MemoryBuildError> {
        let Some(tier) = Tier::open(config)? else { return Ok(None) };
        keys.ensure(KeyUse::MemoryGrants, now)?;
        let gate = Arc::new(MemoryGate::new(Arc::new(tier), config));
        Ok(Some(Self { gate, keys: Arc::clone(keys) }))
    }

    pub(crate) fn tier(&self) -> &Arc<Tier> {
        self.gate.tier()
    }

    /// Runs what blocks. What goes wrong is logged whole and told in part.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MemoryGate, &KeyRing) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, Error> {
        let (gate, ring) = (Arc::clone(&self.gate), self.keys.ring());
        let done = tokio::task::spawn_blocking(move || work(&gate, &ring)).await;
        let done = done.map_err(|_| Error::new(ErrorKind::Internal, "memory: the work broke off"))?;
        done.map_err(|error| {
            let public = error.public();
            if public.kind == ErrorKind::Internal {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the memory tier failed; see memory.tier in the config"
                );
            }
            public
        })
    }

    async fn looked<T: Send + 'static>(
        &self,
        wanted: RecallRequest,
        look: impl FnOnce(&MemoryGate, &MemoryRequest<'_>, &KeyRing) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, Error> {
        let witness: Witness = wanted.witness.parse().map_err(|fault: &str| Error::invalid_field("witness", fault))?;
        self.blocking(move |gate, ring| {
            let grantee = agent_ids(ring, &wanted.agent, wanted.at);
            let ask = MemoryRequest {
                witness: &witness,
                data_ref: Some(&wanted.data_ref),
                handed_for: Some(&wanted.capabilities),
                grant: wanted.grant.as_deref(),
                grantee: &grantee,
                presenter: wanted.presenter.as_ref(),
                now: wanted.at,
            };
            look(gate, &ask, ring)
        })
        .await
    }
}

/// Who an agent of this node is: by the key it signs with, and by those that are being replaced.
pub(crate) fn agent_ids(ring: &KeyRing, agent: &str, now: Timestamp) -> Vec<AgentId> {
    let of_cards = ring.published(now).filter(|key| key.key_use == KeyUse::Cards && key.algorithm() == Algorithm::EdDsa);
    of_cards.filter(|key| key.owner.as_deref() == Some(agent)).filter_map(|key| key.public.agent_id()).collect()
}

#[async_trait]
impl SharedMemory for NodeMemory {
    async fn resolve(&self, wanted: RecallRequest) -> Result<Collection, Error> {
        let resolved = self.looked(wanted, |gate, ask, ring| gate.resolve(ask, ring)).await?;
        let witness = resolved.witness.to_string();
        Ok(Collection { witness, data_ref: resolved.data_ref, dim: resolved.dim, count: resolved.count })
    }

    async fn search(&self, wanted: RecallRequest, queries: Vec<Vec<f32>>, k: usize) -> Result<Vec<Vec<Nearest>>, Error> {
        let found = self.looked(wanted, move |gate, ask, ring| gate.search(ask, &queries, k, ring)).await?;
        let nearest = |one: chancery_memory::Neighbour| Nearest { id: one.id, score: one.score };
        Ok(found.into_iter().map(|near| near.into_iter().map(nearest).collect()).collect())
    }

    async fn write(&self, wanted: RecallRequest, vectors: Vec<(u64, Vec<f32>)>) -> Result<WrittenGeneration, Error> {
        let written = self.looked(wanted, move |gate, ask, ring| gate.write(ask, &vectors, ring)).await?;
        let published = written.published;
        let witness = published.witness.to_string();
        let collection = Collection { witness, data_ref: published.data_ref, dim: published.dim, count: published.count };
        Ok(WrittenGeneration { collection, grant: written.grant })
    }
}
