//! The answer of a blocking send whose turn takes longer than its caller's client may wait in silence.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, Reply, Sent, TaskId};

use crate::answering::AnswerPermit;
use crate::find::shown;
use crate::live::LiveTask;
use crate::service::{Answer, ChanceryInner};
use crate::take::Taken;

/// A send whose task is recorded and whose turn goes on. The transport answers now and writes the reply when it is there.
#[derive(Debug)]
pub struct LateReply {
    inner: Arc<ChanceryInner>,
    context: CallContext,
    live: Arc<LiveTask>,
    before: u64,
    history_length: Option<i32>,
}

impl LateReply {
    pub(crate) fn new(inner: &Arc<ChanceryInner>, context: &CallContext, taken: Taken, history_length: Option<i32>) -> Self {
        let Taken { live, before, .. } = taken;
        Self { inner: Arc::clone(inner), context: context.clone(), live, before, history_length }
    }

    /// Waits for the end of the turn. The reply is always a task (or the agent's message): the caller already
    /// has the success status of the call. So an error is logged and the recorded task is the reply.
    pub async fn finish(self) -> (Reply, Option<AnswerPermit>) {
        let reply = match self.outcome().await {
            Ok(reply) => reply,
            Err(error) => {
                tracing::warn!(task = %self.live.record.id, error = %error, "the turn failed after its reply began; the reply shows the task as stored");
                Reply::Sent(Sent::Task(shown(&self.live.record, self.live.task(), self.history_length)))
            }
        };
        let permit = self.inner.room_for_done(&self.context, self.live.task_and_weight().1).await;
        (reply, permit)
    }

    /// Returns the id of the task, which is recorded already.
    pub fn task_id(&self) -> &TaskId {
        &self.live.record.id
    }

    /// Waits for the end of the turn, for a caller that got nothing yet and can still be given an error.
    pub async fn outcome(&self) -> Result<Reply, Error> {
        self.inner.settled(&self.live, self.before, None, None).await?;
        if self.live.has_webhooks() {
            self.inner.first_attempts(&self.live).await;
        }
        let (sent, _) = self.inner.sent(&self.context, &self.live, self.history_length).await?;
        let answer = Answer::Reply(Reply::Sent(sent));
        let answer = match self.inner.offloading_part_store() {
            Some(part_store) => self.inner.restore_answer(part_store, &self.context, answer).await?,
            None => answer,
        };
        match answer {
            Answer::Reply(reply) => Ok(reply),
            // `whole` changes the parts of an answer, not its kind.
            _ => Err(Error::task_not_found()),
        }
    }
}
