//! Finds or makes the task of a message: rules are evaluated, the message is recorded, and its turn begins.

use std::sync::Arc;

use chancery_protocol::{
    CallContext, ContextId, Error, ErrorKind, IdentityProof, Message, MessageId, Metadata, SendMessage, Task, TaskEvent, TaskId,
    TaskState, TaskStatus, Timestamp, Unknown,
};
use chancery_rules::task_state;

use crate::agents::Agent;
use crate::carry_on::CarryOn;
use crate::check;
use crate::contexts;
use crate::dispatch::Dispatched;
use crate::find::internal;
use crate::ids::fresh_id;
use crate::key_quota::KeyPermit;
use crate::live::{LiveTask, QueuedTurn, TurnOrigin};
use crate::recording::PendingRecording;
use crate::route::check_media_types;
use crate::service::ChanceryInner;
use crate::trace;
use crate::{
    Append, Appended, Creation, Delegated, Idempotency, Keyed, LineageRecord, LogEntry, Progress, RecordNote, ReplyMode,
    StoreError, Stored, TaskRecord,
};

/// A task that has taken the message.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) live: Arc<LiveTask>,
    /// The entry before the message's turn: what settles after it settles the turn.
    pub(crate) before: u64,
    /// Show the stream from here.
    pub(crate) cursor: u64,
    /// The task was made by this call.
    pub(crate) fresh: bool,
    /// The recording of a turn that is over already, for the caller that waits for it.
    pub(crate) recording: Option<PendingRecording>,
}

/// What is settled of a task before it is made.
struct NewTask {
    id: TaskId,
    idempotency: Option<Idempotency>,
    key_permit: Option<KeyPermit>,
    reply_mode: ReplyMode,
}

impl ChanceryInner {
    /// Until the rules have admitted the call, a caller that disconnects ends it. From then on it is carried
    /// through, so that every recorded task has a turn.
    pub(crate) async fn take_message(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
        reply_mode: ReplyMode,
    ) -> Result<Taken, Error> {
        check::send(&send, &self.limits.load())?;
        if send.configuration.task_push_notification_config.is_some() {
            self.push_of(agent)?;
        }
        if agent.enforces_input_modes {
            check_media_types(&agent.card, &send.message)?;
        }
        if !send.message.reference_task_ids.is_empty() {
            Box::pin(self.check_references(context, &send.message)).await?;
        }
        let known = self.known(context, agent, &send).await?;
        match known {
            Some(stored) => Box::pin(self.follow_up(context, agent, stored, send, reply_mode)).await,
            None => self.create(context, agent, send, reply_mode).await,
        }
    }

