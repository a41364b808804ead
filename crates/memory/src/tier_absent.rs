//! Stands in for the tier in a build without the feature `tier`: a config with a tier is refused, so nothing is ever offloaded.

use std::convert::Infallible;
use std::sync::Arc;

use chancery_identity::SealKey;
use chancery_protocol::{Part, TaskId};

use crate::{ArtifactsConfig, MemoryConfig};

/// Why there is no memory.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("this build does not have the feature `memory-tier`")]
    NotBuilt,
}

/// No tier can be made.
#[derive(Debug)]
pub struct Tier(Infallible);

impl Tier {
    /// Nothing without a configured tier, and an error with one.
    pub fn open(config: &MemoryConfig) -> Result<Option<Self>, MemoryError> {
        if config.tier.is_some() { Err(MemoryError::NotBuilt) } else { Ok(None) }
    }
}

/// Without a tier no part can be offloaded.
#[derive(Debug)]
pub struct Offload(Infallible);

impl Offload {
    pub fn new(tier: Arc<Tier>, _: &str, _: SealKey, _: &str, _: &ArtifactsConfig) -> Self {
        match tier.0 {}
    }

    pub fn restore_bytes(&self) -> u64 {
        match self.0 {}
    }

    pub fn task_bytes(&self) -> u64 {
        match self.0 {}
    }

    pub fn has_our_link(&self, _: &Part) -> bool {
        match self.0 {}
    }

    pub fn is_large(&self, _: &Part) -> bool {
        match self.0 {}
    }

    pub fn offload(&self, _: &TaskId, _: Vec<Part>) -> Result<Vec<Part>, MemoryError> {
        match self.0 {}
    }

    pub fn strip_foreign_links(&self, _: &TaskId, _: &mut [Part]) {
        match self.0 {}
    }

    pub fn away(&self, _: &TaskId, _: &[Part]) -> u64 {
        match self.0 {}
    }

    pub fn weight(&self, _: &TaskId) -> Result<u64, MemoryError> {
        match self.0 {}
    }

    pub fn restore(&self, _: &TaskId, _: Vec<Part>) -> Result<Vec<Part>, MemoryError> {
        match self.0 {}
    }

    pub fn length(&self, _: &TaskId, _: &str) -> Result<Option<u64>, MemoryError> {
        match self.0 {}
    }

    pub fn piece(&self, _: &TaskId, _: &str, _: u64, _: u64) -> Result<Vec<u8>, MemoryError> {
        match self.0 {}
    }

    pub fn tasks(&self) -> Result<Vec<TaskId>, MemoryError> {
        match self.0 {}
    }

    pub fn forget(&self, _: &TaskId) -> Result<(), MemoryError> {
        match self.0 {}
    }
}
