//! Puts a call in its place: by proof, by what it can only be, or by the narrowest of what it could be.

use chancery_protocol::TaskId;

use super::attribution::{Attribution, LineageError, TokenCheck};
use super::config::Unattributed;
use super::context::{ClaimedContext, TaskContext};
use super::facts::{Allowance, LineageFacts, OpenTask, Parent, PresentedToken, TokenClaims, TraceMark};
use super::path::AgentPath;

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

/// The place of a call, or why it has none. Nothing a caller says without proof makes it shallower, shorter or richer than
/// every task it may come from.
///
/// The first of these that applies decides: a hop token; this node's mark in the trace; the open tasks of the
/// calling agent; the trace of a tree; the names an agent has for its open task; a claim; a task that ended a
/// moment ago. Names and claims then tighten the result.
pub fn attribute(facts: &LineageFacts<'_>) -> Result<Lineage, LineageError> {
    match &facts.token {
        PresentedToken::Faulty(check) => return Err(LineageError::Invalid(*check)),
        PresentedToken::Good(claims, parent) => return verified(facts, claims, parent).map_err(LineageError::Invalid),
        PresentedToken::Nothing | PresentedToken::Foreign => {}
    }
    let lineage = match facts.unattributed {
        Unattributed::Deny if (facts.known_agent || !facts.open.is_empty()) && !is_marked(facts) => {
            return Err(LineageError::Required);
        }
        Unattributed::Root => root(facts),
        Unattributed::Infer | Unattributed::Deny => placed(facts),
    };
    let lineage = tightened_by_names(facts, lineage);
    Ok(match (facts.claimed, &facts.token) {
        (Some(claimed), PresentedToken::Foreign) => {
            tightened_by_claim(lineage, &claimed.from_another_node().in_own_names(facts.agent_ids))
        }
        (Some(claimed), _) => tightened_by_claim(lineage, &claimed.in_own_names(facts.agent_ids)),
        (None, _) => lineage,
    })
}

fn verified(facts: &LineageFacts<'_>, claims: &TokenClaims, parent: &Parent) -> Result<Lineage, TokenCheck> {
    if *claims.tenant != *facts.tenant {
        return Err(TokenCheck::Tenant);
    }
    if claims.audience != facts.caller {
        return Err(TokenCheck::Audience);
    }
    let (parent, is_open) = match parent {
        Parent::Unknown => return Err(TokenCheck::UnknownParent),
        Parent::Closed => return Err(TokenCheck::ClosedParent),
        Parent::Ended(parent) => (parent, false),
        Parent::Open(parent) => (parent, true),
    };
    let own = (&parent.id, &parent.root, parent.context.trace_id, parent.context.depth);
    if own != (&claims.parent_task, &claims.root_task, claims.trace_id, claims.depth) {
        return Err(TokenCheck::Parent);
    }
    Ok(if is_open { under(facts, Attribution::Verified, parent) } else { late(facts, parent) })
}

/// Whether the call has this node's mark of an open task of its caller. No other party can make one: it is
/// the part of a hop token that comes back over other nodes.
fn is_marked(facts: &LineageFacts<'_>) -> bool {
    matches!(&facts.mark, TraceMark::Open(task) if task.holder == facts.caller)
}

/// By what came without a token.
fn placed(facts: &LineageFacts<'_>) -> Lineage {
    match &facts.mark {
        TraceMark::Open(task) if !facts.known_agent || task.holder == facts.caller => {
            return under(facts, Attribution::Traced, task);
        }
        // Another agent's task: one more that the call may come from. By itself it proves nothing about this agent.
        TraceMark::Open(task) if facts.open.is_empty() => return under(facts, Attribution::Traced, task),
        TraceMark::Open(task) => {
            let all: Vec<&OpenTask> = facts.open.iter().chain([task]).collect();
            return among(facts, all);
        }
        TraceMark::Ended(task) if facts.open.is_empty() || task.holder == facts.caller => return late(facts, task),
        // An ended task of another agent says less than the open ones of this agent.
        TraceMark::Ended(_) | TraceMark::Nothing => {}
    }
    if !facts.open.is_empty() {
        return among(facts, narrowed(facts));
    }
    if !facts.tree.is_empty() {
        return in_tree(facts, facts.tree);
    }
    if !facts.named.is_empty() {
        return Lineage { attribution: Attribution::Claimed, ..in_tree(facts, facts.named) };
    }
    if !facts.claimed_tree.is_empty() {
        return Lineage { attribution: Attribution::Claimed, ..in_tree(facts, facts.claimed_tree) };
    }
    match facts.ended {
        Some(task) => late(facts, task),
        None => root(facts),
    }
}

/// Under exactly one task.
fn under(facts: &LineageFacts<'_>, attribution: Attribution, task: &OpenTask) -> Lineage {
    let mut context = task.context.child(task.id.clone(), task.holder.clone());
    if facts.known_agent && facts.caller != task.holder {
        context.visited_agents = context.visited_agents.then(facts.caller.clone());
    }
    Lineage {
        attribution,
        context,
        root_task: Some(task.root.clone()),
        remaining: task.remaining,
        candidates: vec![task.clone()],
    }
}

