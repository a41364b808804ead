//! The allotment of one turn: reserved money, a slot, and limits. It is returned exactly once.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Timestamp;
use chancery_rules::MicroUsd;
use chancery_rules::budget::{Amount, Caps, Estimated, SettledReservation, room};
use chancery_rules::policy::{PolicyError, Slot, TaskPolicy};
use tracing::Span;
use tracing::field::Empty;

use super::Governance;
use super::held_budget::HeldBudget;
use super::node::{SubtreeCost, TreeNode};
use super::prices::{self, Prices};
use super::report::CostReport;
use crate::Spend;

#[derive(Debug)]
pub(crate) struct Allotment {
    pub(crate) govern: Arc<Governance>,
    pub(crate) node: Arc<TreeNode>,
    pub(crate) held: Arc<HeldBudget>,
    /// Free again when this is dropped.
    pub(crate) _slot: Option<Slot>,
    pub(crate) policy: Arc<TaskPolicy>,
    pub(crate) estimated: Estimated,
    pub(crate) prices: Prices,
    /// What earlier turns of the task cost.
    pub(crate) before: Spend,
    /// What was reported in this turn.
    pub(crate) heard: CostReport,
    /// The node restarted meanwhile: the cost of the turn until then is unknown.
    pub(crate) interrupted: bool,
    /// Whether the caller requested the cost.
    pub(crate) announced: bool,
    /// What the turn does is logged in it; what it cost is written on it at the end.
    pub(crate) span: Span,
}

/// The span of a turn, with the place of its task in its tree. Seen from `RUST_LOG=debug` on: its fields cost as much as the rest of
/// a quick turn.
pub(crate) fn span_of(node: &TreeNode) -> Span {
    tracing::debug_span!(
        "turn",
        task = %node.record.id,
        agent = %node.record.agent,
        trace_id = %node.kinship.trace,
        depth = node.kinship.depth,
        attribution = node.kinship.attribution.as_str(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        chancery.cost_usd = Empty,
    )
}

/// Why a turn is stopped from outside, beside being cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TurnStop {
    Policy(PolicyError),
    /// What it reports is more than it was given, and there is no more.
    Spent(String),
}

impl TurnStop {
    /// What the task's caller reads.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Policy(error) => format!("{}: {error}", error.kind().reason()),
            Self::Spent(why) => format!("BUDGET_EXHAUSTED: {why}"),
        }
    }
}

/// How a turn was settled, for the store and for the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettledTurn {
    pub(crate) spend: Spend,
    pub(crate) subtree: SubtreeCost,
    pub(crate) remaining: Caps,
}

