//! The policy checks before a task is sent, in their order: the skill, a slot, the cost and the tokens.

use std::sync::Arc;

use chancery_protocol::Caller;

use super::{PolicyError, Slot, Slots, TaskPolicy};
use crate::MicroUsd;
use crate::budget::Price;

/// What a call wants.
#[derive(Clone, Debug)]
pub struct PolicyQuestion<'a> {
    pub caller: &'a Caller,
    pub skill: &'a AskedSkill,
    /// The expected cost, if it is known.
    pub estimate: Option<MicroUsd>,
    /// What its caller says it will take, however little of that is held for it.
    pub hint: Price,
    /// Tasks that may run at once where no policy says how many.
    pub concurrency: u32,
}

/// The skill a call is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AskedSkill {
    /// The call names it, and the agent's card or the operator knows it.
    Named(Arc<str>),
    /// The call names an unknown skill: it may be any text, so nothing is counted by it.
    Unlisted(Arc<str>),
    /// The agent has no other.
    Only(Arc<str>),
    #[default]
    Unknown,
}

impl AskedSkill {
    /// What the call says, else the agent's only skill.
    pub fn of<'a>(named: Option<&Arc<str>>, agents: impl IntoIterator<Item = &'a Arc<str>>) -> Self {
        if let Some(named) = named {
            return Self::Named(named.clone());
        }
        let mut agents = agents.into_iter();
        match (agents.next(), agents.next()) {
            (Some(only), None) => Self::Only(only.clone()),
            _ => Self::Unknown,
        }
    }

    /// What is counted by: budgets, slots, and what calls cost before.
    pub fn id(&self) -> Option<&Arc<str>> {
        match self {
            Self::Named(skill) | Self::Only(skill) => Some(skill),
            Self::Unlisted(_) | Self::Unknown => None,
        }
    }

    /// The skill for the judgement and the report: also an unknown name.
    pub fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Named(skill) | Self::Only(skill) | Self::Unlisted(skill) => Some(skill),
            Self::Unknown => None,
        }
    }
}

/// Lets a call through and gives it its slot, or says which bound it meets first. A refused call holds nothing.
pub fn judge(policy: &TaskPolicy, ask: &PolicyQuestion<'_>, slots: &Arc<Slots>) -> Result<Slot, PolicyError> {
    let name = ask.skill.name();
    if let Some(allowed) = &policy.allowed_skills
        && !name.is_some_and(|skill| allowed.contains(skill))
    {
        return Err(PolicyError::SkillDenied(name.cloned()));
    }
    let slot = slots.take(ask.caller, ask.skill.id(), policy.max_concurrency.unwrap_or(ask.concurrency))?;
    policy.check_cost(ask.estimate.max(ask.hint.usd))?;
    policy.check_tokens(ask.hint.tokens.unwrap_or(0))?;
    Ok(slot)
}

impl TaskPolicy {
    fn check_cost(&self, expected: Option<MicroUsd>) -> Result<(), PolicyError> {
        match (expected, self.max_cost_usd) {
            (Some(expected), Some(limit)) if expected > limit => {
                Err(PolicyError::Exceeded { field: "max_cost_usd", actual: expected.to_string(), limit: limit.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// Asked of what a caller says beforehand, and again and again while a task runs.
    pub fn check_tokens(&self, taken: u64) -> Result<(), PolicyError> {
        match self.max_tokens {
            Some(limit) if taken > limit => {
                Err(PolicyError::Exceeded { field: "max_tokens", actual: taken.to_string(), limit: limit.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// Asked when a task has run for so long.
    pub fn check_duration(&self, ran_ms: u64) -> Result<(), PolicyError> {
        match self.max_duration_ms {
            Some(limit_ms) if ran_ms > limit_ms => Err(PolicyError::Timeout { limit_ms }),
            _ => Ok(()),
        }
    }
}
