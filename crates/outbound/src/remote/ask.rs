//! Sends a caller's message to a remote agent, once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Link, ReplyMode, RunError, SinkClosed, TaskUpdateSink};
use chancery_protocol::{
    CancelTask, ContextId, Error, ErrorKind, GetTask, Message, Reply, Request, SendConfiguration, SendMessage, Sent as SentReply,
    TaskEvent, TaskId, Version,
};

use super::limits::FollowLimits;
use super::mode::{AnswerHabits, CallMode, call_mode};
use super::replica::{Replica, ReplicaClient};
use super::{RemoteTurn, lineage, original, search, stop};
use crate::client::{CallConditions, ClientError, EventStream, NotUnderstood, Transport, WasSent};

/// How long an agent that was asked to answer at once may take before its caller is shown a task all the same.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What the agent answered with.
#[derive(Debug)]
pub(super) enum AgentAnswer {
    /// It says the rest as it comes.
    Stream(Box<EventStream>),
    /// A picture of the task, or a message.
    Whole(TaskEvent),
}

#[derive(Debug)]
pub(super) enum AskOutcome {
    Answered(ReplicaClient, CallMode, AgentAnswer),
    /// The agent cannot have seen the message.
    NotSeen(String),
    /// The same, for a reason that is ours and not the agent's.
    NotPut(String),
    /// It has, and does not want it.
    Refused(RunError),
    /// It may have, or it is the agent's fault.
    Lost(RunError),
}

/// The message of a turn on its way to one replica.
pub(super) struct MessageDelivery<'a> {
    pub(super) replica: &'a Replica,
    pub(super) remote: &'a mut RemoteTurn,
    pub(super) updates: &'a mut TaskUpdateSink,
    pub(super) limits: FollowLimits,
    /// The agent refused a stream of this very message and did nothing.
    pub(super) never_stream: bool,
    /// The agent refused the context id that the gateway added.
    pub(super) no_context: bool,
}

