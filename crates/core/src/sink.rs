//! The sink through which a runner reports updates of its turn. Endings consume it, so no update can follow them.

use std::sync::Arc;

use chancery_protocol::{
    Artifact, ArtifactChunk, ArtifactId, Message, MessageId, Metadata, Part, Role, StatusChange, TaskEvent, TaskState,
    TaskStatus, Timestamp, Unknown, Version, control_character,
};

use tokio_util::sync::CancellationToken;

use crate::govern::report::CostReport;
use crate::ids::fresh_id;
use crate::limits::TaskLimits;
use crate::live::{LiveTask, NotTaken};
use crate::restored_parts::{concerns, offload};
use crate::{Clock, Link, MicroUsd, PartStore};

/// The proof that a turn has ended. Only ending methods of [`TaskUpdateSink`] return it.
#[derive(Debug)]
#[must_use]
pub struct Finished(Option<Box<LastWords>>);

/// An ending with a large part, which is offloaded before the ending is accepted.
#[derive(Debug)]
struct LastWords {
    sink: TaskUpdateSink,
    event: TaskEvent,
}

impl Finished {
    /// Whether its ending has a large part and is not accepted yet.
    pub(crate) fn has_last_words(&self) -> bool {
        self.0.is_some()
    }

    /// Takes the ending, if that was left to do.
    pub(crate) async fn take(&mut self) {
        let Some(LastWords { mut sink, event }) = self.0.take().map(|last| *last) else { return };
        let kept = match sink.kept(event.clone()).await {
            Ok(kept) => kept,
            // The task ends all the same; the log has it whole then.
            Err(_) => sink.without_foreign_links(event),
        };
        sink.end_with(kept, sink.clock.now());
    }
}

/// The reason why the node took no update: the task has ended, or a limit is reached. The runner can only stop.
///
/// It converts to a [`RunError`](crate::RunError), so `?` works in a runner.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkClosed(String);

impl From<SinkClosed> for crate::RunError {
    fn from(closed: SinkClosed) -> Self {
        Self::new(closed.0)
    }
}

impl From<NotTaken> for SinkClosed {
    fn from(reason: NotTaken) -> Self {
        Self(chancery_protocol::Error::from(reason).message.into_owned())
    }
}

/// The state of a turn after [`TaskUpdateSink::pass`] forwarded an event.
#[derive(Debug)]
pub enum Passed {
    /// The turn continues.
    Open(TaskUpdateSink),
    /// The task waits for its caller.
    Waiting(WaitingTask),
    /// The turn has ended.
    Ended(Finished),
}

/// A task that waits for its caller while the turn of its agent is still open.
#[derive(Debug)]
#[must_use]
pub struct WaitingTask(TaskUpdateSink);

impl WaitingTask {
    /// Ends the turn. The caller's next message begins the next one.
    pub fn finish(self) -> Finished {
        self.0.live.end_with_last();
        Finished(None)
    }

    /// Returns when the caller has sent a message. The message waits for the end of this turn.
    pub async fn message_waits(&self) {
        self.0.live.message_waits().await;
    }

    /// Continues the turn, because the agent got what it waited for without a message.
    pub fn go_on(self) -> TaskUpdateSink {
        self.0
    }
}

/// Reports the updates of a turn, and its end.
///
/// Every update is recorded before callers see it. Methods that return [`Finished`] end the turn and consume the sink.
#[derive(Debug)]
pub struct TaskUpdateSink {
    live: Arc<LiveTask>,
    clock: Arc<dyn Clock>,
    limits: Arc<TaskLimits>,
    part_store: Option<Arc<dyn PartStore>>,
    /// How much of the task was offloaded, once it was needed.
    away: Option<u64>,
}

impl TaskUpdateSink {
    pub(crate) fn new(
        live: Arc<LiveTask>,
        clock: Arc<dyn Clock>,
        limits: Arc<TaskLimits>,
        part_store: Option<Arc<dyn PartStore>>,
    ) -> Self {
        Self { live, clock, limits, part_store, away: None }
    }

    /// Returns the cost of the whole task so far, if the event reports it.
    pub fn reported_cost(event: &TaskEvent) -> Option<MicroUsd> {
        CostReport::of(event)?.usd()
    }

    /// Reports that the agent works on the task. `message` can tell the progress.
    pub async fn working(&mut self, message: Option<Message>) -> Result<(), SinkClosed> {
        let event = self.status(TaskState::Working, message, None, self.clock.now());
        self.update(event).await
    }

    /// Adds a whole artifact, or replaces the one with the same id.
    pub async fn artifact(&mut self, artifact: Artifact) -> Result<(), SinkClosed> {
        self.chunk(artifact, false, true).await
    }

    /// Adds a piece of an artifact. With `append` it continues the artifact of this id, without it the artifact starts again.
    pub async fn chunk(&mut self, artifact: Artifact, append: bool, last_chunk: bool) -> Result<(), SinkClosed> {
        if control_character(artifact.artifact_id.as_str()).is_some() {
            return Err(SinkClosed(format!("the artifact id {:?} has a control character", artifact.artifact_id.as_str())));
        }
        let chunk = ArtifactChunk { artifact: Arc::new(artifact), append, last_chunk, metadata: None, unknown: Unknown::none() };
        self.update(TaskEvent::Artifact(chunk)).await
    }

