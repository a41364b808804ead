//! Puts a caller's message to an agent elsewhere, once.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::{RunError, TaskUpdateSink, Turn};
use chancery_protocol::{
    CancelTask, Error, ErrorKind, GetTask, Message, Reply, Request, SendConfiguration, SendMessage, Sent as SentReply, TaskEvent,
    TaskId, Timestamp, Version,
};

use super::lineage;
use super::mirror::Mirror;
use super::original;
use super::replica::{Replica, Spoken};
use crate::client::{ClientError, Conditions, EventStream, Sent, Transport};

/// What the agent answered with.
#[derive(Debug)]
pub(super) enum Answer {
    /// It says the rest as it comes.
    Stream(Box<EventStream>),
    /// A picture of the task, or a message.
    Whole(TaskEvent),
}

#[derive(Debug)]
pub(super) enum Asked {
    Answered(Spoken, Answer),
    /// The agent cannot have seen the message.
    NotSeen(String),
    /// The same, for a reason that is ours and not the agent's.
    NotPut(String),
    /// It has, and does not want it.
    Refused(RunError),
    /// It may have, or it is the agent's fault.
    Lost(RunError),
}

pub(super) async fn ask(replica: &Replica, turn: &Turn, mirror: &Mirror, updates: &mut TaskUpdateSink, now: Timestamp) -> Asked {
    let spoken = match replica.client(now).await {
        Ok(spoken) => spoken,
        Err(error) => {
            tracing::warn!(peer = replica.name(), %error, "an agent cannot be called");
            return Asked::NotSeen(error.to_string());
        }
    };
    if spoken.version == Version::Original && !spoken.streams {
        // It answers only when it is done, and always with the task: nobody has to wait to learn that there is one.
        if let Err(closed) = updates.working(None).await {
            return Asked::Refused(closed.into());
        }
    }
    let send = message(turn, mirror, &spoken);
    let conditions = replica.conditions(turn, &spoken);
    let answered = if spoken.streams {
        let stream = spoken.client.stream(&Request::StreamMessage(send), &conditions).await;
        stream.map(|stream| Answer::Stream(Box::new(stream)))
    } else {
        whole(Box::pin(waiting(&spoken, send, turn, &conditions)).await)
    };
    match answered {
        Ok(answer) => Asked::Answered(spoken, answer),
        Err(error) => {
            tracing::info!(peer = replica.name(), %error, "an agent did not take a message");
            match error {
                ClientError::Refused(refusal) if is_about_the_agent(refusal.kind) => Asked::Lost(refused(refusal)),
                ClientError::Refused(refusal) => Asked::Refused(refused(refusal)),
                error if error.is_ours() => Asked::NotPut(error.public().message.into_owned()),
                error if error.sent() == Sent::No => Asked::NotSeen(error.public().message.into_owned()),
                error => Asked::Lost(RunError::new(error.public().message)),
            }
        }
    }
}

/// An agent's refusal of a message. What it says of the message, or asks of whoever sends it, is its caller's to hear, as if the
/// agent were here; what it says of this node, its credentials or its version, is not.
pub(super) fn refused(error: Error) -> RunError {
    match error.kind {
        ErrorKind::ContentTypeNotSupported
        | ErrorKind::UnsupportedOperation
        | ErrorKind::InvalidParams
        | ErrorKind::ExtensionSupportRequired
        | ErrorKind::PushNotificationNotSupported
        | ErrorKind::TooLarge
        | ErrorKind::RateLimited
        | ErrorKind::LimitReached
        | ErrorKind::BudgetExhausted
        | ErrorKind::BudgetQueueFull
        | ErrorKind::RecursionDepth
        | ErrorKind::RecursionRevisit
        | ErrorKind::SkillDenied
        | ErrorKind::ConcurrencyFull
        | ErrorKind::CostOverPolicy
        | ErrorKind::PolicyDenied
        | ErrorKind::Frozen
        | ErrorKind::NoEligiblePeer
        | ErrorKind::PeerUnavailable => RunError::refused(error),
        _ => RunError::new(error.message),
    }
}

