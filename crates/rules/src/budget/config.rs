//! The `[budget]` section: what each scope may take, and what happens when it is taken.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::amount::Caps;
use super::scope::{BudgetWindow, Limit};
use super::share::UnknownShare;
use crate::MicroUsd;
use crate::setting::more_than_zero;

/// The key for all names without a section of their own.
pub const EVERYBODY_ELSE: &str = "*";

/// The `[budget]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// The caps of the whole node.
    pub global: GlobalBudget,
    /// How much of the cap of a tenant or of the node one call of unknown cost may hold.
    pub unknown_share: UnknownShare,
    /// Of each delegation tree, over its whole life; a caller can ask for less.
    pub tree: TreeBudget,
    /// By name; `*` is each that is not named. Every tenant, caller, agent and skill has counters of its own.
    pub tenant: BTreeMap<String, ScopeBudget>,
    /// `name`, or `tenant/name` where tenants have callers of the same name.
    pub caller: BTreeMap<String, ScopeBudget>,
    /// The caps of agents, by name.
    pub agent: BTreeMap<String, ScopeBudget>,
    /// `agent/skill`, or `skill` at whichever agent.
    pub skill: BTreeMap<String, ScopeBudget>,
}

/// What the whole node may take in any 60 seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GlobalBudget {
    /// The cap on money of one minute.
    pub max_usd_per_minute: Option<MicroUsd>,
    /// The cap on tokens of one minute.
    pub max_tokens_per_minute: Option<u64>,
    /// The cap on tasks of one minute.
    pub max_tasks_per_minute: Option<u64>,
    /// What happens to a call over a cap.
    pub overflow: OverflowPolicy,
}

/// What happens to a call that does not fit: `"shed"` or `{ queue = { max_queue_depth = 100 } }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OverflowPolicy {
    /// It is refused at once and told when to come again.
    #[default]
    Shed,
    /// It waits its turn, with at most so many others for the same scope.
    Queue {
        /// The largest number of calls that wait.
        #[serde(deserialize_with = "more_than_zero")]
        max_queue_depth: u32,
    },
}

/// The caps of one tree of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TreeBudget {
    /// The cap on money.
    pub max_usd: Option<MicroUsd>,
    /// The cap on tokens.
    pub max_tokens: Option<u64>,
    /// The cap on tasks.
    pub max_tasks: Option<u64>,
}

/// A cap means nothing without the time it is for, so the window has no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeBudget {
    /// The cap on money in the window.
    #[serde(default)]
    pub max_usd: Option<MicroUsd>,
    /// The cap on tokens in the window.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// The cap on tasks in the window.
    #[serde(default)]
    pub max_tasks: Option<u64>,
    /// The time that the caps are for.
    #[serde(deserialize_with = "sliding")]
    pub window: BudgetWindow,
}

fn sliding<'de, D: Deserializer<'de>>(from: D) -> Result<BudgetWindow, D::Error> {
    match BudgetWindow::deserialize(from)? {
        BudgetWindow::Tree => Err(D::Error::custom("only a tree lasts as long as the tree: its caps are those of [budget.tree]")),
        window @ BudgetWindow::Sliding(_) => Ok(window),
    }
}

impl BudgetConfig {
    /// Returns the limit of a tenant, if it has one.
    pub fn tenant(&self, name: &str) -> Option<Limit> {
        limit(&self.tenant, None, name)
    }

    /// Returns the limit of a caller, if it has one.
    pub fn caller(&self, tenant: &str, name: &str) -> Option<Limit> {
        limit(&self.caller, Some(tenant), name)
    }

    /// Returns the limit of an agent, if it has one.
    pub fn agent(&self, name: &str) -> Option<Limit> {
        limit(&self.agent, None, name)
    }

    /// Returns the limit of a skill, if it has one.
    pub fn skill(&self, agent: &str, skill: &str) -> Option<Limit> {
        limit(&self.skill, Some(agent), skill)
    }

    /// Whether a skill has a section of its own.
    pub fn names_skill(&self, agent: &str, skill: &str) -> bool {
        let named = |name: &str| self.skill.contains_key(name);
        !self.skill.is_empty() && skill != EVERYBODY_ELSE && (named(skill) || named(&format!("{agent}/{skill}")))
    }
}

/// The most specific section counts, whole.
fn limit(sections: &BTreeMap<String, ScopeBudget>, of: Option<&str>, name: &str) -> Option<Limit> {
    if sections.is_empty() {
        return None;
    }
    let full = of.and_then(|of| sections.get(&format!("{of}/{name}")));
    full.or_else(|| sections.get(name)).or_else(|| sections.get(EVERYBODY_ELSE)).map(ScopeBudget::limit)
}

