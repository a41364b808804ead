//! A message comes in: a task is made or goes on, and the caller waits for it, does not wait, or watches.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{
    Binding, CallAccount, CallContext, Error, ErrorKind, Message, Reply, SendMessage, Sent, TaskEvent, TaskId, Version,
};
use futures::FutureExt as _;
use tokio::time::Instant;

use crate::ReplyMode;
use crate::agents::Agent;
use crate::alarm::Alarm;
use crate::answering::{AnswerPermit, COUNTED_FROM};
use crate::check;
use crate::find::{internal, shown};
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
            let mut first_word = live.watch();
            let decided = first_word.wait_for(Visible::is_decided);
            if live.is_following() {
                // That the agent has the task, and has not said a word, is known only where it is worked on.
                let _ = tokio::time::timeout(FIRST_WORD, decided).await;
            } else {
                let _ = decided.await;
            }
        }
        if live.weight() <= COUNTED_FROM || live.refusal().is_some() {
            return self.sent(context, live, history_length).await.map(|sent| Answer::Reply(Reply::Sent(sent)));
        }
        Box::pin(self.sent_with_room(context, taken.live, history_length, deadline)).await
    }

    /// The answer to a send that has many bytes. Where there is no room for it at `deadline`, it is an `Answer::Late`.
    async fn sent_with_room(
        self: &Arc<Self>,
        context: &CallContext,
        live: Arc<LiveTask>,
        history_length: Option<i32>,
        deadline: Option<Instant>,
    ) -> Result<Answer, Error> {
        let (account, outline, bytes) = (context.account(), live.outline(), live.weight());
        let with_room = self.with_room(&account, live);
        let with_room = match deadline {
            Some(deadline) => Alarm::default().unless(deadline, with_room).await,
            None => Some(with_room.await),
        };
        let Some(with_room) = with_room else {
            return Ok(Answer::Late(Box::new(LateReply::without_room(self, context, (outline, bytes), history_length))));
        };
        let (live, permit) = with_room?;
        let sent = self.sent(context, &live, history_length).await?;
        Ok(Answer::of(Reply::Sent(sent), permit))
    }

    /// An open task with room for its answer, for a call that has changed something: it waits rather than being refused. Who waits
    /// holds no task, which is opened again then.
    pub(crate) async fn with_room(
        self: &Arc<Self>,
        account: &CallAccount,
        live: Arc<LiveTask>,
    ) -> Result<(Arc<LiveTask>, Option<AnswerPermit>), Error> {
        let bytes = live.weight();
        if bytes <= COUNTED_FROM {
            return Ok((live, None));
        }
        let limits = self.limits.load_full();
        if let Some(permit) = self.answering.wait(account, bytes, &limits).now_or_never() {
            return Ok((live, Some(permit)));
        }
        let id = live.record.id.clone();
        drop(live);
        let (live, permit) = self.wait_for_room(account, &id, bytes).await?;
        Ok((live, Some(permit)))
    }

    /// Waits for room for so many bytes, and opens the task only then.
    pub(crate) async fn wait_for_room(
        self: &Arc<Self>,
        account: &CallAccount,
        id: &TaskId,
        bytes: u64,
    ) -> Result<(Arc<LiveTask>, AnswerPermit), Error> {
        let limits = self.limits.load_full();
        let permit = self.answering.wait(account, bytes, &limits).await;
        Ok((self.reopen(id).await?, permit))
    }

    /// Opens the task of a call that has let go of it.
    pub(crate) async fn reopen(self: &Arc<Self>, id: &TaskId) -> Result<Arc<LiveTask>, Error> {
        let stored = self.store.find_any(id.as_str()).await.map_err(internal)?;
        let gone = || Error::task_not_found().with_fact("taskId", id);
        self.open(stored.ok_or_else(gone)?).await
    }

    /// What a send is answered with, once its turn is over: the task, the agent's message, or the agent's refusal.
    pub(crate) async fn sent(
        &self,
        context: &CallContext,
        live: &Arc<LiveTask>,
        history_length: Option<i32>,
    ) -> Result<Sent, Error> {
        let ShownTask { task, message_only } = live.shown()?;
        if message_only && let Some(message) = Box::pin(self.message_reply(live)).await? {
            let message = match self.offloading_part_store() {
                Some(part_store) => Box::pin(restored_reply(part_store, context, &live.record.id, message)).await?,
                None => message,
            };
            return Ok(Sent::Message(message));
        }
        let task = match task {
            Some(task) => task,
            None => Box::pin(self.whole(live)).await?.0,
        };
        Ok(Sent::Task(shown(&live.record, task, history_length)))
    }

    pub(crate) async fn stream(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: SendMessage,
    ) -> Result<Subscription, Error> {
        // A message that nobody may watch is refused before it has done anything.
        let mut permit = self.streams.reserve(&context.account(), &self.limits.load())?;
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
            if live.is_unwatched() {
                self.watch_from_now(live).await?;
            }
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
