//! The runner: gives an executor its turn, listens to it, and asks it to stop when the task is cancelled.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use a2a::{A2AError, StreamResponse};
use a2a_server::{AgentExecutor, ExecutorContext, User};
use async_trait::async_trait;
use chancery_core::{Finished, Passed, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::TaskState;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::story::Story;
use crate::translate;

/// An executor of the official SDK as an agent of Chancery.
#[derive(Clone)]
pub struct SdkRunner {
    executor: Arc<dyn AgentExecutor>,
}

impl SdkRunner {
    pub fn new(executor: impl AgentExecutor) -> Self {
        Self::from(Arc::new(executor) as Arc<dyn AgentExecutor>)
    }
}

impl From<Arc<dyn AgentExecutor>> for SdkRunner {
    fn from(executor: Arc<dyn AgentExecutor>) -> Self {
        Self { executor }
    }
}

impl fmt::Debug for SdkRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SdkRunner").finish_non_exhaustive()
    }
}

type Words = BoxStream<'static, Result<StreamResponse, A2AError>>;

#[async_trait]
impl TaskRunner for SdkRunner {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let mut story = Story::of(&turn.task);
        let mut passed = Passed::Open(updates);
        let mut work = self.executor.execute(context_of(&turn));
        loop {
            passed = tokio::select! {
                biased;
                () = turn.cancelled.cancelled() => return self.stop(&turn, story, passed, work).await,
                word = work.next() => match word {
                    Some(Ok(word)) => pass(&mut story, passed, word).await?,
                    Some(Err(error)) => return Err(RunError::new(error.message)),
                    None => return over(passed),
                },
            };
            if let Passed::Ended(finished) = passed {
                return Ok(finished);
            }
        }
    }

    fn may_reply_with_message(&self) -> bool {
        true
    }
}

impl SdkRunner {
    /// Asks the executor to stop. Its work is still listened to, because stopping may need it to move on; whatever
    /// ends the task first is its end.
    async fn stop(&self, turn: &Turn, mut story: Story, mut passed: Passed, work: Words) -> Result<Finished, RunError> {
        let mut work = work.fuse();
        let mut stop = self.executor.cancel(context_of_cancel(turn));
        loop {
            passed = tokio::select! {
                biased;
                word = stop.next() => match word {
                    Some(Ok(word)) => pass(&mut story, passed, word).await?,
                    Some(Err(error)) => {
                        tracing::warn!(task = %turn.task.id, %error, "the executor could not cancel; the task is canceled without it");
                        return Ok(canceled(passed));
                    }
                    None => return Ok(canceled(passed)),
                },
                Some(word) = work.next() => match word {
                    Ok(word) => pass(&mut story, passed, word).await?,
                    // Most often the executor's way to say that it was interrupted.
                    Err(error) => {
                        tracing::debug!(task = %turn.task.id, %error, "the executor gave up after a cancel");
                        passed
                    }
                },
            };
            if let Passed::Ended(finished) = passed {
                return Ok(finished);
            }
        }
    }
}

async fn pass(story: &mut Story, mut passed: Passed, word: StreamResponse) -> Result<Passed, RunError> {
    for event in story.events(word)? {
        let updates = match passed {
            Passed::Open(updates) => updates,
            Passed::Waiting(waiting) => waiting.go_on(),
            Passed::Ended(_) => break,
        };
        passed = updates.pass(event).await?;
    }
    Ok(passed)
}

/// The executor has no more to say.
fn over(passed: Passed) -> Result<Finished, RunError> {
    match passed {
        Passed::Ended(finished) => Ok(finished),
        Passed::Waiting(waiting) => Ok(waiting.finish()),
        Passed::Open(_) => Err(RunError::new("the agent stopped without saying how the task ended")),
    }
}

fn canceled(passed: Passed) -> Finished {
    match passed {
        Passed::Ended(finished) => finished,
        Passed::Waiting(waiting) => waiting.go_on().canceled(),
        Passed::Open(updates) => updates.canceled(),
    }
}

fn context_of(turn: &Turn) -> ExecutorContext {
    // An executor knows by the absent task that the conversation is new.
    let is_new = turn.task.status.state == TaskState::Submitted;
    ExecutorContext {
        message: Some(translate::message_out(&turn.message)),
        stored_task: (!is_new).then(|| translate::task_out(&turn.task)),
        metadata: turn.metadata.as_ref().map(translate::metadata_out),
        ..context_of_cancel(turn)
    }
}

fn context_of_cancel(turn: &Turn) -> ExecutorContext {
    // A runner is told who its caller is, not how that was found out, so nothing more is claimed here.
    let user = User { name: turn.caller.name.to_string(), authenticated: false, attributes: HashMap::new() };
    ExecutorContext {
        message: None,
        task_id: turn.task.id.to_string(),
        stored_task: Some(translate::task_out(&turn.task)),
        context_id: turn.task.context_id.to_string(),
        metadata: None,
        user: Some(user),
        service_params: HashMap::new(),
        tenant: Some(turn.caller.tenant.to_string()),
    }
}
