//! Stands in for the node's memory in a build without the feature `memory-tier`: a config with a tier is refused.

use std::sync::Arc;

use chancery_core::Chancery;
use chancery_memory::{MemoryConfig, MemoryError, Tier};
use chancery_protocol::Timestamp;

use crate::key_registry::KeyRegistry;

/// No memory can be made.
#[derive(Clone, Debug)]
pub(crate) struct NodeMemory(Arc<Tier>);

/// Why the memory of a node cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum MemoryBuildError {
    /// The config has a tier, which this build cannot open.
    #[error("memory.tier: {0}")]
    Tier(#[from] MemoryError),
}

impl NodeMemory {
    pub(crate) fn of(
        _: &Chancery,
        config: &MemoryConfig,
        _: &Arc<KeyRegistry>,
        _: Timestamp,
    ) -> Result<Option<Self>, MemoryBuildError> {
        Ok(Tier::open(config)?.map(|tier| Self(Arc::new(tier))))
    }

    pub(crate) fn tier(&self) -> &Arc<Tier> {
        &self.0
    }
}
