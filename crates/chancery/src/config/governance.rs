//! The sections that govern calls: `[budget]`, `[policy]`, `[recursion]` and `[lineage]`.

use std::collections::HashMap;
use std::sync::Arc;

use chancery_core::Rulebook;
use chancery_rules::MicroUsd;
use chancery_rules::budget::{BudgetConfig, Price};
use chancery_rules::lineage::LineageConfig;
use chancery_rules::policy::{PolicyBook, PolicyConfig};
use chancery_rules::recursion::RecursionPolicy;
use serde::{Deserialize, Serialize};

use super::{AgentConfig, Config};
use crate::policy_expressions::Conditions;

/// What bounds calls: budgets, policy, recursion and lineage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GovernanceConfig {
    /// The `[budget]` section.
    pub budget: BudgetConfig,
    /// The `[policy]` section.
    pub policy: PolicyConfig,
    /// The `[recursion]` section.
    pub recursion: RecursionPolicy,
    /// The `[lineage]` section.
    pub lineage: LineageConfig,
}

/// What one call of an agent costs: `price = { per_call_usd = "0.02" }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriceConfig {
    /// Dollars for each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_call_usd: Option<MicroUsd>,
    /// Tokens for each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_call_tokens: Option<u64>,
}

impl Config {
    /// The rules of the whole config. It returns all faults at once.
    pub fn rulebook(&self) -> Result<Rulebook, Vec<String>> {
        let GovernanceConfig { budget, policy, recursion, lineage } = &self.governance;
        let price = |(name, agent): &(String, AgentConfig)| {
            let PriceConfig { per_call_usd: usd, per_call_tokens: tokens } = agent.price;
            (usd.is_some() || tokens.is_some()).then(|| (Arc::from(name.as_str()), Price { usd, tokens }))
        };
        Ok(Rulebook {
            budget: budget.clone(),
            recursion: recursion.clone(),
            lineage: *lineage,
            expressions: Conditions::default().rules(&policy.rules)?,
            policy: PolicyBook::new(policy),
            prices: self.agents.iter().filter_map(price).collect::<HashMap<_, _>>(),
        })
    }
}
