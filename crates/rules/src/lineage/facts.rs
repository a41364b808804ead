//! What is known when a call is put in its place.

use std::sync::Arc;

use chancery_protocol::{ContextId, TaskId, TraceId};

use super::attribute::TokenCheck;
use super::config::Unattributed;
use super::context::TaskContext;
use super::path::AgentRef;
use crate::MicroUsd;

/// Everything [`super::attribute`] looks at.
#[derive(Clone, Debug)]
pub struct LineageFacts<'a> {
    pub tenant: &'a str,
    /// The authenticated caller, by the name of the agent it is if it is one.
    pub caller: AgentRef,
    /// Whether the caller is an agent this node knows.
    pub known_agent: bool,
    pub token: Presented,
    /// Tasks that were dispatched to the caller here by its own tenant and have not ended.
    pub open: &'a [OpenTask],
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
pub enum Presented {
    #[default]
    Nothing,
    /// Issued by somebody else, so it says nothing here.
    Foreign,
    Faulty(TokenCheck),
    Good(Box<TokenClaims>, Box<Parent>),
}

/// What a good token says that has to agree with what is known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    pub tenant: Arc<str>,
    pub root_task: TaskId,
    pub parent_task: TaskId,
    pub trace_id: TraceId,
    pub depth: u32,
    /// The agent the task was given to.
    pub audience: AgentRef,
}

/// The task a token names, in the records of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parent {
    Unknown,
    Closed,
    Open(OpenTask),
}

/// A task some agent works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTask {
    pub id: TaskId,
    /// The task at the root of its tree; its own id for a root.
    pub root: TaskId,
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
