//! A message for a task that is there: rules are evaluated, the message is recorded, and its turn begins or waits in line.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, ErrorKind, SendMessage};
use chancery_rules::budget::Amount;

use crate::agents::Agent;
use crate::carry_on::CarryOn;
use crate::cluster::holding::{HoldGuard, Holding};
use crate::cluster::received::{AnswerToMessage, SealedAnswer};
use crate::dispatch::Dispatched;
use crate::find::internal;
use crate::govern::node::TreeNode;
use crate::live::{Admission, LiveTask, QueuedTurn};
use crate::service::ChanceryInner;
use crate::take::{Taken, fill_message_id};
use crate::{ReplyMode, Spend, Stored};

/// What a message finds at the task that it is for.
#[derive(Debug)]
pub(crate) struct FollowUp {
    pub(crate) live: Arc<LiveTask>,
    pub(crate) send: SendMessage,
    pub(crate) reply_mode: ReplyMode,
    /// Keeps the task with this node, where nodes share the store.
    pub(crate) guard: Option<HoldGuard>,
    /// The answer to the node that forwarded the message.
    pub(crate) answer: Option<SealedAnswer>,
}

impl ChanceryInner {
    pub(crate) async fn follow_up(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        stored: Stored,
        send: SendMessage,
        reply_mode: ReplyMode,
    ) -> Result<Taken, Error> {
        may_follow(&stored, &send)?;
        let live = self.open(stored).await?;
        let mut guard = None;
        if let Some(member) = &self.cluster {
            match Box::pin(self.hold_task(member, &live)).await? {
                Holding::Here(held) => guard = Some(held),
                Holding::Elsewhere(_) => {
                    return Box::pin(self.follow_up_elsewhere(member, context, agent, live, send, reply_mode)).await;
                }
                Holding::Ended => return Err(ended(&live.stored())),
            }
        }
        self.follow_up_here(context, agent, FollowUp { live, send, reply_mode, guard, answer: None }).await
    }

    /// A message for a task that this node works on.
    pub(crate) async fn follow_up_here(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        follow_up: FollowUp,
    ) -> Result<Taken, Error> {
        let dispatched = match follow_up.live.node().cloned() {
            Some(node) => Some((self.dispatch_again(context, agent, &follow_up.send, &node).await?, node)),
            None => None,
        };
        let (inner, context, agent) = (Arc::clone(self), context.clone(), Arc::clone(agent));
        let adding = async move { inner.add(&context, &agent, follow_up, dispatched).await };
        CarryOn::new(adding, &self.background).await
    }

    async fn add(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        follow_up: FollowUp,
        dispatched: Option<(Box<Dispatched>, Arc<TreeNode>)>,
    ) -> Result<Taken, Error> {
        let FollowUp { live, send, reply_mode, guard, answer } = follow_up;
        // Whoever reads a stream of the task gets the events of this turn too.
        let reply_mode = if self.streams.is_watched(&live.record.id) { ReplyMode::Stream } else { reply_mode };
        let mut message = send.message;
        let named = Arc::make_mut(&mut message);
        fill_message_id(named);
        named.context_id = Some(live.record.context_id.clone());
        named.task_id = Some(live.record.id.clone());
        let before = match live.spent() {
            Some(spent) => spent,
            None => self.spent_before(&live).await?,
        };
        let admission = dispatched.as_ref().map(|(dispatched, _)| Admission {
            decision: dispatched.decision(context, &live.record, self.clock.now()),
            held: dispatched.held(),
            before,
        });
        let kept = match self.part_store_for(&message) {
            Some(part_store) => Box::pin(self.kept(part_store, &live.record.id, &message)).await?,
            None => Arc::clone(&message),
        };
        // Last of all that can fail: from here on a message that is not taken takes its registration back.
        let registered = match &send.configuration.task_push_notification_config {
            Some(config) => Box::pin(self.register_inline(context, agent, &live.record, config)).await?,
            None => None,
        };
        // An append answers one message at most.
        let _one_answer = match (&self.cluster, &answer) {
            (Some(member), Some(_)) => Some(member.lock_answers(&live.record.id).await),
            _ => None,
        };
        let answering = answer.as_ref().map(|answer| answer as &dyn AnswerToMessage);
        let taken = live.take_message(kept, admission, self.clock.now(), &self.limits.load(), answering);
        if let (Err(_), Some(id)) = (&taken, &registered) {
            Box::pin(self.take_back_inline(&live.record.id, id)).await;
        }
        let seq = taken?;
        self.recorded(&live, seq).await;
        // The agent receives nothing that its task does not have.
        if live.visible().seq < seq {
            return Err(live.broken());
        }
        let (brought, selected, allotment) = match dispatched {
            Some((mut dispatched, node)) => {
                let brought = dispatched.brought();
                let (selected, allotment) = dispatched.go_on(self, &node, context, before);
                (brought, selected, Some(Box::new(allotment)))
            }
            None => (context.hop_token.clone(), None, None),
        };
        let queued_turn = QueuedTurn {
            reply_mode,
            selected,
            allotment,
            brought,
            ..self.queued_turn(context, &live, message, send.metadata, send.unknown)
        };
        let recording = match live.begin_next_turn(queued_turn) {
            Some((queued_turn, token)) => self.execute(&live, agent, queued_turn, token, false).await,
            None => None,
        };
        drop(guard);
        Ok(Taken { live, before: seq, cursor: seq, fresh: false, recording })
    }

    /// What a task cost before this process had it.
    async fn spent_before(&self, live: &LiveTask) -> Result<Spend, Error> {
        let governed = self.store.governed(&live.record.id).await.map_err(internal)?;
        Ok(governed.map_or_else(Spend::default, |governed| Spend { reserved: Amount::default(), ..governed.spend }))
    }
}

/// Whether a message may be for that task at all.
pub(crate) fn may_follow(stored: &Stored, send: &SendMessage) -> Result<(), Error> {
    if let Some(given) = &send.message.context_id
        && *given != stored.task.context_id
    {
        return Err(Error::invalid_field("message.contextId", "does not belong to the task in message.taskId"));
    }
    if stored.progress.state.is_terminal() { Err(ended(stored)) } else { Ok(()) }
}

pub(crate) fn ended(stored: &Stored) -> Error {
    let message = format!("the task has ended ({}); start a new one", stored.progress.state.name());
    Error::new(ErrorKind::UnsupportedOperation, message)
}