    /// Makes a new id for an artifact of this task.
    pub fn new_artifact_id(&self) -> ArtifactId {
        ArtifactId::new(fresh_id())
    }

    /// Makes a message of the agent. It is sent when an update or an ending has it.
    pub fn message(&self, parts: Vec<Part>) -> Message {
        Message::of_parts(Role::Agent, MessageId::new(fresh_id()), parts)
    }

    /// Makes a message of the agent with one text part.
    pub fn text(&self, text: impl Into<String>) -> Message {
        self.message(vec![Part::text(text)])
    }

    /// Ends the turn and the task: the work is done.
    pub fn complete(self, message: Option<Message>) -> Finished {
        self.end(TaskState::Completed, message)
    }

    /// Ends the turn and the task: the work failed for this reason.
    pub fn fail(self, reason: impl Into<String>) -> Finished {
        let message = self.text(reason);
        self.end(TaskState::Failed, Some(message))
    }

    /// Ends the turn and the task: the agent does not do this work, for this reason.
    pub fn reject(self, reason: impl Into<String>) -> Finished {
        let message = self.text(reason);
        self.end(TaskState::Rejected, Some(message))
    }

    /// Ends the turn and the task: the agent stopped because of a cancel or a limit.
    pub fn canceled(self) -> Finished {
        self.end(TaskState::Canceled, None)
    }

    /// Ends the turn with a question. The caller's next message on this task begins the next turn.
    pub fn input_required(self, question: Message) -> Finished {
        self.end(TaskState::InputRequired, Some(question))
    }

    /// Reports that the caller must authorise something outside the protocol. The turn continues, without a message of the caller.
    ///
    /// Streams stay open. Blocking callers get the task as it is now. A message that the caller sends meanwhile waits for the
    /// end of this turn: [`WaitingTask::message_waits`] reports it, and [`WaitingTask::finish`] makes it the next turn.
    pub async fn await_authorization(mut self, explanation: Message) -> Result<WaitingTask, SinkClosed> {
        let event = self.status(TaskState::AuthRequired, Some(explanation), None, self.clock.now());
        self.update(event).await?;
        Ok(WaitingTask(self))
    }

    /// Ends the turn because the caller must authorise something outside the protocol. Its next message begins the next turn.
    pub fn auth_required(self, explanation: Message) -> Finished {
        self.end(TaskState::AuthRequired, Some(explanation))
    }

    /// Ends the turn with a message instead of a task. It must come before any update, from a runner whose
    /// [`may_reply_with_message`](crate::TaskRunner::may_reply_with_message) is `true`.
    pub fn reply(self, mut message: Message) -> Finished {
        // The original protocol has no answer but a task.
        if self.live.record.dialect.version() == Version::Original {
            return self.complete(Some(message));
        }
        named_plainly(&mut message);
        message.context_id = Some(self.live.record.context_id.clone());
        let at = self.clock.now();
        self.take_ending(TaskEvent::Replied(Arc::new(message)), at)
    }

    /// Adds metadata to the task. Members that exist are replaced.
    pub async fn annotate(&mut self, metadata: Metadata) -> Result<(), SinkClosed> {
        let event = self.status(TaskState::Working, None, Some(metadata), self.clock.now());
        self.update(event).await
    }

    /// Reports that the agent rejected a cancel with this error, and continues. Returns the token that a later cancel fires, or
    /// `None` if the turn must stop anyway.
    pub fn refuse_cancel(&self, error: chancery_protocol::Error) -> Option<CancellationToken> {
        self.live.refuse_cancel(error)
    }

    /// Reports that the agent answered a cancel with its task. The caller of the cancel gets the task as it is now.
    pub fn answer_cancel(&self) {
        self.live.answer_cancel();
    }

    /// Shows the task to its caller before the first update. The agent has accepted the message, so its answer is a task.
    /// Returns `false` if the task is being withdrawn.
    pub fn show_task(&self) -> bool {
        self.live.show_task()
    }

    /// Sets the link that the task is about to get, so that calls which name its context are placed. It is not stored.
    pub fn expect_link(&self, link: &Link) {
        if let Some(node) = self.live.node() {
            node.set_link(link);
        }
    }

    /// Sets the link of the task: which remote agent works on it, and under which ids. It is stored with the next update.
    pub fn link(&mut self, link: Link) {
        self.live.set_link(link);
    }

