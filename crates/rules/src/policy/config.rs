//! The `[policy]` section.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::MicroUsd;
use crate::setting::some_more_than_zero;

/// The default of tasks of one caller with one skill that may run at once.
pub const DEFAULT_CONCURRENCY: u32 = 16;

/// Bounds of one task. A field that is not set is left to the next less specific policy. Without any policy
/// there is no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskPolicy {
    /// Tokens a task may take; one that takes more is stopped.
    #[serde(deserialize_with = "some_more_than_zero", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What a task may be expected to cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<MicroUsd>,
    /// How long a task may run before it is stopped.
    #[serde(deserialize_with = "some_more_than_zero", skip_serializing_if = "Option::is_none")]
    pub max_duration_ms: Option<u64>,
    /// The skills that may be asked for; any, if it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_skills: Option<Arc<[Arc<str>]>>,
    /// Tasks of one caller with one skill that may run at once.
    #[serde(deserialize_with = "some_more_than_zero", skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
}

impl TaskPolicy {
    /// This one, and the other where this one is silent.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            max_tokens: self.max_tokens.or(other.max_tokens),
            max_cost_usd: self.max_cost_usd.or(other.max_cost_usd),
            max_duration_ms: self.max_duration_ms.or(other.max_duration_ms),
            allowed_skills: self.allowed_skills.as_ref().or(other.allowed_skills.as_ref()).cloned(),
            max_concurrency: self.max_concurrency.or(other.max_concurrency),
        }
    }

    /// Returns the largest number of tasks at once.
    pub fn concurrency(&self) -> u32 {
        self.max_concurrency.unwrap_or(DEFAULT_CONCURRENCY)
    }
}

/// `[policy.default]`, `[policy.caller.NAME]`, `[policy.skill.ID]`, `[policy.caller.NAME.skill.ID]` and `[[policy.rules]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// The policy of calls that nothing else is set for.
    pub default: TaskPolicy,
    /// The policies of callers, by name.
    pub caller: BTreeMap<Arc<str>, CallerPolicy>,
    /// The policies of skills, by id.
    pub skill: BTreeMap<Arc<str>, TaskPolicy>,
    /// The rules with conditions.
    pub rules: Vec<RuleConfig>,
}

/// The policy of a caller, and within it of some skills.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallerPolicy {
    /// The largest number of tokens of one task.
    #[serde(deserialize_with = "some_more_than_zero", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The largest cost of one task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<MicroUsd>,
    /// The longest time of one task.
    #[serde(deserialize_with = "some_more_than_zero", skip_serializing_if = "Option::is_none")]
    pub max_duration_ms: Option<u64>,
    /// The only skills that the caller may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_skills: Option<Arc<[Arc<str>]>>,
    /// The largest number of tasks at once.
    #[serde(deserialize_with = "some_more_than_zero", skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// The caller's policies of skills, by id.
    pub skill: BTreeMap<Arc<str>, TaskPolicy>,
}

impl CallerPolicy {
    /// The bounds of the caller, for every skill.
    pub fn policy(&self) -> TaskPolicy {
        TaskPolicy {
            max_tokens: self.max_tokens,
            max_cost_usd: self.max_cost_usd,
            max_duration_ms: self.max_duration_ms,
            allowed_skills: self.allowed_skills.clone(),
            max_concurrency: self.max_concurrency,
        }
    }
}

/// A rule in the operator's own words: one of the two conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// The name of the rule.
    pub name: Arc<str>,
    /// Calls for which this holds are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny_when: Option<String>,
    /// Calls for which this does not hold are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_when: Option<String>,
}
