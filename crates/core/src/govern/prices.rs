//! What work is expected to cost, and what it did cost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::{AgentCard, AgentName};
use chancery_rules::budget::{
    Actual, ActualFacts, Amount, Caps, EstimateFacts, Estimated, LearntCost, ObservedCost, Price, SettledReservation, actual,
    estimate,
};
use chancery_rules::policy::TaskPolicy;

use super::report::CostReport;
use super::terms::GOVERNANCE_EXTENSION;

/// The prices of an agent, per call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prices {
    pub(crate) config: Price,
    pub(crate) card: Price,
}

/// The price on a card: `price` in the parameters of our extension.
pub(crate) fn on_card(card: &AgentCard) -> Price {
    let declared = card.capabilities.extensions.iter().find(|extension| extension.uri == GOVERNANCE_EXTENSION);
    let Some(params) = declared.and_then(|extension| extension.params.as_ref()) else { return Price::default() };
    let price = params.get("price").unwrap_or_default();
    // A card is somebody else's word: a price that makes no sense is none.
    let usd = serde_json::from_value(price["per_call_usd"].clone()).ok();
    Price { usd, tokens: price["per_call_tokens"].as_u64() }
}

/// What calls of each agent and skill cost before.
#[derive(Debug, Default)]
pub(crate) struct LearntPrices(Mutex<HashMap<Work, ObservedCost>>);

/// An agent, and the requested skill.
type Work = (AgentName, Option<Arc<str>>);

/// So many agents and skills are remembered. Skills are named by callers, so they could be any number.
const MOST_OBSERVED: usize = 10_000;

impl LearntPrices {
    pub(crate) fn learnt(&self, agent: &AgentName, skill: Option<&Arc<str>>) -> LearntCost {
        let observed = self.lock();
        if observed.is_empty() {
            return LearntCost::default();
        }
        observed.get(&(agent.clone(), skill.cloned())).map(ObservedCost::learnt).unwrap_or_default()
    }

    /// Settles a call and learns from it in one step: a reservation after the settlement of an overrun finds
    /// it here.
    pub(crate) fn settle(
        &self,
        agent: &AgentName,
        skill: Option<&Arc<str>>,
        actual: &Actual,
        settle: impl FnOnce() -> SettledReservation,
    ) -> SettledReservation {
        if !ObservedCost::is_news(actual) {
            return settle();
        }
        let mut observed = self.lock();
        let settled = settle();
        let key = (agent.clone(), skill.cloned());
        if observed.len() < MOST_OBSERVED || observed.contains_key(&key) {
            observed.entry(key).or_default().add(actual, settled.overrun);
        }
        settled
    }

    /// After a restart: a call of the run before was settled, and so much of its report was above its
    /// reservation. To be called in the order of settling. Prices are not learnt again: the store keeps too
    /// few calls to say which was the largest.
    pub(crate) fn restore(&self, agent: &AgentName, skill: Option<&Arc<str>>, overrun: Amount) {
        let mut observed = self.lock();
        let key = (agent.clone(), skill.cloned());
        let overran = overrun.usd.0 > 0 || overrun.tokens > 0;
        if observed.contains_key(&key) || (overran && observed.len() < MOST_OBSERVED) {
            observed.entry(key).or_default().restore(overrun);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Work, ObservedCost>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call is expected to cost. `free` is what is left of its budgets, `hint_at_most` what a hint may
/// hold of them.
pub(crate) fn expected(
    prices: Prices,
    learnt: LearntCost,
    hint: Price,
    hint_at_most: Caps,
    policy: &TaskPolicy,
    free: Caps,
) -> Estimated {
    estimate(&EstimateFacts {
        hint,
        config: prices.config,
        card: prices.card,
        observed: learnt,
        policy: Price { usd: policy.max_cost_usd, tokens: policy.max_tokens },
        hint_at_most: Price { usd: hint_at_most.usd, tokens: hint_at_most.tokens },
        usd_is_capped: free.usd.is_some(),
        tokens_are_capped: free.tokens.is_some(),
    })
}

/// What a turn did cost: what is reported of it beyond what earlier turns cost, or what can be said instead.
pub(crate) fn cost(report: &CostReport, before: Amount, prices: Prices, estimated: Estimated) -> Actual {
    let facts = ActualFacts { configured: prices.config, measured: Price::default(), estimated };
    actual(&report.since(before), &facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_rules::MicroUsd;
    use chancery_rules::budget::ActualSource;
    use std::time::Duration;

    #[test]
    fn whoever_reserves_after_the_settlement_of_an_overrun_finds_it() {
        let (observed, agent) = (LearntPrices::default(), AgentName::from("a"));
        let source = ActualSource::Reported;
        let actual = Actual { usd: MicroUsd(9), usd_source: source, tokens: 0, tokens_source: source, ignored: Vec::new() };
        let overrun = Amount { usd: MicroUsd(5), ..Amount::default() };
        std::thread::scope(|threads| {
            let (said, hears) = std::sync::mpsc::channel();
            observed.settle(&agent, None, &actual, || {
                // The money is settled from here on, so another call may reserve, and then asks this.
                let (observed, agent) = (&observed, &agent);
                threads.spawn(move || said.send(observed.learnt(agent, None)));
                hears.recv_timeout(Duration::from_millis(50)).expect_err("it is not told of the time before");
                SettledReservation { settled: Amount::default(), overrun }
            });
            assert!(hears.recv().unwrap().usd_overran);
        });
    }
}
