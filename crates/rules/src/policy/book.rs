//! All task policies of a node, and which of them hold for a call.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::config::{PolicyConfig, TaskPolicy};

/// Put together once, when the config is read; looking a policy up merges at most two.
#[derive(Debug, Default)]
pub struct PolicyBook {
    default: Arc<TaskPolicy>,
    /// With the default behind it.
    skills: HashMap<Arc<str>, Arc<TaskPolicy>>,
    /// As it stands in the config.
    bare_skills: HashMap<Arc<str>, TaskPolicy>,
    callers: HashMap<Arc<str>, OfCaller>,
    /// Every skill that has a policy, of whichever caller.
    named: HashSet<Arc<str>>,
}

#[derive(Debug)]
struct OfCaller {
    bare: TaskPolicy,
    /// With the default behind it.
    whole: Arc<TaskPolicy>,
    /// With the caller's, the skill's and the default behind it.
    skills: HashMap<Arc<str>, Arc<TaskPolicy>>,
}

impl PolicyBook {
    /// Makes the book of a config.
    pub fn new(config: &PolicyConfig) -> Self {
        let default = &config.default;
        let skills = config.skill.iter().map(|(id, policy)| (id.clone(), Arc::new(policy.or(default)))).collect();
        let callers = config.caller.iter().map(|(name, caller)| {
            let bare = caller.policy();
            let behind = |skill: &str| config.skill.get(skill).map_or_else(|| bare.or(default), |of| bare.or(of).or(default));
            let skills = caller.skill.iter().map(|(id, policy)| (id.clone(), Arc::new(policy.or(&behind(id))))).collect();
            (name.clone(), OfCaller { whole: Arc::new(bare.or(default)), bare, skills })
        });
        let of_callers = config.caller.values().flat_map(|caller| caller.skill.keys());
        Self {
            named: config.skill.keys().chain(of_callers).cloned().collect(),
            callers: callers.collect(),
            skills,
            bare_skills: config.skill.clone().into_iter().collect(),
            default: Arc::new(default.clone()),
        }
    }

    /// Whether a skill has a policy of its own, for any caller.
    pub fn names_skill(&self, skill: &str) -> bool {
        self.named.contains(skill)
    }

    /// The most specific first: (caller, skill), caller, skill, default. What one leaves open the next decides. A caller's policy
    /// stands under `tenant/name`, or else under its name.
    pub fn resolve(&self, tenant: &str, caller: &str, skill: Option<&str>) -> Arc<TaskPolicy> {
        let full = || self.callers.get(format!("{tenant}/{caller}").as_str());
        let of_caller = if self.callers.is_empty() { None } else { full().or_else(|| self.callers.get(caller)) };
        let Some(of_caller) = of_caller else {
            return skill.and_then(|skill| self.skills.get(skill)).unwrap_or(&self.default).clone();
        };
        let Some(skill) = skill else { return of_caller.whole.clone() };
        if let Some(exact) = of_caller.skills.get(skill) {
            return exact.clone();
        }
        match self.bare_skills.get(skill) {
            Some(of_skill) => Arc::new(of_caller.bare.or(of_skill).or(&self.default)),
            None => of_caller.whole.clone(),
        }
    }
}