impl GlobalBudget {
    /// Returns the caps with their window.
    pub fn limit(&self) -> Limit {
        let caps = Caps { usd: self.max_usd_per_minute, tokens: self.max_tokens_per_minute, tasks: self.max_tasks_per_minute };
        Limit { caps, window: BudgetWindow::MINUTE }
    }
}

impl TreeBudget {
    /// Returns the caps.
    pub fn caps(&self) -> Caps {
        Caps { usd: self.max_usd, tokens: self.max_tokens, tasks: self.max_tasks }
    }
}

impl ScopeBudget {
    /// Returns the caps with their window.
    pub fn limit(&self) -> Limit {
        Limit { caps: Caps { usd: self.max_usd, tokens: self.max_tokens, tasks: self.max_tasks }, window: self.window }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: serde_json::Value) -> Result<BudgetConfig, String> {
        serde_json::from_value(value).map_err(|fault| fault.to_string())
    }

    #[test]
    fn every_key_is_read_and_written_back() {
        let written = json!({
            "global": { "max_usd_per_minute": "10.00", "max_tokens_per_minute": 1000, "max_tasks_per_minute": 60,
                "overflow": { "queue": { "max_queue_depth": 5 } } },
            "unknown_share": 0.5,
            "tree": { "max_usd": "0.50", "max_tokens": 9, "max_tasks": 3 },
            "tenant": { "*": { "max_usd": "1.00", "max_tokens": null, "max_tasks": null, "window": "1d" } },
            "caller": { "planner": { "max_usd": "5.00", "max_tokens": null, "max_tasks": null, "window": "1h" } },
            "agent": {}, "skill": {},
        });
        let config = read(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&config).unwrap(), written);
        assert_eq!(config.global.limit().caps.usd, Some(MicroUsd(10_000_000)));
        assert_eq!(config.global.limit().window, BudgetWindow::MINUTE);
        assert_eq!(config.tree.caps().tasks, Some(3));
        assert_eq!(read(json!({})).unwrap(), BudgetConfig::default());
        assert_eq!(read(json!({ "global": { "overflow": "shed" } })).unwrap().global.overflow, OverflowPolicy::Shed);
    }

    #[test]
    fn what_nobody_can_mean_is_refused_with_the_reason() {
        for (value, reason) in [
            (json!({ "globl": {} }), "unknown field"),
            (json!({ "caller": { "x": { "max_usd": "5" } } }), "missing field `window`"),
            (json!({ "caller": { "x": { "window": "tree" } } }), "[budget.tree]"),
            (json!({ "caller": { "x": { "window": "1 hour" } } }), "number and a unit"),
            (json!({ "caller": { "x": { "window": "1h", "max_uds": 1 } } }), "unknown field"),
            (json!({ "unknown_share": 0 }), "more than 0 and at most 1"),
            (json!({ "unknown_share": 1.1 }), "more than 0 and at most 1"),
            (json!({ "tree": { "max_usd": -1 } }), "not negative"),
            (json!({ "tree": { "max_usd": "0.0000001" } }), "six decimals"),
            (json!({ "tree": { "max_usd": 1e308 } }), "at most 9000000000"),
            (json!({ "tree": { "max_tokens": -1 } }), "invalid value"),
            (json!({ "global": { "overflow": { "queue": { "max_queue_depth": 0 } } } }), "more than 0"),
            (json!({ "global": { "overflow": { "queue": { "max_queue_depth": 1, "x": 1 } } } }), "unknown field"),
            (json!({ "global": { "overflow": "queue" } }), "invalid type"),
            (json!({ "global": { "overflow": "drop" } }), "unknown variant"),
        ] {
            let fault = read(value.clone()).unwrap_err();
            assert!(fault.contains(reason), "{value}: {fault}");
        }
    }

    #[test]
    fn the_most_specific_section_counts() {
        let section = |usd: i64| json!({ "max_usd": usd, "window": "1h" });
        let config = read(json!({
            "caller": { "acme/planner": section(1), "planner": section(2), "*": section(3) },
            "skill": { "research/sum": section(4), "sum": section(5) },
        }))
        .unwrap();
        let usd = |limit: Option<Limit>| limit.and_then(|limit| limit.caps.usd).map(|usd| usd.0 / 1_000_000);
        assert_eq!(usd(config.caller("acme", "planner")), Some(1));
        assert_eq!(usd(config.caller("other", "planner")), Some(2));
        assert_eq!(usd(config.caller("acme", "writer")), Some(3));
        assert_eq!(usd(config.skill("research", "sum")), Some(4));
        assert_eq!(usd(config.skill("writer", "sum")), Some(5));
        assert_eq!(usd(config.skill("writer", "x")), None);
        assert_eq!(config.agent("research"), None);
        assert!(config.names_skill("research", "sum") && config.names_skill("writer", "sum"));
        assert!(!config.names_skill("research", "x") && !config.names_skill("research", "*"));
    }
}
