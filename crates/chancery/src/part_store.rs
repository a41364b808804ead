//! What artifacts and messages pass over on this node: schemas that hold them, and the tier that takes their large parts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{Chancery, LoopNeed, PartStore};
use chancery_identity::{KeyError, SealKey};
use chancery_memory::{ArtifactsConfig, MemoryError, Offload, SchemaFault, Schemas, Tier};
use chancery_protocol::{Artifact, ArtifactKind, ArtifactVersions, Error, ErrorKind, Part, TaskId};

const CLEAR_EVERY: Duration = Duration::from_secs(600);

#[derive(Debug)]
struct NodePartStore {
    schemas: Schemas,
    versions: ArtifactVersions,
    offload: Option<Arc<Offload>>,
}

/// Why large parts cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum PartStoreError {
    /// The schemas of artifacts have a fault.
    #[error("artifacts.schemas: {0}")]
    Schemas(#[from] SchemaFault),
    /// No key can be made.
    #[error("no key to seal links with: {0}")]
    Key(#[from] KeyError),
    /// The config offloads parts and has no memory to put them into.
    #[error("artifacts.offload: there is no memory.tier to put them into")]
    NoTier,
}

impl NodePartStore {
    fn open(config: &ArtifactsConfig, tier: Option<&Arc<Tier>>, own: &Own, public_url: &str) -> Result<Self, PartStoreError> {
        let schemas = config.schemas.as_deref().map(Schemas::load).transpose()?.unwrap_or_default();
        let offload = match (config.offload, tier) {
            (true, None) => return Err(PartStoreError::NoTier),
            (true, Some(tier)) => Some(Arc::new(Offload::new(Arc::clone(tier), &own.name, own.key.clone(), public_url, config))),
            (false, _) => None,
        };
        let accept_lower_version_artifacts = config.accept_lower_version_artifacts;
        let versions = ArtifactVersions { accept_lower_version_artifacts, ..ArtifactVersions::default() };
        Ok(Self { schemas, versions, offload })
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Offload) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, Error> {
        let broken = |reason: &'static str| Error::new(ErrorKind::Internal, reason);
        let offload = Arc::clone(self.offload.as_ref().ok_or_else(|| broken("this node stores no large parts (memory.tier)"))?);
        let done = tokio::task::spawn_blocking(move || work(&offload)).await;
        done.map_err(|_| broken("the work on a large part was aborted"))?.map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot store or read a large part of a task; see memory.tier in the config"
            );
            broken("the tier for large parts did not answer")
        })
    }
}

fn has_kind(artifact: &Artifact) -> bool {
    let named = |metadata: &Option<chancery_protocol::Metadata>| {
        metadata.as_ref().is_some_and(|metadata| metadata.text().contains("artifact_kind"))
    };
    named(&artifact.metadata) || artifact.parts.iter().any(|part| named(&part.metadata))
}

#[async_trait]
impl PartStore for NodePartStore {
    fn concerns(&self, artifact: &Artifact) -> bool {
        self.is_large(&artifact.parts) || self.has_our_link(&artifact.parts) || has_kind(artifact)
    }

    fn check(&self, artifact: &Artifact) -> Result<(), Error> {
        if !has_kind(artifact) {
            return Ok(());
        }
        self.schemas.check(artifact, &ArtifactKind::read(artifact, &self.versions)?)?;
        // Every part by itself too: whoever reads an artifact of several may read it so.
        for part in artifact.parts.iter().filter(|_| artifact.parts.len() > 1) {
            self.schemas.check(artifact, &ArtifactKind::read_part(part, &self.versions)?)?;
        }
        Ok(())
    }

    fn offloads(&self) -> bool {
        self.offload.is_some()
    }

    fn is_large(&self, parts: &[Part]) -> bool {
        self.offload.as_ref().is_some_and(|offload| parts.iter().any(|part| offload.is_large(part)))
    }

    async fn offload(&self, task: &TaskId, parts: Vec<Part>) -> Result<Vec<Part>, Error> {
        let task = task.clone();
        self.work(move |offload| offload.offload(&task, parts)).await
    }

    fn has_our_link(&self, parts: &[Part]) -> bool {
        self.offload.as_ref().is_some_and(|offload| parts.iter().any(|part| offload.has_our_link(part)))
    }

    fn strip_foreign_links(&self, task: &TaskId, parts: &mut [Part]) {
        if let Some(offload) = &self.offload {
            offload.strip_foreign_links(task, parts);
        }
    }

    fn away(&self, task: &TaskId, parts: &[Part]) -> u64 {
        self.offload.as_ref().map_or(0, |offload| offload.away(task, parts))
    }

    async fn weight(&self, task: &TaskId) -> Result<u64, Error> {
        if self.offload.is_none() {
            return Ok(0);
        }
        let task = task.clone();
        self.work(move |offload| offload.weight(&task)).await
    }

    async fn restore(&self, task: &TaskId, parts: Vec<Part>) -> Result<Vec<Part>, Error> {
        let task = task.clone();
        self.work(move |offload| offload.restore(&task, parts)).await
    }

    fn max_task_bytes(&self) -> u64 {
        self.offload.as_ref().map_or(u64::MAX, |offload| offload.task_bytes())
    }

    fn max_restored_bytes(&self) -> u64 {
        self.offload.as_ref().map_or(0, |offload| offload.restore_bytes())
    }

    async fn length(&self, task: &TaskId, digest: &str) -> Result<Option<u64>, Error> {
        if self.offload.is_none() {
            return Ok(None);
        }
        let (task, digest) = (task.clone(), digest.to_owned());
        self.work(move |offload| offload.length(&task, &digest)).await
    }

    async fn piece(&self, task: &TaskId, digest: &str, from: u64, most: u64) -> Result<Vec<u8>, Error> {
        let (task, digest) = (task.clone(), digest.to_owned());
        self.work(move |offload| offload.piece(&task, &digest, from, most)).await
    }

    async fn tasks(&self) -> Result<Vec<TaskId>, Error> {
        if self.offload.is_none() {
            return Ok(Vec::new());
        }
        self.work(|offload| offload.tasks()).await
    }

    async fn forget(&self, task: &TaskId) -> Result<(), Error> {
        let task = task.clone();
        self.work(move |offload| offload.forget(&task)).await
    }
}

/// What a node calls its folder in a tier, and what it seals its links with.
struct Own {
    name: String,
    key: SealKey,
}

impl Own {
    fn of(chancery: &Chancery) -> Result<Self, PartStoreError> {
        let name = chancery.own_mark("offload")[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { name, key: SealKey::new(&chancery.own_mark("links to large parts"))? })
    }
}

pub(crate) fn set_up(
    chancery: &Chancery,
    config: &ArtifactsConfig,
    tier: Option<&Arc<Tier>>,
    public_url: &str,
) -> Result<(), PartStoreError> {
    chancery.set_part_store(Arc::new(NodePartStore::open(config, tier, &Own::of(chancery)?, public_url)?));
    if config.offload {
        chancery.loops().start("large parts", LoopNeed::Optional, keep_cleared(chancery.clone()));
    }
    Ok(())
}

/// Throws away large parts of tasks that were forgotten, until the node stops.
async fn keep_cleared(chancery: Chancery) {
    let stop = chancery.shutdown_token();
    while stop.run_until_cancelled(tokio::time::sleep(CLEAR_EVERY)).await.is_some() {
        if let Err(error) = chancery.clear_part_store().await {
            tracing::warn!(%error, "cannot delete the large parts of deleted tasks; the node tries again");
        }
    }
}

#[cfg(test)]
mod tests;
