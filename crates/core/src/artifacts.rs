//! Artifacts on their way in and out: checked before they are taken, large parts put away, and put back for those who need them whole.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use chancery_protocol::{Artifact, ArtifactChunk, CallContext, Caller, Error, Reply, Sent, Shown, Task, TaskEvent, TaskId};

use crate::service::{Answer, Chancery, Inner};
use crate::{LogEntry, Names};

/// Callers that ask for it are shown where large parts are; all others get the parts themselves.
pub const REFERENCES_EXTENSION: &str = "https://chancery.dev/a2a/artifact-references/v1";
/// Of a run of events, no more is put back at once.
const BYTES_AT_ONCE: u64 = 1 << 20;

/// Looks at artifacts, where the operator wants them looked at.
#[async_trait]
pub trait ArtifactDesk: Send + Sync + Debug {
    /// Whether there may be something to do. Asked for every artifact.
    fn concerns(&self, artifact: &Artifact) -> bool;

    /// The artifact as it is to be kept, or what is wrong with it.
    async fn take_in(&self, task: &TaskId, artifact: Arc<Artifact>) -> Result<Arc<Artifact>, Error>;

    /// How much of it was put away, in bytes.
    fn away(&self, artifact: &Artifact) -> u64;

    /// With what was put away back in its place.
    async fn give_out(&self, task: &TaskId, artifact: Arc<Artifact>) -> Result<Arc<Artifact>, Error>;

    /// The most that is put back into one answer.
    fn most_at_once(&self) -> u64;

    /// The length of what was put away under a digest, if there is such a thing.
    async fn length(&self, task: &TaskId, digest: &str) -> Result<Option<u64>, Error>;

    /// So many bytes of it from a place on, or fewer at its end.
    async fn piece(&self, task: &TaskId, digest: &str, from: u64, most: u64) -> Result<Vec<u8>, Error>;

    /// The tasks that something was put away for.
    async fn tasks(&self) -> Result<Vec<TaskId>, Error>;

    async fn forget(&self, task: &TaskId) -> Result<(), Error>;
}

/// What was put away for a caller's task.
#[derive(Clone, Debug)]
pub struct PutAway {
    desk: Arc<dyn ArtifactDesk>,
    task: TaskId,
    digest: String,
    pub length: u64,
}

impl PutAway {
    /// So many bytes from a place on, or fewer at the end.
    pub async fn piece(&self, from: u64, most: u64) -> Result<Vec<u8>, Error> {
        self.desk.piece(&self.task, &self.digest, from, most).await
    }
}

impl Chancery {
    /// Artifacts that come from now on pass over this desk. The first one given stays.
    pub fn set_artifact_desk(&self, desk: Arc<dyn ArtifactDesk>) {
        let _ = self.0.desk.set(desk);
    }

    /// A part that was put away, for the owner of its task and nobody else.
    pub async fn put_away(&self, owner: &Caller, task: &str, digest: &str) -> Result<PutAway, Error> {
        let Some(desk) = self.0.desk.get() else { return Err(Error::task_not_found()) };
        let stored = self.0.store.find(owner, task, Names::Server).await.map_err(crate::find::internal)?;
        let task = stored.ok_or_else(Error::task_not_found)?.task.id.clone();
        let length = desk.length(&task, digest).await?.ok_or_else(Error::task_not_found)?;
        Ok(PutAway { desk: Arc::clone(desk), task, digest: digest.to_owned(), length })
    }

    /// Throws away what was put away for tasks that are forgotten.
    pub async fn clear_desk(&self) -> Result<(), Error> {
        let Some(desk) = self.0.desk.get() else { return Ok(()) };
        for task in desk.tasks().await? {
            if self.0.store.find_any(task.as_str()).await.map_err(crate::find::internal)?.is_none() {
                desk.forget(&task).await?;
            }
        }
        Ok(())
    }
}

impl Inner {
    /// An answer as its caller takes it: with references to large parts, or with the parts.
    pub(crate) async fn whole(
        &self,
        desk: &Arc<dyn ArtifactDesk>,
        context: &CallContext,
        answer: Answer,
    ) -> Result<Answer, Error> {
        let references = context.extensions.iter().any(|extension| extension == REFERENCES_EXTENSION);
        Ok(match answer {
            Answer::Stream(subscription) => Answer::Stream(Box::new(subscription.with_references(references))),
            answer if references => answer,
            Answer::Reply(Reply::Task(shown)) => Answer::Reply(Reply::Task(whole_task(desk, shown).await?)),
            Answer::Reply(Reply::Sent(Sent::Task(shown))) => {
                Answer::Reply(Reply::Sent(Sent::Task(whole_task(desk, shown).await?)))
            }
            other => other,
        })
    }
}

/// A task too large to be whole at once stays as it is.
async fn whole_task(desk: &Arc<dyn ArtifactDesk>, mut shown: Shown) -> Result<Shown, Error> {
    let away: u64 = shown.task.artifacts.iter().map(|artifact| desk.away(artifact)).sum();
    if away == 0 || away > desk.most_at_once() {
        return Ok(shown);
    }
    let mut task = Task::clone(&shown.task);
    for artifact in &mut task.artifacts {
        if desk.away(artifact) > 0 {
            *artifact = desk.give_out(&task.id, Arc::clone(artifact)).await?;
        }
    }
    shown.task = Arc::new(task);
    Ok(shown)
}

/// Events for somebody who does not take references: so many from the front as fit into memory at once, made whole.
pub(crate) async fn whole_events(
    desk: &Arc<dyn ArtifactDesk>,
    task: &TaskId,
    mut events: Vec<Arc<LogEntry>>,
) -> Result<Vec<Arc<LogEntry>>, Error> {
    let mut bytes = 0;
    let mut fitting = 0;
    for entry in &events {
        bytes += away(desk, &entry.event);
        if fitting > 0 && bytes > BYTES_AT_ONCE {
            break;
        }
        fitting += 1;
    }
    events.truncate(fitting);
    for entry in &mut events {
        if away(desk, &entry.event) == 0 {
            continue;
        }
        if let TaskEvent::Artifact(chunk) = &entry.event {
            let artifact = desk.give_out(task, Arc::clone(&chunk.artifact)).await?;
            let event = TaskEvent::Artifact(ArtifactChunk { artifact, ..chunk.clone() });
            *entry = Arc::new(LogEntry { event, ..LogEntry::clone(entry) });
        }
    }
    Ok(events)
}

fn away(desk: &Arc<dyn ArtifactDesk>, event: &TaskEvent) -> u64 {
    match event {
        TaskEvent::Artifact(chunk) => desk.away(&chunk.artifact),
        _ => 0,
    }
}