impl MessageDelivery<'_> {
    pub(super) async fn put(mut self, mut replica_client: ReplicaClient) -> AskOutcome {
        let mut is_first = true;
        // Why the agent did not stream, until a unary call shows that it was that and nothing else.
        let mut no_stream = None;
        loop {
            let mode = self.mode(&replica_client);
            let error = match self.call(&replica_client, mode).await {
                Ok(answer) => {
                    if !is_first {
                        self.replica.notes().speaks(replica_client.version);
                    }
                    if let Some(reason) = no_stream {
                        self.replica.notes().prefer(false, reason);
                    }
                    return AskOutcome::Answered(replica_client, mode, answer);
                }
                Err(AskFault::Stopped(reason)) => return AskOutcome::Lost(RunError::new(reason)),
                Err(AskFault::Client(error)) => error,
            };
            if mode == CallMode::Stream && error.is_no_streaming() {
                // It refused the way of asking, and did nothing.
                no_stream = Some(format!("it refused a stream: {error}"));
                self.never_stream = true;
                continue;
            }
            if is_of_other_version(&error)
                && let Some(other) = self.replica.next_version(&replica_client)
            {
                tracing::info!(peer = self.replica.name(), url = self.replica.address().url, from = %replica_client.version, to = %other.version, "the agent does not support an A2A version; the node tries another");
                (is_first, no_stream, self.never_stream) = (false, None, false);
                replica_client = other;
                continue;
            }
            if self.context_may_be_unwanted(&replica_client, mode, &error) {
                tracing::info!(peer = self.replica.name(), url = self.replica.address().url, %error, "the agent refused a message; the node sends it without a context id");
                self.no_context = true;
                continue;
            }
            return self.failed(&replica_client, mode, error);
        }
    }

    /// Some agents refuse a context that they did not begin. The caller named none that the agent could know, and a message
    /// that was refused as wrong was not worked on.
    fn context_may_be_unwanted(&self, replica_client: &ReplicaClient, mode: CallMode, error: &ClientError) -> bool {
        let ClientError::Refused(refusal) = error else { return false };
        let speaks_of_it = refusal.message.to_ascii_lowercase().contains("context") || refusal.kind == ErrorKind::TaskNotFound;
        let gave_one = self.given_context(replica_client, mode).is_some() && self.remote.mirror.names().1.is_none();
        gave_one && speaks_of_it && matches!(refusal.kind, ErrorKind::InvalidParams | ErrorKind::TaskNotFound)
    }

    /// The context id that a call gets which is not answered yet, to be found again by.
    fn given_context(&self, replica_client: &ReplicaClient, mode: CallMode) -> Option<ContextId> {
        let is_given = replica_client.version == Version::V1_0 && mode != CallMode::Stream && !self.no_context;
        is_given.then(|| search::given_context(&self.remote.turn))
    }

    fn mode(&self, replica_client: &ReplicaClient) -> CallMode {
        let habits = AnswerHabits {
            streams: replica_client.streams && !self.never_stream,
            only_streams: replica_client.only_streams,
            setting: if self.never_stream { super::StreamMode::Never } else { self.replica.settings().stream },
            prefers_streams: self.replica.notes().prefers_streams(),
        };
        match call_mode(self.remote.turn.reply_mode, habits) {
            // In the original protocol an answer comes when the agent is done, whatever it is asked for.
            CallMode::Immediate if replica_client.version == Version::Original => CallMode::Blocking,
            mode => mode,
        }
    }

    async fn call(&mut self, replica_client: &ReplicaClient, mode: CallMode) -> Result<AgentAnswer, AskFault> {
        let waits = self.remote.turn.reply_mode == ReplyMode::Blocking;
        if replica_client.version == Version::Original && mode != CallMode::Stream && !waits {
            // It answers only when it is done, and always with the task: nobody has to wait to learn that there is one.
            self.updates.working(None).await?;
        }
        let send = self.message(replica_client, mode);
        let conditions = self.replica.conditions(&self.remote.turn, replica_client);
        // What is asked about the task later has the token in its header, because it may be a newer one.
        let hop_token = conditions.hop_token.clone().filter(|_| replica_client.lineage.token_in_header);
        let sending = CallConditions { hop_token, ..conditions.clone() };
        if mode == CallMode::Stream {
            let stream = replica_client.client.stream(&Request::StreamMessage(send), &sending).await?;
            return Ok(AgentAnswer::Stream(Box::new(stream)));
        }
        let deadline = self.replica.settings().timeout.unwrap_or_else(|| self.limits.answer());
        let patient = CallConditions { deadline: Some(deadline), ..sending };
        if let Some(context) = &send.message.context_id {
            // The agent may call on while it works, and names this context then.
            // A follow-up keeps the name of its task: a cancel finds it by that.
            let (peer, task) = (Arc::clone(&self.replica.address().name), self.remote.mirror.names().0);
            let link = Link { peer, task, context: Some(context.clone()) };
            self.updates.expect_link(&link);
        }
        let waiting =
            Waiting { replica_client, conditions: &conditions, named: send.client_task_id.as_deref().map(TaskId::from), mode };
        let client = replica_client.client.clone();
        let answer = Box::pin(async move { client.call(&Request::SendMessage(send), &patient).await });
        Ok(whole(Ok(Box::pin(self.waiting(waiting, answer)).await?))?)
    }

    /// Waits for the one answer. Meanwhile it sends a cancel to the agent if the task is cancelled, as soon
    /// as the agent's id of the task is known.
    async fn waiting(&mut self, waiting: Waiting<'_>, mut answer: PendingReply) -> Result<Reply, AskFault> {
        let mut overdue = waiting.mode == CallMode::Immediate;
        loop {
            let cancelled = self.remote.turn.cancelled.clone();
            tokio::select! {
                answered = &mut answer => return Ok(self.or_look(answered, &waiting).await?),
                () = tokio::time::sleep(AT_ONCE), if overdue => {
                    // It does not answer at once. Its caller does not wait for it: there is a task.
                    overdue = false;
                    self.updates.working(None).await?;
                    self.remote.begun = true;
                }
                () = cancelled.cancelled() => {
                    let Some(id) = self.task_of(&waiting).await else {
                        stop::when_named(self.replica, waiting.replica_client.client.clone(), waiting.conditions.clone(), answer);
                        let reason = "the gateway stopped waiting; the agent has not named its task and may still work on it";
                        return Err(AskFault::Stopped(reason.to_owned()));
                    };
                    match self.cancel(&waiting, id).await {
                        stop::CancelAnswer::Refused(error) => match self.updates.refuse_cancel(error) {
                            Some(token) => self.remote.turn.cancelled = token,
                            None => return Ok(answer.await?),
                        },
                        stop::CancelAnswer::Task(reply) => {
                            self.updates.answer_cancel();
                            return Ok(reply);
                        }
                        stop::CancelAnswer::Unknown => return Ok(answer.await?),
                    }
                }
            }
        }
    }

    /// The name of the task at the agent: the one that it was given, or the one it lists.
    async fn task_of(&self, waiting: &Waiting<'_>) -> Option<TaskId> {
        if waiting.named.is_some() {
            return waiting.named.clone();
        }
        let context = self.remote.mirror.names().1.unwrap_or_else(|| search::given_context(&self.remote.turn));
        search::find_task(self.replica, waiting.replica_client, waiting.conditions, &self.remote.turn, context).await
    }

    async fn cancel(&self, waiting: &Waiting<'_>, id: TaskId) -> stop::CancelAnswer {
        let cancel = Request::CancelTask(CancelTask { tenant: None, id, metadata: None });
        let mut last = stop::CancelAnswer::Unknown;
        // The message may still be under way, and then the agent does not know yet what it is to stop.
        for pause in [50, 100, 200, 400, 800].map(Duration::from_millis) {
            last = stop::cancel_at(waiting.replica_client, &cancel, waiting.conditions, self.replica).await;
            if !matches!(last, stop::CancelAnswer::Unknown) {
                return last;
            }
            tokio::time::sleep(pause).await;
        }
        last
    }

    /// An agent that works longer than an answer may take, or whose connection broke, may go on with the task: it is looked for.
    async fn or_look(&self, answer: Result<Reply, ClientError>, waiting: &Waiting<'_>) -> Result<Reply, ClientError> {
        let lost = match answer {
            Err(lost @ ClientError::Transport(Transport::OutOfTime { sent: WasSent::Maybe } | Transport::Cut(_))) => lost,
            answer => return answer,
        };
        let Some(id) = self.task_of(waiting).await else { return Err(lost) };
        let get = Request::GetTask(GetTask { tenant: None, id, history_length: None });
        waiting.replica_client.client.call(&get, waiting.conditions).await.map_err(|_| lost)
    }

    /// The caller's message under the names the agent knows.
    fn message(&self, replica_client: &ReplicaClient, mode: CallMode) -> SendMessage {
        let RemoteTurn { turn, mirror, .. } = &*self.remote;
        let (task, context) = mirror.names();
        let given = self.given_context(replica_client, mode);
        // In the original protocol the client names the task, so a first message brings a name.
        let client_task_id = (replica_client.version == Version::Original)
            .then(|| task.as_ref().map_or_else(|| turn.task.id.to_string(), ToString::to_string).into());
        let metadata = turn.message.metadata.as_ref().map(lineage::passed_on);
        let message = Message { task_id: task, context_id: context.or(given), metadata, ..Message::clone(&turn.message) };
        SendMessage {
            tenant: None,
            message: Arc::new(message),
            configuration: SendConfiguration { return_immediately: mode == CallMode::Immediate, ..SendConfiguration::default() },
            metadata: lineage::told(turn, replica_client.lineage, |told| match replica_client.version {
                Version::Original => Some(original::told(told.as_ref(), &replica_client.skill, turn.trace)),
                _ => told,
            }),
            client_task_id,
            unknown: turn.unknown.clone(),
        }
    }

    fn failed(&self, replica_client: &ReplicaClient, mode: CallMode, error: ClientError) -> AskOutcome {
        let (peer, url) = (self.replica.name(), &replica_client.client.interface().url);
        tracing::warn!(peer, url, %error, "the agent did not accept a message");
        if let (ClientError::NotUnderstood(_), CallMode::Blocking | CallMode::Immediate, true) =
            (&error, mode, replica_client.streams)
        {
            self.replica.notes().prefer(true, format!("its one answer could not be read: {error}"));
        }
        match error {
            ClientError::Refused(refusal) if is_about_the_agent(refusal.kind) => AskOutcome::Lost(refused(refusal)),
            ClientError::Refused(refusal) => AskOutcome::Refused(refused(refusal)),
            error if error.is_ours() => AskOutcome::NotPut(error.public().message.into_owned()),
            error if error.sent() == WasSent::No => AskOutcome::NotSeen(error.public().message.into_owned()),
            error => AskOutcome::Lost(failed_call(&error, url)),
        }
    }
}

