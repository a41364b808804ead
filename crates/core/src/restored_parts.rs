//! Restores offloaded parts in answers, events and notifications, for readers that do not accept references.

use std::sync::Arc;

use chancery_protocol::{
    ArtifactChunk, CallContext, Error, ErrorKind, Message, NamedTask, Part, Reply, Sent, StatusChange, Task, TaskEvent, TaskId,
};

use crate::artifacts::{PartStore, REFERENCES_EXTENSION};
use crate::notify::WebhookPayload;
use crate::service::{Answer, ChanceryInner};
use crate::{LogEntry, StoreError};

/// Of a run of events, no more is put back at once.
const BYTES_AT_ONCE: u64 = 1 << 20;

impl ChanceryInner {
    /// An answer as its caller takes it: with references to large parts, or with the parts.
    pub(crate) async fn restore_answer(
        &self,
        part_store: &Arc<dyn PartStore>,
        context: &CallContext,
        answer: Answer,
    ) -> Result<Answer, Error> {
        let references = takes_references(context);
        let mut room = part_store.max_restored_bytes();
        Ok(match answer {
            Answer::Stream(subscription) => Answer::Stream(Box::new(subscription.with_references(references))),
            answer if references => answer,
            Answer::Reply(reply) => Answer::Reply(restore_reply(part_store, reply, &mut room).await?),
            Answer::Large(reply, permit) => Answer::Large(restore_reply(part_store, reply, &mut room).await?, permit),
            other => other,
        })
    }

    /// A message as it is kept: large parts go where there is a place for them.
    pub(crate) async fn kept(
        &self,
        part_store: &Arc<dyn PartStore>,
        task: &TaskId,
        message: &Arc<Message>,
    ) -> Result<Arc<Message>, Error> {
        let parts = offload(part_store, task, message.parts.clone(), &mut None).await?;
        Ok(Arc::new(Message { parts, ..Message::clone(message) }))
    }

    /// The part_store, if there can be something to put back.
    pub(crate) fn offloading_part_store(&self) -> Option<&Arc<dyn PartStore>> {
        self.part_store.get().filter(|part_store| part_store.offloads())
    }

    /// The part_store, if it has something to do with this message.
    pub(crate) fn part_store_for(&self, message: &Message) -> Option<&Arc<dyn PartStore>> {
        self.part_store.get().filter(|part_store| concerns(part_store, message))
    }
}

/// Whether the part store has something to do with this content.
pub(crate) fn concerns(part_store: &Arc<dyn PartStore>, message: &Message) -> bool {
    part_store.is_large(&message.parts) || part_store.has_our_link(&message.parts)
}

/// Parts that came in, as they are kept. `away` is how much the task has in the tier, once that is known.
pub(crate) async fn offload(
    part_store: &Arc<dyn PartStore>,
    task: &TaskId,
    mut parts: Vec<Part>,
    away: &mut Option<u64>,
) -> Result<Vec<Part>, Error> {
    part_store.strip_foreign_links(task, &mut parts);
    if !part_store.is_large(&parts) {
        return Ok(parts);
    }
    let before = match *away {
        Some(before) => before,
        None => part_store.weight(task).await?,
    };
    let most = part_store.max_task_bytes();
    if before >= most {
        let message = format!("more than {most} bytes of large parts");
        return Err(Error::new(ErrorKind::TooLarge, message).with_fact("limit", "artifacts.offload_task_bytes"));
    }
    let kept = part_store.offload(task, parts).await?;
    *away = Some(before.saturating_add(part_store.away(task, &kept)));
    Ok(kept)
}

pub(crate) fn takes_references(context: &CallContext) -> bool {
    context.extensions.iter().any(|extension| extension == REFERENCES_EXTENSION)
}

/// A message that is the answer, which has no name of a task in it.
pub(crate) async fn restored_reply(
    part_store: &Arc<dyn PartStore>,
    context: &CallContext,
    task: &TaskId,
    message: Arc<Message>,
) -> Result<Arc<Message>, Error> {
    match takes_references(context) || part_store.away(task, &message.parts) > part_store.max_restored_bytes() {
        true => Ok(message),
        false => restored_message(part_store, task, &message).await,
    }
}

async fn restore_reply(part_store: &Arc<dyn PartStore>, reply: Reply, room: &mut u64) -> Result<Reply, Error> {
    Ok(match reply {
        Reply::Task(shown) => Reply::Task(restored_shown(part_store, shown, room).await?),
        Reply::Sent(Sent::Task(shown)) => Reply::Sent(Sent::Task(restored_shown(part_store, shown, room).await?)),
        other => other,
    })
}

pub(crate) async fn restored_shown(
    part_store: &Arc<dyn PartStore>,
    shown: NamedTask,
    room: &mut u64,
) -> Result<NamedTask, Error> {
    Ok(NamedTask { task: restored_task(part_store, &shown.task, room).await?, ..shown })
}

