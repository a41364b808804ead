//! One task, as it is now.

use chancery_protocol::{CallContext, Error, GetTask, Reply};

use crate::agents::Agent;
use crate::answering::COUNTED_FROM;
use crate::check;
use crate::find::shown;
use crate::service::{Answer, ChanceryInner};

impl ChanceryInner {
    pub(crate) async fn get(&self, context: &CallContext, agent: &Agent, get: GetTask) -> Result<Answer, Error> {
        check::history_length("historyLength", get.history_length)?;
        let stored = self.find(context, agent, &get.id).await?;
        let bytes = stored.progress.bytes;
        // Before it is read: what is read and cannot be sent is memory too.
        let permit = (bytes > COUNTED_FROM).then(|| self.answering.reserve(&context.account(), bytes, &self.limits.load()));
        let permit = permit.transpose()?;
        let task = self.current(&stored).await?;
        let reply = Reply::Task(shown(&stored.task, task, get.history_length));
        Ok(Answer::of(reply, permit))
    }
}
