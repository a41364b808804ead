//! A message comes in: a task is made or goes on, and the caller waits for it, does not wait, or watches.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{
    CallContext, Error, ErrorKind, Message, MessageId, SendMessage, Sent, Task, TaskEvent, TaskId, TaskState, TaskStatus,
    Timestamp,
};
use chancery_rules::task_state;

use crate::agents::Agent;
use crate::carry_on::CarryOn;
use crate::check;
use crate::contexts;
use crate::find::{internal, names, shown};
use crate::ids::fresh_id;
use crate::live::{LiveTask, Place, Said};
use crate::publish::{Subscription, Until};
use crate::route::check_media_types;
use crate::service::{Dedupe, Inner, push_not_supported};
use crate::{Append, Appended, Creation, Idempotency, LogEntry, Progress, TaskRecord};

/// How long a stream waits for an agent's first word before it opens.
const FIRST_WORD: Duration = Duration::from_secs(1);

/// A task that has taken the message.
struct Taken {
    live: Arc<LiveTask>,
    /// The entry before the message's turn: what settles after it settles the turn.
    before: u64,
    /// Show the stream from here.
    cursor: u64,
    /// The task was made by this call.
    fresh: bool,
}

impl Inner {
    pub(crate) async fn send(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
    ) -> Result<Sent, Error> {
        let history_length = send.configuration.history_length;
        let immediately = send.configuration.return_immediately;
        let taken = self.take_message(context, agent, send).await?;
        let live = &taken.live;
        if !immediately {
            self.settled(live, taken.before).await?;
        } else if taken.fresh && agent.runner.may_reply_with_message() {
            // Whether there is a task to return at all shows with the agent's first word.
            let _ = live.watch().wait_for(|visible| visible.seq >= 2 || visible.broken).await;
        }
        if let Some(refusal) = live.refusal() {
            return Err(refusal);
        }
        if live.message_only()
            && let Some(message) = Box::pin(self.message_reply(live)).await?
        {
            return Ok(Sent::Message(message));
        }
        Ok(Sent::Task(shown(&live.record, live.task(), history_length)))
    }

    pub(crate) async fn stream(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
    ) -> Result<Subscription, Error> {
        // A message that nobody may watch is refused before it has done anything.
        let mut permit = self.streams.reserve(&context.caller, &self.limits)?;
        if let Some(task) = &send.message.task_id {
            // Whose task it is comes first: strangers neither learn how many watch it nor take a place there.
            let stored = self.find(context, agent, task).await?;
            permit.watch(&stored.task.id, &self.limits)?;
        }
        let taken = self.take_message(context, agent, send).await?;
        permit.watch(&taken.live.record.id, &self.limits)?;
        let until = Until::Settled(taken.before);
        let (live, cursor) = (taken.live, taken.cursor);
        let subscription = Subscription::new(Arc::clone(self), Arc::clone(&live), cursor, until, permit);
        if cursor == 0 {
            let undecided = agent.runner.may_reply_with_message();
            if undecided {
                // Nothing is shown before the agent's first word anyway. If that is a refusal, there is no stream.
                let mut first_word = live.watch();
                let _ = tokio::time::timeout(FIRST_WORD, first_word.wait_for(|visible| visible.seq >= 2 || visible.broken)).await;
            }
            return match live.refusal() {
                Some(refusal) => Err(refusal),
                None => Ok(subscription.undecided(undecided)),
            };
        }
        // A follow-up: the stream opens with the task as it was when the message came.
        let entry = self.snapshot(&live, cursor).await?;
        Ok(subscription.with_first(entry))
    }

    /// Waits until the turn after `before` is over: the task has ended or needs its caller.
    async fn settled(&self, live: &Arc<LiveTask>, before: u64) -> Result<(), Error> {
        let mut visible = live.visible();
        if visible.settled <= before && !visible.terminal && !visible.broken {
            let mut watch = live.watch();
            tokio::select! {
                settled = watch.wait_for(|visible| visible.settled > before || visible.terminal || visible.broken) => {
                    visible = settled.map(|visible| *visible).unwrap_or(visible);
                }
                () = self.shutdown.cancelled() => {
                    let hint = format!("the node is shutting down; task {} goes on being available", live.record.id);
                    return Err(Error::new(ErrorKind::Unavailable, hint).with_fact("taskId", &live.record.id));
                }
            }
        }
        if visible.broken {
            return Err(live.broken());
        }
        Ok(())
    }

