//! What is kept of how a task was governed: where it stands in its tree, what it was given and cost, what was decided.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use chancery_protocol::{AgentName, Caller, ContextId, Dialect, TaskId, TaskState, Timestamp, TraceId};
use chancery_rules::MicroUsd;
use chancery_rules::budget::{Accounts, ActualSource, Amount, Caps, EstimateSource, SettledReservation};
use chancery_rules::lineage::{AgentPath, Attribution, ClaimedContext};
use serde::{Deserialize, Serialize};

use crate::Link;

/// Where a task stands in the tree of calls it belongs to. Never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineageRecord {
    /// The task the tree began with; its own id for a root.
    pub root: TaskId,
    /// The trace id of the tree.
    pub trace: TraceId,
    /// Whether the trace was made here: the call at the root brought none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made: bool,
    /// The task that made the call; `None` for a root.
    pub parent: Option<TaskId>,
    /// How many calls lead from the root to the task. A root has depth 0.
    pub depth: u32,
    /// The agents that hold a task further up, after the caller of the root.
    pub path: AgentPath,
    /// How the node placed the call in its tree.
    pub attribution: Attribution,
    /// What the call itself said about that, if it brought no proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Box<ClaimedContext>>,
    /// The skill that the call is counted under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<Arc<str>>,
    /// What the task and everything below it may spend, where its call asked for less than was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Caps>,
}

/// What a task was given and what it cost so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spend {
    /// Set aside for the turn that runs.
    pub reserved: Amount,
    /// What the turns that ended have cost.
    pub settled: Amount,
    /// What was reported past what had been set aside.
    pub overrun: Amount,
    /// The source of the reservation.
    pub estimated_by: EstimateSource,
    /// The source of the settled amount; `None` before the first turn was settled.
    pub known_by: Option<ActualSource>,
    /// When the last turn was settled.
    pub settled_at: Option<Timestamp>,
    /// What of it the turns before that one cost. Each of them counts at its own time, so stores keep them as past spends.
    #[serde(skip)]
    pub earlier: SettledReservation,
}

/// Everything that is kept beside a task's log about how it was governed.
#[derive(Clone, Debug, PartialEq)]
pub struct Governed {
    /// The place of the task in its tree.
    pub kinship: Arc<LineageRecord>,
    /// What the task reserved and spent.
    pub spend: Spend,
    /// What each rule said to the call that made the task.
    pub verdicts: Arc<[Verdict]>,
}

/// The rules, in the order of their evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Places the call in a tree.
    Lineage,
    /// Rejects calls in a frozen scope.
    Freeze,
    /// Reserves the estimate of the call in every budget.
    Budget,
    /// Rejects loops and calls that are too deep.
    Recursion,
    /// Chooses the replica.
    Selector,
    /// Applies the limits and conditions of the caller.
    Policy,
    /// Not one of the order: asked whenever a task looks at shared memory.
    Memory,
    /// Not one of the order: an agent's answer that could not be read.
    Answer,
}

/// The result of one rule for one call, with its facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The rule.
    pub rule: Rule,
    /// Whether the rule admitted the call.
    pub passed: bool,
    /// What the result rests on, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<(Cow<'static, str>, Fact)>,
}

/// A number or a name a verdict rests on. Written as a number or a text, and read back as one of those two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// A count or an amount of tokens.
    Number(u64),
    /// Any other text.
    Text(Cow<'static, str>),
    /// A name.
    #[serde(skip_deserializing)]
    Name(Arc<str>),
    /// An amount of money.
    #[serde(skip_deserializing)]
    Usd(MicroUsd),
    /// The agents of a path.
    #[serde(skip_deserializing, serialize_with = "in_words")]
    Path(AgentPath),
    /// Budgets, by their scopes. Formatted only for readers.
    #[serde(skip_deserializing, serialize_with = "in_words")]
    Scopes(BudgetScopes),
}

fn in_words<S: serde::Serializer>(words: &impl fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(words)
}

/// The scopes of the budgets a call is charged to, the widest first.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetScopes(pub(crate) Accounts);

impl fmt::Display for BudgetScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, account) in self.0.iter().enumerate() {
            write!(f, "{}{}", if place == 0 { "" } else { " " }, account.scope())?;
        }
        Ok(())
    }
}

/// What was decided about a call that made no task: it was refused, or it went on with one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The id that `chancery explain` accepts.
    pub id: Arc<str>,
    /// The time of the decision.
    pub at: Timestamp,
    /// The tenant of the caller.
    pub tenant: Arc<str>,
    /// The name of the caller.
    pub caller: Arc<str>,
    /// The called agent.
    pub agent: AgentName,
    /// The task the call went on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The tree it was counted to, as far as that was settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<TaskId>,
    /// The trace id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceId>,
    /// The code of the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Arc<str>>,
    /// The verdicts of the rules that were evaluated, in order.
    pub verdicts: Vec<Verdict>,
}