    /// Forwards an event of a remote agent with all its members. The event decides whether the turn ends.
    pub async fn pass(mut self, event: TaskEvent) -> Result<Passed, SinkClosed> {
        match event {
            TaskEvent::Status(StatusChange { status, metadata, unknown }) => {
                let message = status.message.map(Arc::unwrap_or_clone);
                let mut event = self.status(status.state, message, metadata, self.clock.now());
                if let TaskEvent::Status(change) = &mut event {
                    change.unknown = unknown;
                    change.status.unknown = status.unknown;
                }
                if status.state.is_terminal() {
                    if self.is_large(&event) {
                        event = self.kept(event).await?;
                    }
                    self.end_with(event, self.clock.now());
                    return Ok(Passed::Ended(Finished(None)));
                }
                self.update(event).await?;
                Ok(if status.state.is_interrupted() { Passed::Waiting(WaitingTask(self)) } else { Passed::Open(self) })
            }
            TaskEvent::Artifact(_) => {
                self.update(event).await?;
                Ok(Passed::Open(self))
            }
            TaskEvent::Replied(message) => Ok(Passed::Ended(self.reply(Arc::unwrap_or_clone(message)))),
            TaskEvent::Created(_) | TaskEvent::Said(_) => {
                Err(SinkClosed("an agent neither makes tasks nor speaks for callers".into()))
            }
        }
    }

    async fn update(&mut self, mut event: TaskEvent) -> Result<(), SinkClosed> {
        if self.is_large(&event) {
            event = Box::pin(self.kept(event)).await?;
        }
        if self.live.pending() >= self.limits.task_updates_pending {
            let mut visible = self.live.watch();
            while self.live.pending() >= self.limits.task_updates_pending {
                if visible.changed().await.is_err() {
                    break;
                }
            }
        }
        self.live.take(event, self.clock.now(), &self.limits)?;
        Ok(())
    }

    fn end(self, state: TaskState, message: Option<Message>) -> Finished {
        let at = self.clock.now();
        let event = self.status(state, message, None, at);
        self.take_ending(event, at)
    }

    /// Whether the part store has something to do with it.
    fn is_large(&self, event: &TaskEvent) -> bool {
        let Some(part_store) = &self.part_store else { return false };
        match event {
            TaskEvent::Artifact(chunk) => part_store.concerns(&chunk.artifact),
            TaskEvent::Status(change) => change.status.message.as_ref().is_some_and(|message| concerns(part_store, message)),
            TaskEvent::Replied(message) => concerns(part_store, message),
            TaskEvent::Created(_) | TaskEvent::Said(_) => false,
        }
    }

    /// The event as it is recorded.
    async fn kept(&mut self, mut event: TaskEvent) -> Result<TaskEvent, SinkClosed> {
        let Some(part_store) = &self.part_store else { return Ok(event) };
        let fault = |error: chancery_protocol::Error| SinkClosed(format!("{}: {error}", error.kind.reason()));
        let task = &self.live.record.id;
        match &mut event {
            TaskEvent::Artifact(chunk) => {
                part_store.check(&chunk.artifact).map_err(fault)?;
                let parts = &mut Arc::make_mut(&mut chunk.artifact).parts;
                *parts = offload(part_store, task, std::mem::take(parts), &mut self.away).await.map_err(fault)?;
            }
            TaskEvent::Status(StatusChange { status: TaskStatus { message: Some(message), .. }, .. })
            | TaskEvent::Replied(message) => {
                let parts = &mut Arc::make_mut(message).parts;
                *parts = offload(part_store, task, std::mem::take(parts), &mut self.away).await.map_err(fault)?;
            }
            _ => {}
        }
        Ok(event)
    }

    /// An ending that was not offloaded, without links that look like the node's.
    fn without_foreign_links(&self, mut event: TaskEvent) -> TaskEvent {
        if let (
            Some(part_store),
            TaskEvent::Status(StatusChange { status: TaskStatus { message: Some(message), .. }, .. })
            | TaskEvent::Replied(message),
        ) = (&self.part_store, &mut event)
        {
            part_store.strip_foreign_links(&self.live.record.id, &mut Arc::make_mut(message).parts);
        }
        event
    }

    fn take_ending(self, event: TaskEvent, at: Timestamp) -> Finished {
        if self.is_large(&event) {
            return Finished(Some(Box::new(LastWords { sink: self, event })));
        }
        self.end_with(event, at);
        Finished(None)
    }

    fn end_with(&self, event: TaskEvent, at: Timestamp) {
        // Refused only when the task has ended otherwise meanwhile, by a cancel for instance. That ending stands.
        if let Err(reason) = self.live.take_last(event, at, &self.limits) {
            tracing::debug!(task = %self.live.record.id, ?reason, "ignored an ending of a task that had ended");
        }
    }

    fn status(&self, state: TaskState, message: Option<Message>, metadata: Option<Metadata>, at: Timestamp) -> TaskEvent {
        let message = message.map(|mut message| {
            named_plainly(&mut message);
            message.context_id = Some(self.live.record.context_id.clone());
            message.task_id = Some(self.live.record.id.clone());
            Arc::new(message)
        });
        let status = TaskStatus { state, message, timestamp: Some(at), unknown: Unknown::none() };
        TaskEvent::Status(StatusChange { status, metadata, unknown: Unknown::none() })
    }
}

/// Gives a message whose id has control characters another one: no store takes it, and what the agent says must not be lost for it.
fn named_plainly(message: &mut Message) {
    if control_character(message.message_id.as_str()).is_some() {
        message.message_id = MessageId::new(fresh_id());
    }
}
