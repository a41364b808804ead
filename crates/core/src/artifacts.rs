//! The port of the part store: it checks artifacts before they are accepted, and offloads large parts of artifacts and messages.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_protocol::{Artifact, Caller, Error, Part, TaskId};
use uuid::Uuid;

use crate::Names;
use crate::service::Chancery;

/// Callers that ask for it are shown where large parts are; all others get the parts themselves.
pub const REFERENCES_EXTENSION: &str = "https://chancery.dev/a2a/artifact-references/v1";
/// Offloaded parts of an unknown task are kept this long: its message may be about to be recorded.
const BEFORE_IT_IS_RECORDED: Duration = Duration::from_secs(600);

/// Inspects messages and artifacts, where the operator enables it.
#[async_trait]
pub trait PartStore: Send + Sync + Debug {
    /// Whether there may be something to do. Asked for every artifact.
    fn concerns(&self, artifact: &Artifact) -> bool;

    /// What is wrong with it, if something is.
    fn check(&self, artifact: &Artifact) -> Result<(), Error>;

    /// Whether anything is ever offloaded here.
    fn offloads(&self) -> bool;

    /// Whether some of these are to be offloaded. Asked for every message.
    fn is_large(&self, parts: &[Part]) -> bool;

    /// With references where large ones were.
    async fn offload(&self, task: &TaskId, parts: Vec<Part>) -> Result<Vec<Part>, Error>;

    /// Whether there may be references of ours among these. Asked for every message.
    fn has_our_link(&self, parts: &[Part]) -> bool;

    /// References of this node in these parts belong to their sender from now on.
    fn strip_foreign_links(&self, task: &TaskId, parts: &mut [Part]);

    /// How many of their bytes were offloaded for this task.
    fn away(&self, task: &TaskId, parts: &[Part]) -> u64;

    /// How many bytes were offloaded for a task: also those without a reference.
    async fn weight(&self, task: &TaskId) -> Result<u64, Error>;

    /// The parts with their offloaded content restored.
    async fn restore(&self, task: &TaskId, parts: Vec<Part>) -> Result<Vec<Part>, Error>;

    /// The most bytes of offloaded parts for one task.
    fn max_task_bytes(&self) -> u64;

    /// The most that is put back into one answer.
    fn max_restored_bytes(&self) -> u64;

    /// The length of the offloaded part under a digest, if it exists.
    async fn length(&self, task: &TaskId, digest: &str) -> Result<Option<u64>, Error>;

    /// So many bytes of it from a place on, or fewer at its end.
    async fn piece(&self, task: &TaskId, digest: &str, from: u64, most: u64) -> Result<Vec<u8>, Error>;

    /// The tasks with offloaded parts.
    async fn tasks(&self) -> Result<Vec<TaskId>, Error>;

    /// Deletes the offloaded parts of a task.
    async fn forget(&self, task: &TaskId) -> Result<(), Error>;
}

/// The offloaded parts of a caller's task.
#[derive(Clone, Debug)]
pub struct OffloadedPart {
    part_store: Arc<dyn PartStore>,
    task: TaskId,
    digest: String,
    /// The length of the part in bytes.
    pub length: u64,
}

impl OffloadedPart {
    /// So many bytes from a place on, or fewer at the end.
    pub async fn piece(&self, from: u64, most: u64) -> Result<Vec<u8>, Error> {
        self.part_store.piece(&self.task, &self.digest, from, most).await
    }
}

impl Chancery {
    /// Artifacts that come from now on go through this part store. The first one given stays.
    pub fn set_part_store(&self, part_store: Arc<dyn PartStore>) {
        let _ = self.0.part_store.set(part_store);
    }

    /// An offloaded part, for the owner of its task and no other caller.
    pub async fn offloaded_part(&self, owner: &Caller, task: &str, digest: &str) -> Result<OffloadedPart, Error> {
        let Some(part_store) = self.0.part_store.get() else { return Err(Error::task_not_found()) };
        let stored = self.0.store.find(owner, task, Names::Server).await.map_err(crate::find::internal)?;
        let task = stored.ok_or_else(Error::task_not_found)?.task.id.clone();
        let length = part_store.length(&task, digest).await?.ok_or_else(Error::task_not_found)?;
        Ok(OffloadedPart { part_store: Arc::clone(part_store), task, digest: digest.to_owned(), length })
    }

    /// Deletes the offloaded parts of deleted tasks.
    pub async fn clear_part_store(&self) -> Result<(), Error> {
        let Some(part_store) = self.0.part_store.get() else { return Ok(()) };
        for task in part_store.tasks().await? {
            if self.is_young(&task) {
                continue;
            }
            if self.0.store.find_any(task.as_str()).await.map_err(crate::find::internal)?.is_none() {
                part_store.forget(&task).await?;
            }
        }
        Ok(())
    }

    /// Ids of tasks say when they were made.
    fn is_young(&self, task: &TaskId) -> bool {
        let made = Uuid::parse_str(task.as_str()).ok().and_then(|id| id.get_timestamp());
        let made = made.map_or(0, |made| made.to_unix().0);
        let now = u64::try_from(self.0.clock.now().micros() / 1_000_000).unwrap_or(0);
        now < made.saturating_add(BEFORE_IT_IS_RECORDED.as_secs())
    }

    /// A name for this node that no other one has, and that stays as long as its tasks do.
    pub fn own_mark(&self, purpose: &str) -> [u8; 32] {
        self.0.seal.mark(purpose, b"")
    }
}
