//! A caller watches a task: from now on, or from the last event it saw.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, ErrorKind, SubscribeToTask, TaskEvent, Version};

use crate::LogEntry;
use crate::agents::Agent;
use crate::find::internal;
use crate::live::LiveTask;
use crate::publish::{Subscription, Until};
use crate::send::marks_end;
use crate::service::ChanceryInner;

impl ChanceryInner {
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Arc<Agent>,
        subscribe: SubscribeToTask,
    ) -> Result<Subscription, Error> {
        let mut stored = self.find(context, agent, &subscribe.id).await?;
        let seen = context.last_event_id;
        if self.cluster.is_some() && seen.is_some_and(|seen| seen > stored.progress.seq) {
            // Another node may have shown an entry that is durable and that this node, which recorded it, has not shown yet.
            let now = self.store.find_any(stored.task.id.as_str()).await.map_err(internal)?;
            stored = now.ok_or_else(Error::task_not_found)?;
        }
        if let Some(seen) = seen.filter(|seen| *seen > stored.progress.seq) {
            let description = format!("is {seen}, past the last event ({})", stored.progress.seq);
            return Err(Error::invalid_field("Last-Event-ID", description));
        }
        // A task that has ended has nothing to watch, but a caller that was cut off may still fetch what it missed.
        if stored.progress.state.is_terminal() && seen.is_none_or(|seen| seen == stored.progress.seq) {
            let message = format!("the task has ended ({}); get it instead", stored.progress.state.name());
            return Err(Error::new(ErrorKind::UnsupportedOperation, message));
        }
        // Before it is read: a stream that is refused reads nothing.
        let permit = self.streams.enter(&context.account(), &stored.task.id, &self.limits.load())?;
        let live = self.open(stored).await?;
        live.let_go();
        let until = match context.version {
            Version::V1_0 => Until::Terminal,
            // Before 1.0 an event with `final` ends the stream, and a task that waits for its caller sends one.
            Version::V0_3 | Version::Original => Until::TurnOver(seen.unwrap_or_else(|| live.visible().seq)),
        };
        let cursor = seen.unwrap_or_else(|| live.visible().seq);
        let subscription = Subscription::new(Arc::clone(self), Arc::clone(&live), cursor, until, permit);
        let subscription = subscription.marking_end(marks_end(context));
        match (seen, context.version) {
            // From the very beginning, the first entry is the task itself. Older callers that resume get just what they missed.
            (Some(0), _) | (Some(_), Version::V0_3 | Version::Original) => Ok(subscription),
            // A 1.0 stream opens with the task: for one that resumes, as it was when the connection was lost.
            _ => Ok(subscription.with_snapshot()),
        }
    }

    /// The task as it was after entry `seq`, as the first event of a stream that goes on from there.
    pub(crate) async fn snapshot(&self, live: &LiveTask, seq: u64) -> Result<LogEntry, Error> {
        let at = self.clock.now();
        let task = match self.whole(live).await? {
            (task, visible) if visible == seq => task,
            _ => Arc::new(self.read_at(&live.record.id, seq).await?),
        };
        Ok(LogEntry { seq, at, event: TaskEvent::Created(task) })
    }
}