    async fn message_reply(&self, live: &LiveTask) -> Result<Option<Arc<Message>>, Error> {
        let entries = self.entries(&live.record.id, 0, usize::MAX).await?;
        let reply = entries.iter().find_map(|entry| match &entry.event {
            TaskEvent::Replied(message) => Some(Arc::clone(message)),
            _ => None,
        });
        Ok(reply)
    }

    /// The message finds its task, is recorded there, and its turn begins: also when the caller hangs up meanwhile, so
    /// that nothing is ever recorded that nobody works on.
    async fn take_message(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
    ) -> Result<Taken, Error> {
        check::send(&send, &self.limits)?;
        if send.configuration.task_push_notification_config.is_some() {
            return Err(push_not_supported());
        }
        check_media_types(&agent.card, &send.message)?;
        let (inner, context, agent) = (Arc::clone(self), context.clone(), Arc::clone(agent));
        let taking = async move { inner.take_checked(&context, &agent, send).await };
        CarryOn::new(taking, &self.background).await
    }

    async fn take_checked(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
    ) -> Result<Taken, Error> {
        if !send.message.reference_task_ids.is_empty() {
            Box::pin(self.check_references(context, &send.message)).await?;
        }
        if let Some(id) = send.message.task_id.clone() {
            return Box::pin(self.follow_up(context, agent, &id, send)).await;
        }
        // With a key, whether this is a retry is asked first: the task it made goes by the same name.
        if let Some(id) = send.client_task_id.clone().filter(|_| context.idempotency_key.is_none()) {
            match Box::pin(self.follow_up(context, agent, &TaskId::new(id), send.clone())).await {
                Err(error) if error.kind == ErrorKind::TaskNotFound => {}
                known => return known,
            }
        }
        self.create(context, agent, send).await
    }

    async fn create(self: &Arc<Self>, context: &CallContext, agent: &Arc<Agent>, send: SendMessage) -> Result<Taken, Error> {
        let place = match &send.message.context_id {
            Some(given) => {
                contexts::check(&*self.seal, &context.caller, given)?;
                Place::OpensTask
            }
            None => Place::OpensAll,
        };
        let now = self.clock.now();
        let creation = Creation { idempotency: self.idempotency(context, &send, now)? };
        let id = TaskId::new(fresh_id());
        let context_id = send.message.context_id.clone().unwrap_or_else(|| contexts::fresh(&*self.seal, &context.caller));
        let again = (context.idempotency_key.is_some() && send.client_task_id.is_some()).then(|| send.clone());
        let mut message = send.message;
        // The caller's own copy is usually the only one, so this does not clone.
        let named = Arc::make_mut(&mut message);
        fill_message_id(named);
        named.context_id = Some(context_id.clone());
        named.task_id = Some(id.clone());
        let status = TaskStatus { state: TaskState::Submitted, message: None, timestamp: Some(now) };
        let task = Arc::new(Task {
            id: id.clone(),
            context_id: context_id.clone(),
            status,
            artifacts: Vec::new(),
            history: vec![Arc::clone(&message)],
            metadata: None,
        });
        let record = Arc::new(TaskRecord {
            id,
            context_id,
            agent: agent.name.clone(),
            owner: context.caller.clone(),
            dialect: context.version,
            client_task_id: send.client_task_id,
            created_at: now,
        });
        let entry = Arc::new(LogEntry { seq: 1, at: now, event: TaskEvent::Created(Arc::clone(&task)) });
        let progress = Progress {
            state: TaskState::Submitted,
            status_at: now,
            seq: 1,
            bytes: task_state::weight(&entry.event),
            message_only: false,
        };
        let fingerprint = creation.idempotency.as_ref().map(|idempotency| idempotency.fingerprint);
        let append = Append {
            task: Arc::clone(&record),
            creation: Some(creation),
            progress,
            entries: vec![Arc::clone(&entry)],
            link: None,
        };
        match self.store.append(append).await.map_err(internal)? {
            Appended::Recorded => {}
            Appended::KeyKnown { task, fingerprint: known } => {
                return Box::pin(self.attach(context, &task, fingerprint == Some(known))).await;
            }
            Appended::ClientIdKnown { task } => {
                return match again {
                    // Another key, or none, made the task: this is one more message for it.
                    Some(send) => Box::pin(self.follow_up(context, agent, &task, send)).await,
                    None => Box::pin(self.attach(context, &task, true)).await,
                };
            }
        }
        let live = self.open.add(LiveTask::created(record, entry, task, progress));
        if live.record.client_task_id.is_some() {
            self.named.send_modify(|count| *count += 1);
        }
        let said = Said { message, metadata: send.metadata, trace: context.trace, extensions: context.extensions.clone(), place };
        if let Some((said, token)) = live.begin_turn(said) {
            self.execute(&live, agent, said, token, false).await;
        }
        Ok(Taken { live, before: 1, cursor: 0, fresh: true })
    }

