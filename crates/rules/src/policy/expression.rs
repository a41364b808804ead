//! Rules in the operator's own words. How the words are read is somebody else's business; what follows from them is not.

use std::fmt::Debug;
use std::sync::Arc;

use super::PolicyError;
use super::config::RuleConfig;
use crate::MicroUsd;
use crate::lineage::Attribution;

/// What a rule may look at. Everything in it is known here, nothing is only claimed.
#[derive(Clone, Debug)]
pub struct CallFacts<'a> {
    pub caller: &'a str,
    pub tenant: &'a str,
    /// The agent the call goes to.
    pub agent: &'a str,
    pub skill: Option<&'a str>,
    /// `SendMessage`, `GetTask` …
    pub operation: &'a str,
    pub depth: u32,
    pub attribution: Attribution,
    /// What the tree may still spend; none without a cap.
    pub remaining_usd: Option<MicroUsd>,
    /// Of the protocol.
    pub version: &'a str,
    pub binding: &'a str,
}

/// A condition that was understood when the config was read.
pub trait Expression: Send + Sync + Debug {
    /// Whether it holds, or why nobody can tell.
    fn holds(&self, facts: &CallFacts<'_>) -> Result<bool, String>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// Refuses what it holds for.
    DenyWhen,
    /// Refuses what it does not hold for.
    AllowWhen,
}

#[derive(Debug)]
pub struct Rule {
    pub name: Arc<str>,
    pub kind: RuleKind,
    pub condition: Box<dyn Expression>,
}

impl Rule {
    /// `read` turns the text of a condition into one.
    pub fn new(config: &RuleConfig, read: impl FnOnce(&str) -> Result<Box<dyn Expression>, String>) -> Result<Self, String> {
        let (kind, text) = match (&config.deny_when, &config.allow_when) {
            (Some(text), None) => (RuleKind::DenyWhen, text),
            (None, Some(text)) => (RuleKind::AllowWhen, text),
            _ => return Err(format!("the rule {:?} needs one of deny_when and allow_when", config.name)),
        };
        let condition = read(text).map_err(|fault| format!("the rule {:?}: {fault}", config.name))?;
        Ok(Self { name: config.name.clone(), kind, condition })
    }
}

/// All rules, in the order of the config.
#[derive(Debug, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Every fault of every rule, if there is one.
    pub fn new(
        configs: &[RuleConfig],
        mut read: impl FnMut(&str) -> Result<Box<dyn Expression>, String>,
    ) -> Result<Self, Vec<String>> {
        let (mut rules, mut faults) = (Vec::<Rule>::new(), Vec::new());
        for config in configs {
            match Rule::new(config, &mut read) {
                Ok(rule) if rules.iter().any(|earlier| earlier.name == rule.name) => {
                    faults.push(format!("the rule {:?} is there twice", rule.name));
                }
                Ok(rule) => rules.push(rule),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(Self(rules)) } else { Err(faults) }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// The first rule that refuses decides. One that cannot be worked out refuses.
    pub fn judge(&self, facts: &CallFacts<'_>) -> Result<(), PolicyError> {
        for rule in &self.0 {
            let fault = match (rule.condition.holds(facts), rule.kind) {
                (Ok(false), RuleKind::DenyWhen) | (Ok(true), RuleKind::AllowWhen) => continue,
                (Ok(_), _) => None,
                (Err(fault), _) => Some(fault),
            };
            return Err(PolicyError::Denied { rule: rule.name.clone(), fault });
        }
        Ok(())
    }
}
