//! The answer of a blocking send whose turn takes longer than its caller's client may wait in silence.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, NamedTask, Reply, Sent, TaskId};

use crate::answering::AnswerPermit;
use crate::find::shown;
use crate::live::LiveTask;
use crate::service::{Answer, ChanceryInner};
use crate::take::Taken;

/// A send whose task is recorded and whose turn goes on, or whose answer has no room yet. The transport answers now and writes
/// the reply when it is there.
#[derive(Debug)]
pub struct LateReply {
    inner: Arc<ChanceryInner>,
    context: CallContext,
    task: TaskId,
    awaited: Awaited,
    history_length: Option<i32>,
}

/// What a late reply waits for.
#[derive(Debug)]
enum Awaited {
    /// The end of the turn after this entry.
    Turn(Arc<LiveTask>, u64),
    /// Room for the answer. The task is in the store; these are its outline and its weight.
    Room(NamedTask, u64),
}

impl LateReply {
    pub(crate) fn new(inner: &Arc<ChanceryInner>, context: &CallContext, taken: Taken, history_length: Option<i32>) -> Self {
        let Taken { live, before, .. } = taken;
        let task = live.record.id.clone();
        Self { inner: Arc::clone(inner), context: context.clone(), task, awaited: Awaited::Turn(live, before), history_length }
    }

    /// For a send that has ended and whose answer has no room yet.
    pub(crate) fn without_room(
        inner: &Arc<ChanceryInner>,
        context: &CallContext,
        (outline, bytes): (NamedTask, u64),
        history_length: Option<i32>,
    ) -> Self {
        let (task, awaited) = (outline.task.id.clone(), Awaited::Room(outline, bytes));
        Self { inner: Arc::clone(inner), context: context.clone(), task, awaited, history_length }
    }

    /// Waits for the end of the turn and for room. The reply is always a task (or the agent's message): the caller already
    /// has the success status of the call. So an error is logged and the recorded task is the reply.
    pub async fn finish(self) -> (Reply, Option<AnswerPermit>) {
        let Self { inner, context, task, awaited, history_length } = self;
        let account = context.account();
        let (outline, opened) = match awaited {
            Awaited::Turn(live, before) => {
                if let Err(error) = inner.turn_over(&live, before).await {
                    log(&task, &error);
                }
                (live.outline(), inner.with_room(&account, live).await)
            }
            Awaited::Room(outline, bytes) => {
                let opened = inner.wait_for_room(&account, &task, bytes).await;
                (outline, opened.map(|(live, permit)| (live, Some(permit))))
            }
        };
        let answered = async {
            let (live, permit) = opened?;
            let reply = match inner.reply(&context, &live, history_length).await {
                Ok(reply) => reply,
                Err(error) => {
                    log(&task, &error);
                    let (whole, _) = inner.whole(&live).await?;
                    Reply::Sent(Sent::Task(shown(&live.record, whole, history_length)))
                }
            };
            Ok((reply, permit))
        };
        answered.await.unwrap_or_else(|error: Error| {
            log(&task, &error);
            (Reply::Sent(Sent::Task(outline)), None)
        })
    }

    /// Returns the id of the task, which is recorded already.
    pub fn task_id(&self) -> &TaskId {
        &self.task
    }

    /// Waits for the end of the turn, for a caller that got nothing yet and can still be given an error.
    pub async fn outcome(&self) -> Result<Reply, Error> {
        match &self.awaited {
            Awaited::Turn(live, before) => {
                self.inner.turn_over(live, *before).await?;
                self.inner.reply(&self.context, live, self.history_length).await
            }
            Awaited::Room(..) => {
                let live = self.inner.reopen(&self.task).await?;
                self.inner.reply(&self.context, &live, self.history_length).await
            }
        }
    }
}

fn log(task: &TaskId, error: &Error) {
    tracing::warn!(%task, %error, "the turn failed after its reply began; the reply shows the task as stored");
}

impl ChanceryInner {
    async fn turn_over(self: &Arc<Self>, live: &Arc<LiveTask>, before: u64) -> Result<(), Error> {
        self.settled(live, before, None, None).await?;
        if live.has_webhooks() {
            self.first_attempts(live).await;
        }
        Ok(())
    }

    async fn reply(
        self: &Arc<Self>,
        context: &CallContext,
        live: &Arc<LiveTask>,
        history_length: Option<i32>,
    ) -> Result<Reply, Error> {
        let answer = Answer::Reply(Reply::Sent(self.sent(context, live, history_length).await?));
        let answer = match self.offloading_part_store() {
            Some(part_store) => self.restore_answer(part_store, context, answer).await?,
            None => answer,
        };
        match answer {
            Answer::Reply(reply) => Ok(reply),
            // Restoring changes the parts of an answer, not its kind.
            _ => Err(Error::task_not_found()),
        }
    }
}