    /// The same call came before: its task is the answer to this one too.
    async fn attach(self: &Arc<Self>, context: &CallContext, id: &TaskId, same_content: bool) -> Result<Taken, Error> {
        if !same_content {
            return Err(Error::new(ErrorKind::IdempotencyConflict, "this idempotency key was used with other content"));
        }
        let stored = self.store.find(&context.caller, id.as_str(), crate::Names::Server).await.map_err(internal)?;
        let live = self.open(stored.ok_or_else(Error::task_not_found)?).await?;
        Ok(Taken { live, before: 1, cursor: 0, fresh: true })
    }

    async fn follow_up(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        id: &TaskId,
        send: SendMessage,
    ) -> Result<Taken, Error> {
        let stored = self.find(context, agent, id).await?;
        if let Some(given) = &send.message.context_id
            && *given != stored.task.context_id
        {
            return Err(Error::invalid_field("message.contextId", "does not belong to the task in message.taskId"));
        }
        if stored.progress.state.is_terminal() {
            let message = format!("the task has ended ({}); start a new one", stored.progress.state.name());
            return Err(Error::new(ErrorKind::UnsupportedOperation, message));
        }
        let live = self.open(stored).await?;
        let mut message = send.message;
        let named = Arc::make_mut(&mut message);
        fill_message_id(named);
        named.context_id = Some(live.record.context_id.clone());
        named.task_id = Some(live.record.id.clone());
        let seq = live.take_message(Arc::clone(&message), self.clock.now(), &self.limits)?;
        self.recorded(&live, seq).await;
        let said = Said {
            message,
            metadata: send.metadata,
            trace: context.trace,
            extensions: context.extensions.clone(),
            place: Place::GoesOn,
        };
        if let Some((said, token)) = live.begin_next_turn(said) {
            self.execute(&live, agent, said, token, false).await;
        }
        Ok(Taken { live, before: seq, cursor: seq, fresh: false })
    }

    /// A message may point only at tasks of the caller's own. Somebody else's and none at all are the same answer.
    async fn check_references(&self, context: &CallContext, message: &Message) -> Result<(), Error> {
        for (index, id) in message.reference_task_ids.iter().enumerate() {
            let found = self.store.find(&context.caller, id.as_str(), names(context)).await.map_err(internal)?;
            if found.is_none_or(|stored| stored.progress.message_only) {
                return Err(Error::invalid_field(format!("message.referenceTaskIds[{index}]"), "is no task of yours"));
            }
        }
        Ok(())
    }

    fn idempotency(&self, context: &CallContext, send: &SendMessage, now: Timestamp) -> Result<Option<Idempotency>, Error> {
        let key = match (&context.idempotency_key, self.dedupe) {
            (Some(key), _) => Arc::clone(key),
            // The original protocol has no message ids to go by.
            (None, Dedupe::MessageId) if send.message.message_id.as_str().is_empty() => return Ok(None),
            (None, Dedupe::MessageId) => format!("message:{}", send.message.message_id).into(),
            (None, Dedupe::Off) => return Ok(None),
        };
        check::id_text("Idempotency-Key", &key, &self.limits)?;
        // The configuration (wait or not, how much history) is about this call, not about the work.
        let content = serde_json::to_vec(&(&send.message, &send.metadata, &send.client_task_id));
        let content = content.map_err(|fault| Error::new(ErrorKind::Internal, fault.to_string()))?;
        let lifetime = i64::from(self.limits.idempotency_hours) * 3_600_000_000;
        let expires_at = Timestamp::from_micros(now.micros().saturating_add(lifetime));
        Ok(Some(Idempotency { key, fingerprint: self.seal.digest(&content), expires_at }))
    }
}

/// Messages of the original protocol have no id.
fn fill_message_id(message: &mut Message) {
    if message.message_id.as_str().is_empty() {
        message.message_id = MessageId::new(fresh_id());
    }
}
