//! Cancels a task at a remote agent, and reports the agent's answer as it is.

use std::future::Future;
use std::pin::Pin;

use chancery_protocol::{CancelTask, Error, ErrorKind, Reply, Request, Sent, Task, TaskEvent};

use chancery_core::{RunError, spawn_watched};

use super::ask::{AgentAnswer, whole};
use super::follow::Follower;
use super::replica::{Replica, ReplicaClient};
use super::rounds::RoundOutcome;
use crate::client::{AgentClient, CallConditions, ClientError};

/// What an agent answered to a cancel.
#[derive(Debug)]
pub(super) enum CancelAnswer {
    /// The task as it is now.
    Task(Reply),
    /// The agent will not stop. The error is for the caller, and names the agent.
    Refused(Error),
    /// The agent was not reached, or does not know the task yet.
    Unknown,
}

pub(super) async fn cancel_at(
    replica_client: &ReplicaClient,
    cancel: &Request,
    conditions: &CallConditions,
    replica: &Replica,
) -> CancelAnswer {
    match replica_client.client.call(cancel, conditions).await {
        Ok(reply) => CancelAnswer::Task(reply),
        Err(ClientError::Refused(error)) if error.kind != ErrorKind::TaskNotFound => {
            tracing::warn!(peer = replica.name(), url = replica.address().url, %error, "the agent refused to cancel a task");
            CancelAnswer::Refused(refusal(replica, &error))
        }
        Err(error) => {
            tracing::warn!(peer = replica.name(), url = replica.address().url, %error, "the agent did not confirm a cancel");
            CancelAnswer::Unknown
        }
    }
}

/// The agent's own error where its kind is one of a refused cancel, and its words in any case.
fn refusal(replica: &Replica, error: &Error) -> Error {
    let kind = match error.kind {
        kind @ (ErrorKind::TaskNotCancelable | ErrorKind::UnsupportedOperation) => kind,
        _ => ErrorKind::TaskNotCancelable,
    };
    Error::new(kind, format!("agent {} refused to cancel the task: {}", replica.agent_name(), error.message))
}

/// Waits in the background for the answer of a call whose turn has ended, and cancels the task that it names. Gives up when the replica
/// is dropped, at the latest with the node.
pub(super) fn when_named(
    replica: &Replica,
    client: AgentClient,
    conditions: CallConditions,
    answer: Pin<Box<dyn Future<Output = Result<Reply, ClientError>> + Send>>,
) {
    let (dropped, peer) = (replica.dropped(), replica.name().to_owned());
    let cancelling = async move {
        let Ok(Reply::Sent(Sent::Task(shown)) | Reply::Task(shown)) = answer.await else { return };
        let Task { id, status, .. } = &*shown.task;
        if status.state.is_terminal() {
            return;
        }
        let cancel = Request::CancelTask(CancelTask { tenant: None, id: id.clone(), metadata: None });
        if let Err(error) = client.call(&cancel, &conditions).await {
            tracing::warn!(peer, task = %id, url = client.interface().url, %error, "cannot cancel a task at its agent after its turn ended");
        }
    };
    spawn_watched("cancel of an unnamed task", async move {
        dropped.run_until_cancelled(cancelling).await;
    });
}

impl Follower {
    /// Not before the agent has named the task: nothing else says which one is to stop.
    pub(super) fn can_cancel(&self) -> bool {
        !self.cancel_sent && self.remote.mirror.has_task()
    }

    /// Tells the agent to stop. Its answer counts, because some never say on a stream that they did.
    pub(super) async fn cancel(&mut self) -> Result<RoundOutcome, RunError> {
        self.cancel_sent = true;
        let Some(id) = self.remote.mirror.names().0 else { return Ok(RoundOutcome::Nothing) };
        let conditions = self.replica.conditions(&self.remote.turn, &self.replica_client);
        let cancel = Request::CancelTask(CancelTask { tenant: None, id, metadata: None });
        let reply = match cancel_at(&self.replica_client, &cancel, &conditions, &self.replica).await {
            CancelAnswer::Task(reply) => reply,
            CancelAnswer::Unknown => return Ok(RoundOutcome::Nothing),
            CancelAnswer::Refused(error) => {
                // It may have ended meanwhile, and then there is nothing to cancel.
                if let Ok(over @ RoundOutcome::Over(_)) = self.look_for_end().await {
                    return Ok(over);
                }
                if let Some(token) = self.sink.as_ref().and_then(|sink| sink.refuse_cancel(error)) {
                    self.remote.turn.cancelled = token;
                    self.cancel_sent = false;
                }
                return Ok(RoundOutcome::AtWork);
            }
        };
        if let Some(sink) = &self.sink {
            sink.answer_cancel();
        }
        match whole(Ok(reply)) {
            Ok(AgentAnswer::Whole(TaskEvent::Created(task))) => {
                let news = self.remote.mirror.apply_picture(&task).map_err(|strange| self.not_believed(&strange))?;
                self.pass(news, false).await
            }
            _ => Ok(RoundOutcome::Nothing),
        }
    }

    /// Ends the turn if the task has ended at the agent.
    async fn look_for_end(&mut self) -> Result<RoundOutcome, RunError> {
        let heard = Box::pin(self.look()).await?;
        match self.ending.is_some() {
            true => self.end().await,
            false => Ok(heard.unwrap_or(RoundOutcome::Nothing)),
        }
    }
}