/// A task too large to be whole at once stays as it is.
pub(crate) async fn restored_task(part_store: &Arc<dyn PartStore>, task: &Arc<Task>, room: &mut u64) -> Result<Arc<Task>, Error> {
    let away = away_of(part_store, task);
    if away == 0 || away > *room {
        return Ok(Arc::clone(task));
    }
    *room -= away;
    let mut whole = Task::clone(task);
    for artifact in &mut whole.artifacts {
        if part_store.away(&task.id, &artifact.parts) > 0 {
            let parts = part_store.restore(&task.id, artifact.parts.clone()).await?;
            Arc::make_mut(artifact).parts = parts;
        }
    }
    for message in whole.history.iter_mut().chain(&mut whole.status.message) {
        *message = restored_message(part_store, &task.id, message).await?;
    }
    Ok(Arc::new(whole))
}

pub(crate) async fn restored_message(
    part_store: &Arc<dyn PartStore>,
    task: &TaskId,
    message: &Arc<Message>,
) -> Result<Arc<Message>, Error> {
    match part_store.away(task, &message.parts) {
        0 => Ok(Arc::clone(message)),
        _ => Ok(Arc::new(Message { parts: part_store.restore(task, message.parts.clone()).await?, ..Message::clone(message) })),
    }
}

/// Events for a reader without references: so many from the front as fit into memory at once, made whole.
pub(crate) async fn restored_events(
    part_store: &Arc<dyn PartStore>,
    task: &TaskId,
    mut events: Vec<Arc<LogEntry>>,
) -> Result<Vec<Arc<LogEntry>>, Error> {
    let mut bytes = 0_u64;
    let mut fitting = 0;
    for entry in &events {
        bytes = bytes.saturating_add(away(part_store, task, &entry.event));
        if fitting > 0 && bytes > BYTES_AT_ONCE {
            break;
        }
        fitting += 1;
    }
    events.truncate(fitting);
    for entry in &mut events {
        // A picture of the task can hold all of its parts; every other event came in one piece, and goes out as one.
        let most = if matches!(entry.event, TaskEvent::Created(_)) { part_store.max_restored_bytes() } else { u64::MAX };
        *entry = restored_entry(part_store, task, entry, most).await?;
    }
    Ok(events)
}

/// One event, if no more than so much of it was offloaded.
pub(crate) async fn restored_entry(
    part_store: &Arc<dyn PartStore>,
    task: &TaskId,
    entry: &Arc<LogEntry>,
    mut most: u64,
) -> Result<Arc<LogEntry>, Error> {
    let away = away(part_store, task, &entry.event);
    if away == 0 || away > most {
        return Ok(Arc::clone(entry));
    }
    let event = match &entry.event {
        TaskEvent::Created(task) => TaskEvent::Created(restored_task(part_store, task, &mut most).await?),
        TaskEvent::Artifact(chunk) => {
            let mut artifact = Arc::clone(&chunk.artifact);
            Arc::make_mut(&mut artifact).parts = part_store.restore(task, chunk.artifact.parts.clone()).await?;
            TaskEvent::Artifact(ArtifactChunk { artifact, ..chunk.clone() })
        }
        TaskEvent::Status(change) => {
            let mut change = StatusChange::clone(change);
            if let Some(message) = &mut change.status.message {
                *message = restored_message(part_store, task, message).await?;
            }
            TaskEvent::Status(change)
        }
        TaskEvent::Replied(message) => TaskEvent::Replied(restored_message(part_store, task, message).await?),
        TaskEvent::Said(message) => TaskEvent::Said(Arc::clone(message)),
    };
    Ok(Arc::new(LogEntry { event, ..LogEntry::clone(entry) }))
}

/// The content for a webhook, which accepts no references.
pub(crate) async fn restored_payload(
    part_store: &Arc<dyn PartStore>,
    task: &TaskId,
    payload: WebhookPayload,
) -> Result<WebhookPayload, StoreError> {
    let mut most = part_store.max_restored_bytes();
    let whole = match payload {
        WebhookPayload::Event(entry) => restored_entry(part_store, task, &entry, most).await.map(WebhookPayload::Event),
        WebhookPayload::Task(told) => restored_task(part_store, &told, &mut most).await.map(WebhookPayload::Task),
    };
    whole.map_err(|error| StoreError::new(error.message.into_owned()))
}

fn parts_of(task: &Task) -> impl Iterator<Item = &[Part]> {
    let artifacts = task.artifacts.iter().map(|artifact| &*artifact.parts);
    artifacts.chain(task.history.iter().chain(&task.status.message).map(|message| &*message.parts))
}

fn away_of(part_store: &Arc<dyn PartStore>, task: &Task) -> u64 {
    parts_of(task).fold(0, |sum, parts| sum.saturating_add(part_store.away(&task.id, parts)))
}

fn away(part_store: &Arc<dyn PartStore>, task: &TaskId, event: &TaskEvent) -> u64 {
    match event {
        TaskEvent::Created(task) => away_of(part_store, task),
        TaskEvent::Artifact(chunk) => part_store.away(task, &chunk.artifact.parts),
        TaskEvent::Status(change) => change.status.message.as_ref().map_or(0, |message| part_store.away(task, &message.parts)),
        TaskEvent::Replied(message) => part_store.away(task, &message.parts),
        // Streams do not show it.
        TaskEvent::Said(_) => 0,
    }
}
