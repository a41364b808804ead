//! What was spent since a moment, by tree, caller, agent, skill or tenant: added up from the settled records of the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{Error, Timestamp};
use chancery_rules::budget::Amount;
use serde::{Deserialize, Serialize};

use crate::PastSpend;
use crate::find::internal;
use crate::service::Chancery;

/// What the lines of a bill are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BillBy {
    /// Delegation trees, by their root task.
    Root,
    /// Callers, as `TENANT/NAME`.
    Caller,
    /// Agents, by name.
    Agent,
    /// Skills, by the skill that a task started with.
    Skill,
    /// Tenants, by name.
    Tenant,
}

/// What one tree, caller, agent, skill or tenant spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillLine {
    /// `None` for calls that named no skill, and for trees whose tasks are no longer kept.
    pub name: Option<Arc<str>>,
    /// The sum of its settled costs and overruns.
    pub cost: Amount,
}

/// What was spent in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bill {
    /// What the lines are for.
    pub by: BillBy,
    /// The beginning of the period.
    pub since: Timestamp,
    /// The end of the period.
    pub until: Timestamp,
    /// The dearest first.
    pub lines: Vec<BillLine>,
    /// The sum of all lines.
    pub total: Amount,
    /// Costs from before this are kept only for tasks that are kept. `None` where all are kept.
    pub kept_since: Option<Timestamp>,
}

impl BillBy {
    /// Every kind of line.
    pub const ALL: [Self; 5] = [Self::Root, Self::Caller, Self::Agent, Self::Skill, Self::Tenant];

    /// Returns the name of the kind, as `chancery bill --by` takes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Caller => "caller",
            Self::Agent => "agent",
            Self::Skill => "skill",
            Self::Tenant => "tenant",
        }
    }

    fn name(self, past: &PastSpend) -> Option<Arc<str>> {
        match self {
            Self::Root => past.root.as_ref().map(|root| root.as_str().into()),
            Self::Caller => Some(format!("{}/{}", past.owner.tenant, past.owner.name).into()),
            Self::Agent => Some(Arc::clone(&past.agent)),
            Self::Skill => past.skill.clone(),
            Self::Tenant => Some(Arc::clone(&past.owner.tenant)),
        }
    }
}

impl Chancery {
    /// What was settled within the last `period`.
    pub async fn bill(&self, period: Duration, by: BillBy) -> Result<Bill, Error> {
        let inner = &self.0;
        let until = inner.clock.now();
        let micros = i64::try_from(period.as_micros()).unwrap_or(i64::MAX);
        let since = Timestamp::from_micros(until.micros().saturating_sub(micros));
        let spent = inner.store.spent(since, by == BillBy::Root).await.map_err(internal)?;
        let mut sums: BTreeMap<Option<Arc<str>>, Amount> = BTreeMap::new();
        let mut total = Amount::default();
        for past in &spent {
            let cost = past.settled.saturating_add(past.overrun);
            let sum = sums.entry(by.name(past)).or_default();
            *sum = sum.saturating_add(cost);
            total = total.saturating_add(cost);
        }
        let mut lines: Vec<BillLine> = sums.into_iter().map(|(name, cost)| BillLine { name, cost }).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.cost.usd));
        let kept_since = inner.retention.costs_kept_since(until, inner.govern.longest_window());
        Ok(Bill { by, since, until, lines, total, kept_since })
    }
}
