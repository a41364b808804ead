//! A message comes in: a task is made or goes on, and the caller waits for it, does not wait, or watches.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{Binding, CallContext, Error, ErrorKind, Message, Reply, SendMessage, Sent, TaskEvent, Version};
use tokio::time::Instant;

use crate::ReplyMode;
use crate::agents::Agent;
use crate::answering::{AnswerPermit, COUNTED_FROM};
use crate::check;
use crate::find::shown;
use crate::late_reply::LateReply;
use crate::live::{LiveTask, ShownTask, Visible};
use crate::publish::{Subscription, Until};
use crate::recording::PendingRecording;
use crate::restored_parts::restored_reply;
use crate::service::{Answer, ChanceryInner};
use crate::take::Taken;

/// How long a stream waits for an agent's first word before it opens.
const FIRST_WORD: Duration = Duration::from_secs(1);

impl ChanceryInner {
    /// Answers a send. Where the caller waits and the turn is not over at `deadline`, the answer is an `Answer::Late`.
    pub(crate) async fn send(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
        deadline: Option<Instant>,
    ) -> Result<Answer, Error> {
        let history_length = send.configuration.history_length;
        let immediately = send.configuration.return_immediately;
        let reply_mode = ReplyMode::of_send(&send.configuration);
        let mut taken = self.take_message(context, agent, send, reply_mode).await?;
        let recording = taken.recording.take().filter(|_| !immediately);
        let live = &taken.live;
        if !immediately {
            if !self.settled(live, taken.before, recording, deadline).await? {
                if live.keep_from_withdrawal() {
                    return Ok(Answer::Late(Box::new(LateReply::new(self, context, taken, history_length))));
                }
                // The task is being withdrawn: the refusal is there in a moment, and it can still be an error.
                self.settled(live, taken.before, None, None).await?;
            }
            if live.has_webhooks() {
                Box::pin(self.first_attempts(live)).await;
            }
        } else if taken.fresh && agent.runner.may_reply_with_message() {
            // Whether there is a task to return at all shows with the agent's first word.
            let _ = live.watch().wait_for(Visible::is_decided).await;
        }
        let (sent, bytes) = self.sent(context, live, history_length).await?;
        if bytes <= COUNTED_FROM {
            return Ok(Answer::Reply(Reply::Sent(sent)));
        }
        let permit = Box::pin(self.room_for_done(context, bytes)).await;
        Ok(Answer::of(Reply::Sent(sent), permit))
    }

    /// Room for the answer of a call that has changed something: it waits rather than being refused.
    pub(crate) async fn room_for_done(&self, context: &CallContext, bytes: u64) -> Option<AnswerPermit> {
        if bytes <= COUNTED_FROM {
            return None;
        }
        let limits = self.limits.load_full();
        Some(self.answering.wait(&context.caller, bytes, &limits).await)
    }

    /// What a send is answered with, once its turn is over, and its weight: the task, the agent's message, or the agent's refusal.
    pub(crate) async fn sent(
        &self,
        context: &CallContext,
        live: &Arc<LiveTask>,
        history_length: Option<i32>,
    ) -> Result<(Sent, u64), Error> {
        let ShownTask { task, weight, message_only } = live.shown()?;
        if message_only && let Some(message) = Box::pin(self.message_reply(live)).await? {
            let message = match self.offloading_part_store() {
                Some(part_store) => Box::pin(restored_reply(part_store, context, &live.record.id, message)).await?,
                None => message,
            };
            return Ok((Sent::Message(message), weight));
        }
        Ok((Sent::Task(shown(&live.record, task, history_length)), weight))
    }

    pub(crate) async fn stream(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
    ) -> Result<Subscription, Error> {
        // A message that nobody may watch is refused before it has done anything.
        let mut permit = self.streams.reserve(&context.caller, &self.limits.load())?;
        if let Some(task) = &send.message.task_id {
            check::id_text("message.taskId", task.as_str(), &self.limits.load())?;
            // Whose task it is comes first: strangers neither learn how many watch it nor take a place there.
            let stored = self.find(context, agent, task).await?;
            permit.watch(&stored.task.id, &self.limits.load())?;
        }
        let Taken { live, before, cursor, .. } = self.take_message(context, agent, send, ReplyMode::Stream).await?;
        permit.watch(&live.record.id, &self.limits.load())?;
        let until = Until::TurnOver(before);
        let subscription = Subscription::new(Arc::clone(self), Arc::clone(&live), cursor, until, permit);
        let subscription = subscription.marking_end(marks_end(context));
        if cursor == 0 {
            let undecided = agent.runner.may_reply_with_message();
            if undecided {
                // Nothing is shown before the agent's first word anyway. If that is a refusal, there is no stream.
                let mut first_word = live.watch();
                let _ = tokio::time::timeout(FIRST_WORD, first_word.wait_for(Visible::is_decided)).await;
            }
            return match live.refusal() {
                Some(refusal) => Err(refusal),
                None => Ok(subscription.undecided(undecided)),
            };
        }
        // A follow-up: the stream opens with the task as it was when the message came.
        Ok(subscription.with_snapshot())
    }

    /// Waits until the turn after `before` is over: the task has ended or needs its caller. Drives the recording of
    /// that turn meanwhile. `false` if `deadline` comes first.
    pub(crate) async fn settled(
        &self,
        live: &Arc<LiveTask>,
        before: u64,
        recording: Option<PendingRecording>,
        deadline: Option<Instant>,
    ) -> Result<bool, Error> {
        let is_over = |visible: &Visible| visible.is_over(before);
        if let Some(recording) = recording {
            tokio::select! {
                biased;
                () = recording.until(live, is_over) => {}
                () = until(deadline) => return Ok(false),
                // A recording ends with its write, so only a caller without a deadline looks at the end of the node.
                () = self.shutdown.cancelled(), if deadline.is_none() => {}
            }
        }
        let mut visible = live.visible();
        if !is_over(&visible) {
            let mut watch = live.watch();
            tokio::select! {
                settled = watch.wait_for(is_over) => {
                    visible = settled.map(|visible| *visible).unwrap_or(visible);
                }
                () = self.shutdown.cancelled() => {
                    let hint = format!("the node is shutting down; task {} goes on being available", live.record.id);
                    return Err(Error::new(ErrorKind::Unavailable, hint).with_fact("taskId", &live.record.id));
                }
                () = until(deadline) => return Ok(false),
            }
        }
        if visible.broken {
            return Err(live.broken());
        }
        Ok(true)
    }

    async fn message_reply(&self, live: &LiveTask) -> Result<Option<Arc<Message>>, Error> {
        let entries = self.entries(&live.record.id, 0, usize::MAX).await?;
        let reply = entries.iter().find_map(|entry| match &entry.event {
            TaskEvent::Replied(message) => Some(Arc::clone(message)),
            _ => None,
        });
        Ok(reply)
    }
}

/// Whether the caller's protocol marks the last status of a stream: `final` before 1.0, the result of a task in SWP.
pub(crate) fn marks_end(context: &CallContext) -> bool {
    context.version != Version::V1_0 || context.binding == Binding::Swp
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
