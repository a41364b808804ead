//! The contract of an agent that runs inside this process.

use std::sync::Arc;

use async_trait::async_trait;
use chancery_protocol::{Caller, Error, Message, Metadata, SendConfiguration, SendMessage, Task, TraceId, Unknown};
use chancery_rules::routing::PeerSnapshot;
use tokio_util::sync::CancellationToken;

use crate::Link;
use crate::delegate::Delegation;
use crate::recall::MemoryRecall;
use crate::sink::{Finished, TaskUpdateSink};

/// An agent: the code that works on the turns of its tasks.
///
/// A turn begins with a message of the caller. It ends when the agent is done or needs the caller again. Only
/// [`run`](Self::run) must be implemented.
#[async_trait]
pub trait TaskRunner: Send + Sync + 'static {
    /// Works on one turn, and ends it with a method of the sink.
    ///
    /// Ending methods such as [`TaskUpdateSink::complete`] consume the sink, so a turn ends exactly once and nothing
    /// can follow. An error fails the task, with the error as its reason.
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError>;

    /// Decides about a task whose turn was running when the process ended. The default fails the task.
    fn after_restart(&self) -> AfterRestart {
        AfterRestart::Fail
    }

    /// Returns whether turns need the links of their task and of their context.
    ///
    /// A link is what a runner stored about a task at a remote agent ([`TaskUpdateSink::link`]). The default is `false`.
    fn keeps_links(&self) -> bool {
        false
    }

    /// Chooses the replica that does the work, before the caller's policy is evaluated.
    ///
    /// A runner with one place for its work returns `None`, the default. A runner that has no usable replica returns
    /// an error, which rejects the call.
    fn select(&self, _asked: &SelectorQuery<'_>) -> Result<Option<Arc<str>>, Error> {
        Ok(None)
    }

    /// Returns the replicas that [`select`](Self::select) can choose from now. A runner that does the work in this
    /// process returns `None`, the default.
    fn peers(&self, _asked: &SelectorQuery<'_>) -> Option<Vec<PeerSnapshot>> {
        None
    }

    /// Returns where the chosen replica receives lineage (`header` or `metadata`), for `chancery explain`. A runner that
    /// calls no remote agent returns `None`, the default.
    fn lineage_by(&self, _selected: Option<&str>) -> Option<&'static str> {
        None
    }

    /// Returns whether a turn may end with [`TaskUpdateSink::reply`], a message instead of a task.
    ///
    /// Streams of such an agent show nothing before its first update. The default is `false`.
    fn may_reply_with_message(&self) -> bool {
        false
    }
}

/// What the node does with a task whose turn a restart interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRestart {
    /// The task fails, with the restart as its reason.
    Fail,
    /// The last turn runs again, with `Turn::resumed` set.
    Resume,
}

/// How the caller of a turn wants its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// One answer, once the turn is over.
    #[default]
    Blocking,
    /// One answer at once. The caller reads the task later.
    Immediate,
    /// Every event as it comes: over a stream, or to a webhook.
    Stream,
}

impl ReplyMode {
    /// The mode of a send that is not a stream.
    pub(crate) fn of_send(configuration: &SendConfiguration) -> Self {
        if configuration.task_push_notification_config.is_some() {
            Self::Stream
        } else if configuration.return_immediately {
            Self::Immediate
        } else {
            Self::Blocking
        }
    }
}

/// The call that a runner chooses a replica for.
#[derive(Clone, Copy, Debug)]
pub struct SelectorQuery<'a> {
    /// The message of the call.
    pub message: &'a Message,
    /// The skill that the call names.
    pub skill: Option<&'a str>,
    /// The tokens that the caller expects the call to cost.
    pub estimated_tokens: Option<u64>,
}

/// The input of one turn of a runner.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The task before this turn, with its whole history.
    pub task: Arc<Task>,
    /// The caller's message that began the turn.
    pub message: Arc<Message>,
    /// The metadata of the request, beside the message.
    pub metadata: Option<Metadata>,
    /// Members of the request that no version of the protocol has.
    pub unknown: Unknown<SendMessage>,
    /// The caller who owns the task.
    pub caller: Caller,
    /// Fires when the task is cancelled. The node drops a runner that ignores it for `limits.cancel_grace_ms`.
    pub cancelled: CancellationToken,
    /// Whether this turn ran before and a restart interrupted it.
    pub resumed: bool,
    /// The stored link of the task, for a runner that [`keeps_links`](TaskRunner::keeps_links).
    pub link: Option<Link>,
    /// The stored link of the last task in the same context, for the same runners.
    pub context_link: Option<Link>,
    /// The trace of the call that began the turn.
    pub trace: TraceId,
    /// The `tracestate` header of that call.
    pub tracestate: Option<Arc<str>>,
    /// The protocol extensions that the call asked for.
    pub extensions: Vec<String>,
    /// How the caller wants its answer, for runners that call a remote agent.
    pub reply_mode: ReplyMode,
    /// The replica that [`select`](TaskRunner::select) chose.
    pub selected: Option<Arc<str>>,
    /// Calls other agents for the task, under its lineage and from its budget.
    pub delegation: Delegation,
    /// Reads memory by reference. `None` if the node has no memory tier.
    pub memory: Option<MemoryRecall>,
}

/// An error that ends a turn. The task fails with it as the reason, which its caller can read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct RunError {
    /// The reason that the task fails with.
    pub reason: String,
    /// The message was not taken, and there is no task to speak of.
    pub(crate) refusal: Option<Box<Error>>,
    /// No agent has begun to work on it, so it cost nothing.
    pub(crate) not_begun: bool,
    /// What an operator is shown of an answer that could not be read.
    pub(crate) facts: Vec<(&'static str, String)>,
}

/// A failed call that a runner makes for its task fails the task, with the same message.
impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        Self::new(error.message.into_owned())
    }
}

impl RunError {
    /// Makes an error that fails the task. The turn costs what is known of it.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), refusal: None, not_begun: false, facts: Vec::new() }
    }

    /// Makes an error that rejects the message which would have opened a task.
    ///
    /// The caller gets `error`, and the node keeps nothing of the task. After an update of the task, or for a message that
    /// continues a task, the task fails instead.
    pub fn refused(error: Error) -> Self {
        Self { reason: error.message.clone().into_owned(), refusal: Some(Box::new(error)), not_begun: true, facts: Vec::new() }
    }

    /// Adds a fact that `chancery explain` shows, and the caller does not see.
    #[must_use]
    pub fn with_fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    /// Makes an error for work that no agent began. The task fails and costs nothing.
    pub fn not_begun(reason: impl Into<String>) -> Self {
        Self { not_begun: true, ..Self::new(reason) }
    }
}