/// What nothing new is admitted to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "scope", content = "name", rename_all = "snake_case")]
pub enum FreezeScope {
    /// A delegation tree, by its root task.
    Tree(Arc<str>),
    /// A caller, as `TENANT/NAME`.
    Caller(Arc<str>),
    /// An agent, by its name.
    Agent(Arc<str>),
    /// A tenant, by its name.
    Tenant(Arc<str>),
    /// The whole node.
    Everything,
}

/// A freeze, as an operator set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    /// The scope in which no new call is admitted.
    #[serde(flatten)]
    pub scope: FreezeScope,
    /// The operator who set it.
    pub by: Arc<str>,
    /// The time from which it applies.
    pub at: Timestamp,
    /// The reason that the operator gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
}

/// A task as the ledger knows it, for a start and for showing trees.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerRow {
    /// The id of the task.
    pub task: TaskId,
    /// The context of the task.
    pub context_id: ContextId,
    /// The agent that works on it.
    pub agent: AgentName,
    /// The caller who owns it.
    pub owner: Caller,
    /// The dialect of the call that made it.
    pub dialect: Dialect,
    /// The time when it was made.
    pub created_at: Timestamp,
    /// Its state.
    pub state: TaskState,
    /// The time of the last change of its state.
    pub status_at: Timestamp,
    /// With whom it goes on.
    pub link: Option<Link>,
    /// How it was governed.
    pub governed: Governed,
}

/// What one task of a tree cost, and below which task it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeCost {
    /// The id of the task.
    pub task: TaskId,
    /// The task above it; `None` for a root.
    pub parent: Option<TaskId>,
    /// What it cost, without the tasks below it.
    pub cost: Amount,
}

/// What a start reads back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerSnapshot {
    /// Each task once, in the order they were made.
    pub tasks: Vec<LedgerRow>,
    /// Settled costs that no task carries any more, or that belong to earlier turns.
    pub past: Vec<PastSpend>,
}

/// What was spent by a task that is kept no longer, or by an earlier turn of one that is, while a budget's window still counts it.
#[derive(Clone, Debug, PartialEq)]
pub struct PastSpend {
    /// The caller who paid.
    pub owner: Caller,
    /// The agent that worked.
    pub agent: AgentName,
    /// The skill that the cost is counted under.
    pub skill: Option<Arc<str>>,
    /// The task that its tree began with. Tasks of several trees that are kept no longer are added up without it.
    pub root: Option<TaskId>,
    /// The cost, up to the reservation.
    pub settled: Amount,
    /// The cost above the reservation.
    pub overrun: Amount,
    /// The time when it was settled.
    pub at: Timestamp,
}

impl PastSpend {
    /// The last turn of a task, if one was settled.
    pub fn of_last_turn(owner: &Caller, agent: &AgentName, governed: &Governed) -> Option<Self> {
        let SettledReservation { settled, overrun } = governed.spend.last_turn();
        let (skill, at) = (governed.kinship.skill.clone(), governed.spend.settled_at?);
        let root = Some(governed.kinship.root.clone());
        Some(Self { owner: owner.clone(), agent: agent.clone(), skill, root, settled, overrun, at })
    }
}

impl Default for Spend {
    fn default() -> Self {
        Self::reserved(Amount::default(), EstimateSource::None)
    }
}

impl Spend {
    /// So much is set aside, and nothing is spent yet.
    pub fn reserved(reserved: Amount, estimated_by: EstimateSource) -> Self {
        let nothing = Amount::default();
        let earlier = SettledReservation::default();
        Self { reserved, settled: nothing, overrun: nothing, estimated_by, known_by: None, settled_at: None, earlier }
    }

    /// What the turn cost that was settled last.
    pub fn last_turn(&self) -> SettledReservation {
        let SettledReservation { settled, overrun } = self.earlier;
        SettledReservation { settled: self.settled.saturating_sub(settled), overrun: self.overrun.saturating_sub(overrun) }
    }

    /// Whether another turn was settled since something else was kept. Tasks with one turn need no query.
    pub fn is_of_later_turn_than(&self, kept: &Self) -> bool {
        self.earlier != SettledReservation::default() && kept.settled_at.is_some() && kept.settled_at != self.settled_at
    }

    /// What is kept of a task in the place of something else. What turns cost that were kept before are the earlier ones now; a turn
    /// that was never kept by itself counts with the one after it.
    #[must_use]
    pub fn in_place_of(self, kept: &Self) -> Self {
        let earlier = match self.is_of_later_turn_than(kept) {
            true => SettledReservation { settled: kept.settled, overrun: kept.overrun },
            false => kept.earlier,
        };
        Self { earlier, ..self }
    }
}

impl FreezeScope {
    /// The name of the tree, caller, agent or tenant. Everything has none.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Tree(name) | Self::Caller(name) | Self::Agent(name) | Self::Tenant(name) => Some(name),
            Self::Everything => None,
        }
    }
}

impl fmt::Display for FreezeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(name) => write!(f, "tree:{name}"),
            Self::Caller(name) => write!(f, "caller:{name}"),
            Self::Agent(name) => write!(f, "agent:{name}"),
            Self::Tenant(name) => write!(f, "tenant:{name}"),
            Self::Everything => f.write_str("everything"),
        }
    }
}

impl Fact {
    /// Makes a fact of a text.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }
}