type PendingReply = Pin<Box<dyn Future<Output = Result<Reply, ClientError>> + Send>>;

/// A blocking call that has not been answered.
struct Waiting<'a> {
    replica_client: &'a ReplicaClient,
    conditions: &'a CallConditions,
    /// The name that the task was given, in the original protocol.
    named: Option<TaskId>,
    mode: CallMode,
}

/// Why a call has no answer.
enum AskFault {
    Client(ClientError),
    /// The wait was given up here. The agent may have the message.
    Stopped(String),
}

impl From<ClientError> for AskFault {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<SinkClosed> for AskFault {
    fn from(closed: SinkClosed) -> Self {
        Self::Stopped(closed.to_string())
    }
}

/// Whether an agent says that it does not know the method or the version: then it did nothing, and may know another.
fn is_of_other_version(error: &ClientError) -> bool {
    let ClientError::Refused(error) = error else { return false };
    matches!(error.kind, ErrorKind::MethodNotFound | ErrorKind::VersionNotSupported)
}

/// An agent's refusal of a message. A fault of the message, or a demand on its sender, goes to the caller, as
/// if the agent were local. A fault of this node, its credentials or its version, does not.
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

/// Why a call failed. `explain` gets the shape of an answer that could not be read.
pub(super) fn failed_call(error: &ClientError, url: &str) -> RunError {
    let failed = RunError::new(error.public().message);
    match error {
        ClientError::NotUnderstood(NotUnderstood { at: Some(at), .. }) => {
            failed.with_fact("url", url.to_owned()).with_fact("member", at.path.clone()).with_fact("shape", at.shape.clone())
        }
        _ => failed,
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

/// A reply that holds a task or a message.
pub(super) fn whole(reply: Result<Reply, ClientError>) -> Result<AgentAnswer, ClientError> {
    match reply? {
        Reply::Sent(SentReply::Task(shown)) | Reply::Task(shown) => Ok(AgentAnswer::Whole(TaskEvent::Created(shown.task))),
        Reply::Sent(SentReply::Message(message)) => Ok(AgentAnswer::Whole(TaskEvent::Replied(message))),
        _ => Err(ClientError::not_understood("it answered something that was not asked for".to_owned())),
    }
}
