//! What is known when a call is put in its place.

use std::sync::Arc;

use chancery_protocol::{ContextId, TaskId, TraceId};

use super::agent_ids::AgentIdIndex;
use super::attribution::TokenCheck;
use super::config::Unattributed;
use super::context::{ClaimedContext, TaskContext};
use super::path::AgentRef;
use crate::MicroUsd;

/// Everything [`super::attribute`] looks at.
#[derive(Clone, Debug)]
pub struct LineageFacts<'a> {
    pub tenant: &'a str,
    /// The caller, by the name of the agent it is if it is one. A caller that is no agent has a name that no agent has.
    pub caller: AgentRef,
    /// Whether the caller is an agent this node knows, by its credentials or by the address it calls at.
    pub known_agent: bool,
    /// The agent that is called.
    pub target: &'a AgentRef,
    pub token: PresentedToken,
    /// The task that this node's own mark in the trace names.
    pub mark: TraceMark,
    /// Tasks that were dispatched to the caller here by its own tenant and have not ended.
    pub open: &'a [OpenTask],
    /// Open tasks of the tree whose trace came with the call. Only for trees whose trace this node made. The tasks of the agent that
    /// is called are left out, unless there are no others.
    pub tree: &'a [OpenTask],
    /// Open tasks that the message names as their agent does, in a word that is no name of this node: only that agent knows it, and
    /// those it called in the same context.
    pub named: &'a [OpenTask],
    /// Like `tree`, for the trace that the call claims.
    pub claimed_tree: &'a [OpenTask],
    /// The last task of the caller, where it ended a moment ago.
    pub ended: Option<&'a OpenTask>,
    /// What the call says of its own place.
    pub claimed: Option<&'a ClaimedContext>,
    /// By which a claim may name agents of this node.
    pub agent_ids: &'a AgentIdIndex,
    pub context_id: Option<&'a ContextId>,
    pub reference_task_ids: &'a [TaskId],
    /// The trace the caller's `traceparent` named.
    pub traceparent: Option<TraceId>,
    pub unattributed: Unattributed,
    /// The trace of the tree if the call starts one.
    pub new_trace: TraceId,
}

/// The hop token of a call, after its form and signature were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PresentedToken {
    #[default]
    Nothing,
    /// Issued by another node, so it proves nothing here.
    Foreign,
    Faulty(TokenCheck),
    Good(Box<TokenClaims>, Box<Parent>),
}

/// The mark of this node in the trace of a call, after its lookup. Its holder received it with a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TraceMark {
    #[default]
    Nothing,
    Open(OpenTask),
    /// The task ended a moment ago.
    Ended(OpenTask),
}

/// What a good token says that has to agree with what is known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    /// The tenant of the task.
    pub tenant: Arc<str>,
    /// The task at the root of the tree.
    pub root_task: TaskId,
    /// The task that the token was made for.
    pub parent_task: TaskId,
    /// The trace of the tree.
    pub trace_id: TraceId,
    /// The depth of the task in its tree.
    pub depth: u32,
    /// The agent the task was given to.
    pub audience: AgentRef,
}

/// The task a token names, in the records of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parent {
    Unknown,
    Closed,
    /// It ended a moment ago, and was not cancelled.
    Ended(OpenTask),
    Open(OpenTask),
}

/// A task some agent works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTask {
    pub id: TaskId,
    /// The task at the root of its tree; its own id for a root.
    pub root: TaskId,
    /// The agent it was given to.
    pub holder: AgentRef,
    /// Of the call that made it, with the agents that still hold an ancestor.
    pub context: TaskContext,
    pub context_id: ContextId,
    /// What the agent calls the task, where it is not our name for it.
    pub remote_id: Option<TaskId>,
    pub remote_context_id: Option<ContextId>,
    /// What its subtree may still take.
    pub remaining: Allowance,
}

/// What may still be spent; no number means no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    pub usd: Option<MicroUsd>,
    pub tokens: Option<u64>,
}

impl Allowance {
    /// What both allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { usd: least(self.usd, other.usd), tokens: least(self.tokens, other.tokens) }
    }
}

fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
