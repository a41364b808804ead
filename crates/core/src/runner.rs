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

/// An agent. One call of `run` is one turn: from a message of the caller to the point where the agent is done or
/// needs the caller again. The sink's ending methods consume it, so a turn ends exactly once and nothing can follow.
#[async_trait]
pub trait TaskRunner: Send + Sync + 'static {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError>;

    /// What happens to a task that was being worked on when the process ended.
    fn after_restart(&self) -> AfterRestart {
        AfterRestart::Fail
    }

    /// Whether it calls remote agents and has to find their tasks again: then its turns come with the links
    /// of their task and of their context.
    fn keeps_links(&self) -> bool {
        false
    }

    /// Chooses the replica for the work, for a runner that has a choice, before the caller's policy is
    /// evaluated. A runner without a choice returns nothing; one without a usable replica refuses.
    fn select(&self, _asked: &SelectorQuery<'_>) -> Result<Option<Arc<str>>, Error> {
        Ok(None)
    }

    /// The agents that `select` can choose from now, for a runner of remote agents. A runner that does the
    /// work in this process answers `None`.
    fn peers(&self, _asked: &SelectorQuery<'_>) -> Option<Vec<PeerSnapshot>> {
        None
    }

    /// Where the chosen agent receives the lineage of its tasks, in a word, for a runner that calls remote
    /// agents.
    fn lineage_by(&self, _selected: Option<&str>) -> Option<&'static str> {
        None
    }

    /// Whether a turn may end with a message instead of a task. Streams of such an agent wait for its first word
    /// before they show a task.
    fn may_reply_with_message(&self) -> bool {
        false
    }
}

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
    /// One answer at once; the caller looks at the task later.
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

/// What a runner may know of a call when it chooses who is to do the work.
#[derive(Clone, Copy, Debug)]
pub struct SelectorQuery<'a> {
    pub message: &'a Message,
    pub skill: Option<&'a str>,
    pub estimated_tokens: Option<u64>,
}

/// What a runner gets to work with.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The task before this turn, with its whole history.
    pub task: Arc<Task>,
    /// What the caller said.
    pub message: Arc<Message>,
    /// What came beside the message.
    pub metadata: Option<Metadata>,
    /// What came there that no version of the protocol has.
    pub unknown: Unknown<SendMessage>,
    pub caller: Caller,
    /// Fires when the task is cancelled. A runner that does not listen is dropped after a grace period.
    pub cancelled: CancellationToken,
    /// This turn ran before and was cut short by a restart.
    pub resumed: bool,
    /// With whom the task goes on, for runners that keep links.
    pub link: Option<Link>,
    /// With whom the last task of the same conversation went on, for the same.
    pub context_link: Option<Link>,
    /// The trace of the call that began the turn.
    pub trace: TraceId,
    /// What other systems keep beside it.
    pub tracestate: Option<Arc<str>>,
    /// The protocol extensions that call asked for.
    pub extensions: Vec<String>,
    /// The caller's mode of answer, for runners that call a remote agent.
    pub reply_mode: ReplyMode,
    /// Who was chosen to do the work, where `select` chose.
    pub selected: Option<Arc<str>>,
    /// Calls other agents on behalf of the task.
    pub delegation: Delegation,
    /// Looks at memory that came by reference, where the node has a tier.
    pub memory: Option<MemoryRecall>,
}

/// A turn that could not be finished. The task fails with this as its reason, which its caller can read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct RunError {
    pub reason: String,
    /// The message was not taken, and there is no task to speak of.
    pub(crate) refusal: Option<Box<Error>>,
    /// No agent has begun to work on it, so it cost nothing.
    pub(crate) not_begun: bool,
    /// What an operator is shown of an answer that could not be read.
    pub(crate) facts: Vec<(&'static str, String)>,
}

impl RunError {
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), refusal: None, not_begun: false, facts: Vec::new() }
    }

    /// The agent does not take the message that would have opened a task, and did nothing. The caller gets this error, and
    /// nothing is left of the task. Once anything was said about the task, or when it goes on with one, the task fails.
    pub fn refused(error: Error) -> Self {
        Self { reason: error.message.clone().into_owned(), refusal: Some(Box::new(error)), not_begun: true, facts: Vec::new() }
    }

    /// Adds a fact that `chancery explain` shows, and the caller does not see.
    #[must_use]
    pub fn with_fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    /// No agent could take the work: the task fails, and nothing is charged for it.
    pub fn not_begun(reason: impl Into<String>) -> Self {
        Self { not_begun: true, ..Self::new(reason) }
    }
}
