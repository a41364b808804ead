//! Has a task done by an agent of a node, from inside the program that runs the node.

use std::sync::Arc;

use chancery_core::{Answer, Chancery, Delegation, Subscription};
use chancery_protocol::{
    AgentName, Artifact, CallContext, Caller, CancelTask, Error, ErrorKind, Message, Metadata, Reply, Request, SendMessage, Sent,
    Task, TaskId, TaskState, TaskStatus, TraceId,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// Gives tasks to one agent of a node, wherever that agent runs. [`Node::executor`] makes one.
///
/// Every task passes the rules of the node, is recorded in its store and has a place in a tree of tasks. So budgets,
/// policies, `chancery tree` and `chancery explain` cover it.
#[derive(Clone, Debug)]
pub struct Executor {
    chancery: Chancery,
    context: CallContext,
}

impl Node {
    /// Makes an executor for an agent of this node: an agent of the program, subagents too, or a remote agent.
    pub fn executor(&self, agent: &str) -> Executor {
        let caller = Caller::new("default", "executor");
        let context = CallContext { agent: Some(AgentName::from(agent)), ..CallContext::new(caller, TraceId(0)) };
        Executor { chancery: self.chancery().clone(), context }
    }
}

impl Executor {
    /// Makes an executor for a runner that works on a task. Its tasks are children of that task and spend its budget.
    pub fn for_task(delegation: &Delegation, agent: &str) -> Result<Self, Error> {
        Ok(Self { chancery: delegation.chancery()?, context: delegation.call_context(agent) })
    }

    /// Sets the caller who owns the tasks. The default is `default/executor`, or the agent whose task delegates.
    #[must_use]
    pub fn with_caller(mut self, caller: Caller) -> Self {
        self.context.caller = caller;
        self
    }

    /// Runs a task and returns its artifacts. Any end of the task but completed is an error.
    pub async fn run(&self, message: Message, metadata: Option<Metadata>) -> Result<Vec<Arc<Artifact>>, Error> {
        let task = self.run_task(message, metadata).await?;
        match task.status.state {
            TaskState::Completed => Ok(task.artifacts.clone()),
            state => {
                let text = task.status.message.as_ref().and_then(|message| message.first_text().map(str::to_owned));
                let reason = text.unwrap_or_else(|| format!("the task is {}", state.name()));
                Err(Error::new(ErrorKind::InvalidAgentResponse, reason).with_fact("state", state.name()))
            }
        }
    }

    /// Runs a task and returns it, however it ended.
    pub async fn run_task(&self, message: Message, metadata: Option<Metadata>) -> Result<Arc<Task>, Error> {
        let answer = self.chancery.call(&self.new_context(), Request::SendMessage(send(message, metadata))).await?;
        task_of(answer)
    }

    /// Runs a task, cancels it when `cancelled` fires, and returns it as it ended.
    ///
    /// With `turn.cancelled`, a cancelled runner cancels its child. If the agent rejects the cancel, this call waits for the
    /// end of the task.
    pub async fn run_until(
        &self,
        message: Message,
        metadata: Option<Metadata>,
        cancelled: &CancellationToken,
    ) -> Result<Arc<Task>, Error> {
        let request = Request::SendMessage(send(message, metadata));
        // With a deadline that is over the answer is there as soon as the task has an id to cancel it by.
        let late = match self.chancery.call_until(&self.new_context(), request, Some(Instant::now())).await? {
            Answer::Late(late) => late,
            Answer::Large(reply, _) => return task_of(Answer::Reply(reply)),
            other => return task_of(other),
        };
        let mut outcome = std::pin::pin!(late.outcome());
        let reply = tokio::select! {
            biased;
            reply = &mut outcome => reply?,
            () = cancelled.cancelled() => {
                if let Err(error) = self.cancel(late.task_id()).await {
                    tracing::debug!(task = %late.task_id(), %error, "a task of an executor was not cancelled");
                }
                outcome.await?
            }
        };
        task_of(Answer::Reply(reply))
    }

    /// Runs a task and returns its events as they come. The subscription has the id to cancel the task by.
    pub async fn stream(&self, message: Message, metadata: Option<Metadata>) -> Result<Subscription, Error> {
        match self.chancery.call(&self.new_context(), Request::StreamMessage(send(message, metadata))).await? {
            Answer::Stream(subscription) => Ok(*subscription),
            _ => Err(Error::new(ErrorKind::Internal, "a stream was answered with something else")),
        }
    }

    /// Cancels a task of this executor's caller, and returns it as it is then.
    pub async fn cancel(&self, task: &TaskId) -> Result<Arc<Task>, Error> {
        let cancel = CancelTask { tenant: None, id: task.clone(), metadata: None };
        match self.chancery.call(&self.new_context(), Request::CancelTask(cancel)).await? {
            Answer::Reply(Reply::Task(named)) => Ok(named.task),
            _ => Err(Error::new(ErrorKind::Internal, "a cancel was answered with something else")),
        }
    }

    /// Makes the context of one call. A call that is not made for a task begins a trace of its own.
    fn new_context(&self) -> CallContext {
        let mut context = self.context.clone();
        if context.within.is_none() {
            context.trace = chancery_core::new_trace_id();
        }
        context
    }
}

fn send(message: Message, metadata: Option<Metadata>) -> SendMessage {
    SendMessage { metadata, ..SendMessage::new(message) }
}

fn task_of(answer: Answer) -> Result<Arc<Task>, Error> {
    match answer {
        Answer::Reply(Reply::Sent(Sent::Task(named))) => Ok(named.task),
        Answer::Reply(Reply::Sent(Sent::Message(message))) => Ok(Arc::new(answered(message))),
        _ => Err(Error::new(ErrorKind::Internal, "a message was answered with something else")),
    }
}

/// Shows an agent's message as the task that it completed with it.
pub(crate) fn answered(message: Arc<Message>) -> Task {
    let artifact = Artifact::new("answer", message.parts.clone());
    let status = TaskStatus { state: TaskState::Completed, message: Some(message), timestamp: None, unknown: Default::default() };
    Task {
        id: "answer".into(),
        context_id: "answer".into(),
        status,
        artifacts: vec![Arc::new(artifact)],
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    }
}

#[cfg(test)]
mod tests;
