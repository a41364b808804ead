//! What work is expected to cost, and what it did cost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chancery_protocol::{AgentCard, AgentName};
use chancery_rules::budget::{
    Actual, ActualFacts, Amount, Caps, EstimateFacts, Estimated, ObservedCost, Price, actual, estimate,
};
use chancery_rules::policy::TaskPolicy;

use super::report::Report;
use super::terms::{GOVERNANCE_EXTENSION, Terms, Wish};

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
pub(crate) struct Observed(Mutex<HashMap<Work, ObservedCost>>);

/// An agent, and what it is asked for.
type Work = (AgentName, Option<Arc<str>>);

/// So many agents and skills are remembered. Skills are named by callers, so they could be any number.
const MOST_OBSERVED: usize = 10_000;

impl Observed {
    fn price(&self, agent: &AgentName, skill: Option<&Arc<str>>) -> Price {
        let observed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if observed.is_empty() {
            return Price::default();
        }
        observed.get(&(agent.clone(), skill.cloned())).map(ObservedCost::price).unwrap_or_default()
    }

    pub(crate) fn learn(&self, agent: &AgentName, skill: Option<&Arc<str>>, actual: &Actual) {
        if !ObservedCost::is_news(actual) {
            return;
        }
        let mut observed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (agent.clone(), skill.cloned());
        if observed.len() >= MOST_OBSERVED && !observed.contains_key(&key) {
            return;
        }
        observed.entry(key).or_default().add(actual);
    }
}

/// What a call is expected to cost. `free` is what is left of its budgets.
pub(crate) fn expected(
    prices: Prices,
    observed: &Observed,
    agent: &AgentName,
    skill: Option<&Arc<str>>,
    terms: &Terms,
    policy: &TaskPolicy,
    free: Caps,
) -> Estimated {
    let wish = |wish: Wish| Price { usd: wish.usd, tokens: wish.tokens };
    estimate(&EstimateFacts {
        hint: wish(terms.estimate),
        config: prices.config,
        card: prices.card,
        observed: observed.price(agent, skill),
        policy: Price { usd: policy.max_cost_usd, tokens: policy.max_tokens },
        usd_is_capped: free.usd.is_some(),
        tokens_are_capped: free.tokens.is_some(),
    })
}

/// What a turn did cost: what is reported of it beyond what earlier turns cost, or what can be said instead.
pub(crate) fn cost(report: &Report, before: Amount, prices: Prices, estimated: Estimated) -> Actual {
    let facts = ActualFacts { configured: prices.config, measured: Price::default(), estimated };
    actual(&report.since(before), &facts)
}