impl Allotment {
    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.policy.max_duration_ms.map(Duration::from_millis)
    }

    /// The turn begins: from now on something may be spent, by it and by those it calls.
    pub(crate) fn begin(&mut self, before: Option<Spend>) {
        self.before = before.unwrap_or(self.before);
        self.held.dispatched();
        self.node.set_held(&self.held);
    }

    /// What the task was given and cost, while this turn runs.
    pub(crate) fn spend(&self) -> Spend {
        Spend { reserved: self.held.amount(), estimated_by: self.estimated.usd, ..self.before }
    }

    /// What it may spend, where there is a cap on it.
    pub(crate) fn granted(&self) -> Caps {
        let free = self.govern.ledger.remaining(&self.held.accounts(), self.govern.now());
        let held = self.held.amount();
        Caps { usd: free.usd.map(|_| held.usd), tokens: free.tokens.map(|_| held.tokens), tasks: None }
    }

    /// The same for a remote agent, whose cap this is: it gets room for more than was observed, as far as
    /// there is more.
    pub(crate) fn granted_elsewhere(&self) -> Caps {
        let (granted, held) = (self.granted(), self.held.amount());
        let mut room = room(&self.estimated, held);
        let most_usd = self.policy.max_cost_usd.map_or(room.usd.0, |most| (most.0 - held.usd.0).max(0));
        let most_tokens = self.policy.max_tokens.map_or(room.tokens, |most| most.saturating_sub(held.tokens));
        room.usd = granted.usd.map_or(MicroUsd::ZERO, |_| MicroUsd(room.usd.0.min(most_usd)));
        room.tokens = granted.tokens.map_or(0, |_| room.tokens.min(most_tokens));
        if room == Amount::default() {
            return granted;
        }
        self.held.raise(&self.node, &self.govern.ledger, room, self.govern.now());
        self.granted()
    }

    /// The agent says how far it is: it gets more if it needs more and there is more, or it is stopped.
    pub(crate) fn weigh(&mut self, report: &CostReport) -> Option<TurnStop> {
        let report = &report.without(self.node.told());
        let tokens = report.tokens().unwrap_or(0);
        if let Err(error) = self.policy.check_tokens(tokens) {
            return Some(TurnStop::Policy(error));
        }
        if let (Some(usd), Some(limit)) = (report.usd(), self.policy.max_cost_usd)
            && usd > limit
        {
            let error = PolicyError::Exceeded { field: "max_cost_usd", actual: usd.to_string(), limit: limit.to_string() };
            return Some(TurnStop::Policy(error));
        }
        let before = self.before.settled.saturating_add(self.before.overrun);
        let held = self.held.amount();
        let usd = report.usd().map_or(0, |usd| usd.0 - before.usd.0);
        let tokens = tokens.saturating_sub(before.tokens);
        let missing = Amount { usd: MicroUsd((usd - held.usd.0).max(0)), tokens: tokens.saturating_sub(held.tokens), tasks: 0 };
        if missing == Amount::default() {
            return None;
        }
        let now = self.govern.now();
        let capped = self.govern.ledger.remaining(&self.held.accounts(), now);
        let more = self.held.raise(&self.node, &self.govern.ledger, missing, now);
        let short = |cap: bool, got: bool| cap && !got;
        if short(capped.usd.is_some(), more.usd >= missing.usd) || short(capped.tokens.is_some(), more.tokens >= missing.tokens) {
            return Some(TurnStop::Spent(format!(
                "the task reports {} USD and {} tokens; it was given {} USD and {} tokens, and no more is left",
                MicroUsd(usd),
                tokens,
                held.usd.saturating_add(more.usd),
                held.tokens.saturating_add(more.tokens)
            )));
        }
        None
    }

    /// The agent reports something, which is said of this turn.
    pub(crate) fn apply(&mut self, report: CostReport) {
        self.heard = self.heard.and(report);
    }

    /// Nothing was spent. The slot is free.
    pub(crate) fn release(self) {
        if let Some(reservation) = self.held.take() {
            self.govern.ledger.release(reservation);
        }
    }

    /// Ends the turn: what it cost is settled, the slot is free. The report is that of the whole task, `at`
    /// what the wall clock says, for the store.
    pub(crate) fn close(self, report: &CostReport, at: Timestamp) -> SettledTurn {
        let Self { govern, node, held, estimated, prices, before, heard, interrupted, announced, span, .. } = self;
        let report = &report.as_far_as_in(heard).without(node.told());
        let accounts = held.accounts();
        let counted = before.settled.saturating_add(before.overrun);
        let actual = prices::cost(report, counted, prices, estimated);
        let amount = Amount::of_task(actual.usd, actual.tokens);
        let (reservation, now) = (held.take(), govern.now());
        let settled = govern.observed.settle(&node.record.agent, node.kinship.skill.as_ref(), &actual, || match reservation {
            Some(reservation) if interrupted => govern.ledger.expire(reservation, amount, now),
            Some(reservation) => govern.ledger.settle(reservation, amount, now),
            None => SettledReservation::default(),
        });
        node.add_cost(settled.settled.saturating_add(settled.overrun));
        let spend = Spend {
            reserved: Amount::default(),
            settled: before.settled.saturating_add(settled.settled),
            overrun: before.overrun.saturating_add(settled.overrun),
            estimated_by: estimated.usd,
            known_by: Some(actual.usd_source),
            settled_at: Some(at),
            earlier: SettledReservation { settled: before.settled, overrun: before.overrun },
        };
        for (name, tokens) in report.tokens_by_name() {
            span.record(name, tokens);
        }
        span.record("chancery.cost_usd", tracing::field::display(spend.settled.saturating_add(spend.overrun).usd));
        tracing::debug!(parent: &span, known_by = ?actual.usd_source, "settled the cost of a turn");
        if settled.overrun.usd.0 > 0 || settled.overrun.tokens > 0 {
            tracing::warn!(
                task = %node.record.id, agent = %node.record.agent, usd = %settled.overrun.usd, tokens = settled.overrun.tokens,
                "an agent reported a higher cost than the node reserved; budgets count all of it. Set `price` in [agents.NAME]"
            );
        }
        // Asked for only by those who are told.
        let remaining = if announced { govern.ledger.remaining(&accounts, now) } else { Caps::NONE };
        SettledTurn { spend, subtree: node.subtree_cost(), remaining }
    }
}