/// Under a task that ended a moment ago, and bound by all that the caller works on meanwhile: an agent gains no better place by
/// keeping the token or the mark of an ended task.
fn late(facts: &LineageFacts<'_>, task: &OpenTask) -> Lineage {
    let mut lineage = under(facts, Attribution::Late, task);
    let mut open: Vec<&OpenTask> = facts.open.iter().collect();
    open.sort_by_cached_key(|task| strictness(task));
    let Some(deepest) = open.first() else { return lineage };
    let context = &mut lineage.context;
    context.depth = context.depth.max(deepest.context.depth.saturating_add(1));
    context.visited_agents = context.visited_agents.with_all_of(open.iter().map(|task| &task.context.visited_agents));
    lineage.remaining = lineage.remaining.and(least_of(&open));
    lineage.candidates.extend(open.into_iter().cloned());
    lineage
}

/// Under one of several tasks of the caller, and bound by all of them.
fn among(facts: &LineageFacts<'_>, mut candidates: Vec<&OpenTask>) -> Lineage {
    // The deepest first, and of those the poorest: whoever reads only one parent reads the strictest.
    candidates.sort_by_cached_key(|task| strictness(task));
    let Some((parent, others)) = candidates.split_first() else { return root(facts) };
    if others.is_empty() {
        return under(facts, Attribution::Inferred, parent);
    }
    let mut above = parent.context.clone();
    above.visited_agents = above.visited_agents.with_all_of(others.iter().map(|task| &task.context.visited_agents));
    let holders = AgentPath::new(candidates.iter().map(|task| task.holder.clone()).filter(|holder| *holder != facts.caller));
    above.visited_agents = above.visited_agents.with_all_of([&holders]);
    Lineage {
        attribution: Attribution::Ambiguous,
        context: above.child(parent.id.clone(), facts.caller.clone()),
        root_task: Some(parent.root.clone()),
        remaining: least_of(&candidates),
        candidates: candidates.into_iter().cloned().collect(),
    }
}

/// Somewhere in a tree: as deep as its deepest task. The call comes back to an agent that waits only if it does so from every task it
/// may come from. Agents side by side may call each other; depth and budget bound that.
fn in_tree(facts: &LineageFacts<'_>, tree: &[OpenTask]) -> Lineage {
    let mut candidates: Vec<&OpenTask> = tree.iter().collect();
    candidates.sort_by_cached_key(|task| strictness(task));
    let Some(deepest) = candidates.iter().map(|task| task.context.depth).max() else { return root(facts) };
    let remaining = least_of(&candidates);
    let attribution = if candidates.len() == 1 { Attribution::Inferred } else { Attribution::Ambiguous };
    let waits = |task: &OpenTask| task.holder == *facts.target || task.context.visited_agents.contains(facts.target);
    if candidates.iter().any(|task| !waits(task)) {
        candidates.retain(|task| !waits(task));
    }
    let parent = candidates[0];
    let paths: Vec<AgentPath> = candidates.iter().map(|task| task.context.visited_agents.then(task.holder.clone())).collect();
    let mut visited_agents = paths[0].with_all_of(&paths[1..]);
    if facts.known_agent && !visited_agents.contains(&facts.caller) {
        visited_agents = visited_agents.then(facts.caller.clone());
    }
    let context = TaskContext {
        parent_task_id: Some(parent.id.clone()),
        depth: deepest.saturating_add(1),
        visited_agents,
        ..parent.context.clone()
    };
    Lineage {
        attribution,
        context,
        root_task: Some(parent.root.clone()),
        remaining,
        candidates: candidates.into_iter().cloned().collect(),
    }
}

fn root(facts: &LineageFacts<'_>) -> Lineage {
    Lineage {
        attribution: Attribution::Root,
        context: TaskContext::root(facts.new_trace, facts.caller.clone()),
        root_task: None,
        remaining: Allowance::default(),
        candidates: Vec::new(),
    }
}

/// What an agent calls its task says where the call comes from. A mark in the trace says it with proof, so names add nothing to one.
fn tightened_by_names(facts: &LineageFacts<'_>, lineage: Lineage) -> Lineage {
    if facts.named.is_empty() || lineage.attribution == Attribution::Traced {
        return lineage;
    }
    let named = in_tree(facts, facts.named).context;
    tightened(lineage, named.depth, &named.visited_agents)
}

fn tightened_by_claim(lineage: Lineage, claimed: &ClaimedContext) -> Lineage {
    tightened(lineage, claimed.depth.unwrap_or(0), &claimed.visited_agents)
}

/// What a call says without proof can only make it deeper and its path longer.
fn tightened(mut lineage: Lineage, depth: u32, visited_agents: &AgentPath) -> Lineage {
    let depth = lineage.context.depth.max(depth);
    let path = lineage.context.visited_agents.with_all_of([visited_agents]);
    if depth > lineage.context.depth || path.len() > lineage.context.visited_agents.len() {
        // What comes after the end of its task waits for nobody, whatever it claims.
        if lineage.attribution != Attribution::Late {
            lineage.attribution = Attribution::Claimed;
        }
        (lineage.context.depth, lineage.context.visited_agents) = (depth, path);
    }
    lineage
}

fn least_of(tasks: &[&OpenTask]) -> Allowance {
    tasks.iter().fold(Allowance::default(), |remaining, task| remaining.and(task.remaining))
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
