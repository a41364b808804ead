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
    pub trace: TraceId,
    /// Whether the trace was made here: the call at the root brought none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made: bool,
    pub parent: Option<TaskId>,
    pub depth: u32,
    /// The agents that hold a task further up, after the caller of the root.
    pub path: AgentPath,
    pub attribution: Attribution,
    /// What the call itself said about that, if it brought no proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Box<ClaimedContext>>,
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
    pub settled: Amount,
    /// What was reported past what had been set aside.
    pub overrun: Amount,
    pub estimated_by: EstimateSource,
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
    pub kinship: Arc<LineageRecord>,
    pub spend: Spend,
    /// What each rule said to the call that made the task.
    pub verdicts: Arc<[Verdict]>,
}

/// The rules, in the order of their evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    Lineage,
    Freeze,
    Budget,
    Recursion,
    Selector,
    Policy,
    /// Not one of the order: asked whenever a task looks at shared memory.
    Memory,
    /// Not one of the order: an agent's answer that could not be read.
    Answer,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub rule: Rule,
    pub passed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<(Cow<'static, str>, Fact)>,
}

/// A number or a name a verdict rests on. Written as a number or a text, and read back as one of those two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    Number(u64),
    Text(Cow<'static, str>),
    #[serde(skip_deserializing)]
    Name(Arc<str>),
    #[serde(skip_deserializing)]
    Usd(MicroUsd),
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
    pub id: Arc<str>,
    pub at: Timestamp,
    pub tenant: Arc<str>,
    pub caller: Arc<str>,
    pub agent: AgentName,
    /// The task the call went on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The tree it was counted to, as far as that was settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceId>,
    /// The code of the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Arc<str>>,
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
    Agent(Arc<str>),
    Tenant(Arc<str>),
    Everything,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    #[serde(flatten)]
    pub scope: FreezeScope,
    pub by: Arc<str>,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
}

/// A task as the ledger knows it, for a start and for showing trees.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerRow {
    pub task: TaskId,
    pub context_id: ContextId,
    pub agent: AgentName,
    pub owner: Caller,
    pub dialect: Dialect,
    pub created_at: Timestamp,
    pub state: TaskState,
    pub status_at: Timestamp,
    /// With whom it goes on.
    pub link: Option<Link>,
    pub governed: Governed,
}

/// What one task of a tree cost, and below which task it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeCost {
    pub task: TaskId,
    pub parent: Option<TaskId>,
    pub cost: Amount,
}

/// What a start reads back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerSnapshot {
    /// Each task once, in the order they were made.
    pub tasks: Vec<LedgerRow>,
    pub past: Vec<PastSpend>,
}

/// What was spent by a task that is kept no longer, or by an earlier turn of one that is, while a budget's window still counts it.
#[derive(Clone, Debug, PartialEq)]
pub struct PastSpend {
    pub owner: Caller,
    pub agent: AgentName,
    pub skill: Option<Arc<str>>,
    /// The task that its tree began with. Tasks of several trees that are kept no longer are added up without it.
    pub root: Option<TaskId>,
    pub settled: Amount,
    pub overrun: Amount,
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
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }
}
