//! Puts a call in its place: by proof, by what it can only be, or by the narrowest of what it could be.

use std::fmt;

use chancery_protocol::{ErrorKind, TaskId};

use super::config::Unattributed;
use super::context::TaskContext;
use super::facts::{Allowance, LineageFacts, OpenTask, Parent, Presented, TokenClaims};
use super::path::outsider;

/// How sure the place of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// By a token of ours.
    Verified,
    /// The only task it can come from: a bound, not a fact.
    Inferred,
    /// One of several, bound by all of them.
    Ambiguous,
    /// It comes from no task here.
    Root,
}

impl Attribution {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Inferred => "inferred",
            Self::Ambiguous => "ambiguous",
            Self::Root => "root",
        }
    }
}

impl fmt::Display for Attribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The place of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    pub attribution: Attribution,
    /// Of the call. If ambiguous, its parent and trace are those of the deepest candidate.
    pub context: TaskContext,
    /// The root of its tree; none if it starts one.
    pub root_task: Option<TaskId>,
    /// What the call may take at most: no more than any candidate has left.
    pub remaining: Allowance,
    /// The tasks it may come from: none for a root, several if ambiguous, the parent that stands in the context first.
    pub candidates: Vec<OpenTask>,
}

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenCheck {
    Malformed,
    TooLarge,
    UnknownKey,
    Signature,
    Expired,
    NotYetValid,
    Tenant,
    Audience,
    UnknownParent,
    ClosedParent,
    /// Root, trace or depth are not those of the task it names.
    Parent,
}

impl TokenCheck {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::Tenant => "tenant",
            Self::Audience => "audience",
            Self::UnknownParent => "unknown_parent",
            Self::ClosedParent => "closed_parent",
            Self::Parent => "parent",
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Malformed => "it is not a hop token",
            Self::TooLarge => "it is too large",
            Self::UnknownKey => "its key is not one of ours",
            Self::Signature => "its signature is wrong",
            Self::Expired => "it has expired",
            Self::NotYetValid => "it is not valid yet",
            Self::Tenant => "it is of another tenant",
            Self::Audience => "it was given to another agent",
            Self::UnknownParent => "it names no task known here",
            Self::ClosedParent => "the task it names has ended",
            Self::Parent => "it does not agree with the task it names",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineageError {
    /// A token that does not hold is worse than none: somebody made, stole or kept it.
    Invalid(TokenCheck),
    /// An agent called without a token where one is asked for.
    Required,
}

impl LineageError {
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::LineageInvalid,
            Self::Required => ErrorKind::LineageRequired,
        }
    }
}

impl fmt::Display for LineageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(check) => write!(f, "the hop token does not hold: {}", check.told()),
            Self::Required => f.write_str("an agent has to send the hop token of the task it works on"),
        }
    }
}

impl std::error::Error for LineageError {}

/// The place of a call, or why it has none. Nothing a caller says without proof makes it shallower, shorter or richer than
/// every task it may come from.
pub fn attribute(facts: &LineageFacts<'_>) -> Result<Lineage, LineageError> {
    match &facts.token {
        Presented::Faulty(check) => return Err(LineageError::Invalid(*check)),
        Presented::Good(claims, parent) => return verified(facts, claims, parent).map_err(LineageError::Invalid),
        Presented::Nothing | Presented::Foreign => {}
    }
    match facts.unattributed {
        Unattributed::Deny if facts.known_agent || !facts.open.is_empty() => return Err(LineageError::Required),
        Unattributed::Deny | Unattributed::Root => return Ok(root(facts)),
        Unattributed::Infer => {}
    }
    let mut candidates = narrowed(facts);
    // The deepest first, and of those the poorest: whoever reads only one parent reads the strictest.
    candidates.sort_by_cached_key(|task| strictness(task));
    let Some((parent, others)) = candidates.split_first() else { return Ok(root(facts)) };
    let attribution = if others.is_empty() { Attribution::Inferred } else { Attribution::Ambiguous };
    let remaining = others.iter().fold(parent.remaining, |remaining, task| remaining.and(task.remaining));
    let mut above = parent.context.clone();
    if !others.is_empty() {
        above.visited_agents = above.visited_agents.with_all_of(others.iter().map(|task| &task.context.visited_agents));
    }
    Ok(Lineage {
        attribution,
        context: above.child(parent.id.clone(), facts.caller.clone()),
        root_task: Some(parent.root.clone()),
        remaining,
        candidates: candidates.into_iter().cloned().collect(),
    })
}

fn verified(facts: &LineageFacts<'_>, claims: &TokenClaims, parent: &Parent) -> Result<Lineage, TokenCheck> {
    if *claims.tenant != *facts.tenant {
        return Err(TokenCheck::Tenant);
    }
    if claims.audience != facts.caller {
        return Err(TokenCheck::Audience);
    }
    let parent = match parent {
        Parent::Unknown => return Err(TokenCheck::UnknownParent),
        Parent::Closed => return Err(TokenCheck::ClosedParent),
        Parent::Open(parent) => parent,
    };
    let own = (&parent.id, &parent.root, parent.context.trace_id, parent.context.depth);
    if own != (&claims.parent_task, &claims.root_task, claims.trace_id, claims.depth) {
        return Err(TokenCheck::Parent);
    }
    Ok(Lineage {
        attribution: Attribution::Verified,
        context: parent.context.child(parent.id.clone(), facts.caller.clone()),
        root_task: Some(parent.root.clone()),
        remaining: parent.remaining,
        candidates: vec![parent.clone()],
    })
}

fn root(facts: &LineageFacts<'_>) -> Lineage {
    let caller = if facts.known_agent { facts.caller.clone() } else { outsider(&facts.caller) };
    Lineage {
        attribution: Attribution::Root,
        context: TaskContext::root(facts.new_trace, caller),
        root_task: None,
        remaining: Allowance::default(),
        candidates: Vec::new(),
    }
}

/// The open tasks the call may come from. A hint that fits none of them says nothing.
fn narrowed<'a>(facts: &LineageFacts<'a>) -> Vec<&'a OpenTask> {
    let mut candidates: Vec<&OpenTask> = facts.open.iter().collect();
    let mut keep = |fits: &dyn Fn(&OpenTask) -> bool| {
        if candidates.len() > 1 && candidates.iter().any(|task| fits(task)) {
            candidates.retain(|task| fits(task));
        }
    };
    if let Some(id) = facts.context_id {
        keep(&|task| task.context_id == *id || task.remote_context_id.as_ref() == Some(id));
    }
    let names = |task: &OpenTask, id: &TaskId| task.id == *id || task.remote_id.as_ref() == Some(id);
    keep(&|task| facts.reference_task_ids.iter().any(|id| names(task, id)));
    if let Some(trace) = facts.traceparent {
        keep(&|task| task.context.trace_id == trace);
    }
    candidates
}

/// Orders the strictest before the rest, and the same tasks always in the same way.
fn strictness(task: &OpenTask) -> impl Ord {
    let capped = |number: Option<i128>| number.unwrap_or(i128::MAX);
    let usd = capped(task.remaining.usd.map(|usd| usd.0.into()));
    let tokens = capped(task.remaining.tokens.map(Into::into));
    (std::cmp::Reverse(task.context.depth), usd, tokens, task.id.clone())
}