    /// The task a message is for, if it names one.
    async fn known(&self, context: &CallContext, agent: &Agent, send: &SendMessage) -> Result<Option<Stored>, Error> {
        if let Some(id) = &send.message.task_id {
            return Box::pin(self.find(context, agent, id)).await.map(Some);
        }
        // With a key, whether this is a retry is asked first: the task it made goes by the same name.
        let Some(id) = send.client_task_id.clone().filter(|_| context.idempotency_key.is_none()) else { return Ok(None) };
        match Box::pin(self.find(context, agent, &TaskId::new(id))).await {
            Ok(stored) => Ok(Some(stored)),
            Err(error) if error.kind == ErrorKind::TaskNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
        reply_mode: ReplyMode,
    ) -> Result<Taken, Error> {
        let turn_origin = match &send.message.context_id {
            Some(given) => {
                if !self.was_given(context, given) {
                    contexts::check(&*self.seal, &context.caller, given)?;
                }
                TurnOrigin::OpensTask
            }
            None => TurnOrigin::OpensAll,
        };
        let now = self.clock.now();
        let addressed = if context.agent.is_none() { self.agents.load().first().name.clone() } else { agent.name.clone() };
        let idempotency = self.idempotency(context, &addressed, &send, now)?;
        if let Some(idempotency) = &idempotency
            && let Some(taken) = Box::pin(self.retried(context, idempotency, now)).await?
        {
            return Ok(taken);
        }
        let retention = self.retention.config.load();
        let key_permit =
            idempotency.as_ref().map(|key| self.key_quota.take(&context.caller, key, now, &retention)).transpose()?;
        let id = TaskId::new(fresh_id());
        let dispatched = self.dispatch(context, agent, &send, &id, turn_origin).await?;
        let (inner, context, agent) = (Arc::clone(self), context.clone(), Arc::clone(agent));
        let making = async move {
            inner.make(&context, &agent, send, NewTask { id, idempotency, key_permit, reply_mode }, dispatched).await
        };
        CarryOn::new(making, &self.background).await
    }

    async fn make(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
        new: NewTask,
        mut dispatched: Box<Dispatched>,
    ) -> Result<Taken, Error> {
        let NewTask { id, idempotency, key_permit, reply_mode } = new;
        let now = self.clock.now();
        let turn_origin = if send.message.context_id.is_some() { TurnOrigin::OpensTask } else { TurnOrigin::OpensAll };
        let register = match &send.configuration.task_push_notification_config {
            Some(config) => Some(Box::pin(self.challenged_registration(context, agent, &id, config)).await?),
            None => None,
        };
        let context_id = send.message.context_id.clone().unwrap_or_else(|| contexts::fresh(&*self.seal, &context.caller));
        let again = (context.idempotency_key.is_some() && send.client_task_id.is_some()).then(|| send.clone());
        let mut message = send.message;
        // The caller's own copy is usually the only one, so this does not clone.
        let named = Arc::make_mut(&mut message);
        fill_message_id(named);
        named.context_id = Some(context_id.clone());
        named.task_id = Some(id.clone());
        let kept = match self.part_store_for(&message) {
            Some(part_store) => Box::pin(self.kept(part_store, &id, &message)).await?,
            None => Arc::clone(&message),
        };
        let task = submitted(id.clone(), context_id.clone(), kept, now);
        let record = Arc::new(TaskRecord {
            id,
            context_id,
            agent: agent.name.clone(),
            owner: context.caller.clone(),
            dialect: context.dialect(),
            client_task_id: send.client_task_id,
            created_at: now,
        });
        let (entry, progress) = first_entry(&task, now);
        let asked = idempotency.clone();
        let governed = dispatched.governed();
        let notes = self.delegated(agent, &record, &governed.kinship, now).into_iter().collect();
        let append = Append {
            task: Arc::clone(&record),
            creation: Some(Creation { idempotency }),
            progress,
            entries: vec![Arc::clone(&entry)],
            link: None,
            governed: Some(Box::new(governed)),
            spend: None,
            decision: None,
            register,
            notes,
            answers: None,
        };
        // Nobody takes up a task whose first turn is about to begin.
        let making = match &self.cluster {
            Some(member) => Some(Box::pin(member.lock(&record.id)).await),
            None => None,
        };
        match self.store.append(append).await.map_err(internal)? {
            Appended::Recorded | Appended::RecordedBehind => {}
            Appended::RecordedToTell => self.ring(),
            Appended::TooManyRegistrations { of_tenant } => return Err(crate::push::too_many(of_tenant)),
            Appended::KeyKnown { task, fingerprint: known } => {
                drop(making);
                let known = Keyed { task, fingerprint: known };
                let asked = asked.ok_or_else(|| internal(StoreError::new("the store knows the key of a call without one")))?;
                return Box::pin(self.attach(context, known, &asked, now)).await;
            }
            Appended::ClientIdKnown { task } => {
                drop(making);
                return match again {
                    // Another key, or none, made the task: this is one more message for it.
                    Some(send) => {
                        drop(dispatched);
                        let stored = Box::pin(self.find(context, agent, &task)).await?;
                        Box::pin(self.follow_up(context, agent, stored, send, reply_mode)).await
                    }
                    None => Box::pin(self.attach_to(context, &task)).await,
                };
            }
        }
        if let Some(permit) = key_permit {
            permit.keep();
        }
        let brought = dispatched.brought();
        let (node, selected, allotment) = dispatched.begin(self, &record, agent, context);
        if self.govern.trees.add(&node) && context.standing.proof == IdentityProof::None {
            self.warn_of_loop(&node.record.agent, now);
        }
        let live = self.open.add(LiveTask::created(record, entry, task, progress, Arc::clone(&node)));
        live.take_place(node);
        if self.cluster.is_some() {
            live.hold_created();
        }
        if live.record.client_task_id.is_some() {
            self.named.send_modify(|count| *count += 1);
        }
        let queued_turn = QueuedTurn {
            reply_mode,
            turn_origin,
            selected,
            allotment: Some(Box::new(allotment)),
            brought,
            ..self.queued_turn(context, &live, message, send.metadata, send.unknown)
        };
        let begun = live.begin_turn(queued_turn);
        drop(making);
        let recording = match begun {
            Some((queued_turn, token)) => self.execute(&live, agent, queued_turn, token, false).await,
            None => None,
        };
        Ok(Taken { live, before: 1, cursor: 0, fresh: true, recording })
    }

    /// The turn of a message that continues its task, from the call. It has no chosen replica and no
    /// allotment.
    pub(crate) fn queued_turn(
        &self,
        context: &CallContext,
        live: &LiveTask,
        message: Arc<Message>,
        metadata: Option<Metadata>,
        unknown: Unknown<SendMessage>,
    ) -> QueuedTurn {
        QueuedTurn {
            message,
            metadata,
            unknown,
            trace: trace::going_on(context, live.node()),
            tracestate: context.tracestate.as_ref().and_then(|state| self.marks.foreign(state)),
            extensions: context.extensions.clone(),
            reply_mode: ReplyMode::default(),
            turn_origin: TurnOrigin::GoesOn,
            selected: None,
            allotment: None,
            brought: None,
            presenter: context.standing.agent_id.clone(),
        }
    }

    /// The record of a task that another agent requested, or that goes to a remote agent.
    fn delegated(
        &self,
        agent: &Agent,
        record: &Arc<TaskRecord>,
        kinship: &Arc<LineageRecord>,
        at: Timestamp,
    ) -> Option<RecordNote> {
        let remote = agent.runner.keeps_links();
        if !remote && kinship.parent.is_none() {
            return None;
        }
        let (task, kinship) = (Arc::clone(record), Arc::clone(kinship));
        self.noted(|| RecordNote::Delegated(Box::new(Delegated { task, kinship, remote, at })))
    }
}

/// A task as it is made.
fn submitted(id: TaskId, context_id: ContextId, message: Arc<Message>, now: Timestamp) -> Arc<Task> {
    let status = TaskStatus { state: TaskState::Submitted, message: None, timestamp: Some(now), unknown: Unknown::none() };
    Arc::new(Task {
        id,
        context_id,
        status,
        artifacts: Vec::new(),
        history: vec![message],
        metadata: None,
        unknown: Unknown::none(),
    })
}

fn first_entry(task: &Arc<Task>, now: Timestamp) -> (Arc<LogEntry>, Progress) {
    let entry = Arc::new(LogEntry { seq: 1, at: now, event: TaskEvent::Created(Arc::clone(task)) });
    let bytes = task_state::weight(&entry.event);
    (entry, Progress { state: TaskState::Submitted, status_at: now, seq: 1, bytes, message_only: false })
}

/// Messages of the original protocol have no id.
pub(crate) fn fill_message_id(message: &mut Message) {
    if message.message_id.as_str().is_empty() {
        message.message_id = MessageId::new(fresh_id());
    }
}