/// Whether a refusal speaks against the agent, and not against the message.
pub(super) fn is_about_the_agent(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Internal
            | ErrorKind::InvalidAgentResponse
            | ErrorKind::Unavailable
            | ErrorKind::RateLimited
            | ErrorKind::LimitReached
            | ErrorKind::DeadlineExceeded
    )
}

/// Waits for the one answer there is. An agent that answers only when it is done is told meanwhile to stop, by the name it was given.
async fn waiting(spoken: &Spoken, send: SendMessage, turn: &Turn, conditions: &Conditions) -> Result<Reply, ClientError> {
    let named = send.client_task_id.as_deref().map(TaskId::from);
    let send = Request::SendMessage(send);
    let answer = spoken.client.call(&send, conditions);
    let Some(id) = named else { return answer.await };
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => return or_look(answer, spoken, &id, conditions).await,
        () = turn.cancelled.cancelled() => {}
    }
    let cancel = Request::CancelTask(CancelTask { tenant: None, id, metadata: None });
    let stop = async {
        // The message may still be under way, and then the agent does not know yet what it is to stop.
        for pause in [50, 100, 200, 400, 800].map(Duration::from_millis) {
            match spoken.client.call(&cancel, conditions).await {
                Ok(_) => return,
                Err(error) => tracing::info!(%error, "an agent did not say that it stops"),
            }
            tokio::time::sleep(pause).await;
        }
    };
    tokio::select! {
        answer = &mut answer => answer,
        () = stop => answer.await,
    }
}

/// An agent that works longer than an answer may take goes on with the task, by the name it was given: it can be asked how far it is.
async fn or_look(
    answer: Result<Reply, ClientError>,
    spoken: &Spoken,
    id: &TaskId,
    conditions: &Conditions,
) -> Result<Reply, ClientError> {
    match answer {
        Err(late @ ClientError::Transport(Transport::OutOfTime { sent: Sent::Maybe })) => {
            let get = Request::GetTask(GetTask { tenant: None, id: id.clone(), history_length: None });
            spoken.client.call(&get, conditions).await.map_err(|_| late)
        }
        answer => answer,
    }
}

/// The caller's message under the names the agent knows.
fn message(turn: &Turn, mirror: &Mirror, spoken: &Spoken) -> SendMessage {
    let (task, context) = mirror.names();
    // In the original protocol the client names the task, so a first message brings a name.
    let client_task_id = (spoken.version == Version::Original)
        .then(|| task.as_ref().map_or_else(|| turn.task.id.to_string(), ToString::to_string).into());
    let metadata = turn.message.metadata.as_ref().map(lineage::passed_on);
    let message = Message { task_id: task, context_id: context, metadata, ..Message::clone(&turn.message) };
    SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration: SendConfiguration {
            // Without a stream the agent is asked how far it is, so that it can be stopped meanwhile.
            return_immediately: !spoken.streams && spoken.version != Version::Original,
            ..SendConfiguration::default()
        },
        metadata: match spoken.version {
            Version::Original => Some(original::told(lineage::told(turn).as_ref(), &spoken.skill, turn.trace)),
            _ => lineage::told(turn),
        },
        client_task_id,
        unknown: turn.unknown.clone(),
    }
}

/// A reply that holds a task or a message.
pub(super) fn whole(reply: Result<Reply, ClientError>) -> Result<Answer, ClientError> {
    match reply? {
        Reply::Sent(SentReply::Task(shown)) | Reply::Task(shown) => Ok(Answer::Whole(TaskEvent::Created(shown.task))),
        Reply::Sent(SentReply::Message(message)) => Ok(Answer::Whole(TaskEvent::Replied(message))),
        _ => Err(ClientError::NotUnderstood("it answered something that was not asked for".to_owned())),
    }
}
