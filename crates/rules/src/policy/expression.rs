//! Rules from the operator's expressions. The parser of expressions is behind a trait; their effect is here.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;

use super::PolicyError;
use super::config::RuleConfig;
use crate::MicroUsd;
use crate::lineage::Attribution;

/// What a rule may look at. Everything in it is known here, nothing is only claimed.
#[derive(Clone, Debug)]
pub struct CallFacts<'a> {
    /// The name of the caller.
    pub caller: &'a str,
    /// The tenant of the caller.
    pub tenant: &'a str,
    /// The agent the call goes to.
    pub agent: &'a str,
    /// The skill that the call asks for.
    pub skill: Option<&'a str>,
    /// `SendMessage`, `GetTask` …
    pub operation: &'a str,
    /// The number of calls between the root and this one.
    pub depth: u32,
    /// How the call was placed in its tree.
    pub attribution: Attribution,
    /// What the tree may still spend; none without a cap.
    pub remaining_usd: Option<MicroUsd>,
    /// Of the protocol.
    pub version: &'a str,
    /// The binding that the call came over.
    pub binding: &'a str,
}

/// A condition that was understood when the config was read.
pub trait Expression: Send + Sync + Debug {
    /// Whether it holds, or why it cannot be evaluated. The same facts always give the same answer.
    fn holds(&self, facts: &CallFacts<'_>) -> Result<bool, String>;

    /// Whether the answer can change with what is left to spend, which is another amount for nearly every call.
    fn asks_for_money(&self) -> bool {
        true
    }
}

/// A condition that several rulebooks share, one after the other.
impl<E: Expression + ?Sized> Expression for Arc<E> {
    fn holds(&self, facts: &CallFacts<'_>) -> Result<bool, String> {
        (**self).holds(facts)
    }

    fn asks_for_money(&self) -> bool {
        (**self).asks_for_money()
    }
}

/// What a rule does when its condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// Refuses what it holds for.
    DenyWhen,
    /// Refuses what it does not hold for.
    AllowWhen,
}

/// A rule with a condition.
#[derive(Debug)]
pub struct PolicyRule {
    /// The name of the rule.
    pub name: Arc<str>,
    /// What the rule does when its condition holds.
    pub kind: RuleKind,
    /// The condition.
    pub condition: Box<dyn Expression>,
}

impl PolicyRule {
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
pub struct Rules {
    rules: Vec<PolicyRule>,
    passed: Passed,
}

impl Rules {
    /// Every fault of every rule, if there is one.
    pub fn new(
        configs: &[RuleConfig],
        mut read: impl FnMut(&str) -> Result<Box<dyn Expression>, String>,
    ) -> Result<Self, Vec<String>> {
        let (mut rules, mut faults) = (Vec::<PolicyRule>::new(), Vec::new());
        for config in configs {
            match PolicyRule::new(config, &mut read) {
                Ok(rule) if rules.iter().any(|earlier| earlier.name == rule.name) => {
                    faults.push(format!("the rule {:?} is there twice", rule.name));
                }
                Ok(rule) => rules.push(rule),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(Self { rules, passed: Passed::default() }) } else { Err(faults) }
    }

    /// Adds a rule behind the others. A second rule of the same name is an error.
    pub fn add(&mut self, rule: PolicyRule) -> Result<(), String> {
        if self.rules.iter().any(|earlier| earlier.name == rule.name) {
            return Err(format!("the rule {:?} is there twice", rule.name));
        }
        self.rules.push(rule);
        Ok(())
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the rules in their order.
    pub fn iter(&self) -> impl Iterator<Item = &PolicyRule> {
        self.rules.iter()
    }

    /// The first rule that refuses decides. One that cannot be worked out refuses.
    pub fn judge(&self, facts: &CallFacts<'_>) -> Result<(), PolicyError> {
        let call = facts.but_for_money();
        if self.passed.contains(&call) {
            return self.ask(facts, |rule| rule.condition.asks_for_money());
        }
        self.ask(facts, |_| true)?;
        self.passed.add(call);
        Ok(())
    }

    fn ask(&self, facts: &CallFacts<'_>, which: impl Fn(&PolicyRule) -> bool) -> Result<(), PolicyError> {
        for rule in self.rules.iter().filter(|rule| which(rule)) {
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

/// Calls that every rule let through which does not ask for money: working them out again would give the same.
#[derive(Debug, Default)]
struct Passed(RwLock<HashSet<Box<[u8]>, RandomState>>);

/// So many are remembered. Skills are named by callers, so they could be any number.
const MOST_PASSED: usize = 10_000;

impl Passed {
    fn contains(&self, call: &[u8]) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(call)
    }

    fn add(&self, call: Vec<u8>) {
        let mut passed = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if passed.len() < MOST_PASSED {
            passed.insert(call.into());
        }
    }
}

impl CallFacts<'_> {
    /// All of them but what is left to spend, so that no two calls that differ look the same.
    fn but_for_money(&self) -> Vec<u8> {
        let Self { caller, tenant, agent, skill, operation, depth, attribution, remaining_usd: _, version, binding } = self;
        let texts = [caller, tenant, agent, skill.unwrap_or_default(), operation, attribution.as_str(), version, binding];
        let mut all = Vec::with_capacity(texts.iter().map(|text| text.len() + 4).sum::<usize>() + 5);
        all.extend(depth.to_le_bytes());
        all.push(u8::from(skill.is_some()));
        for text in texts {
            all.extend((text.len() as u32).to_le_bytes());
            all.extend(text.as_bytes());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Debug)]
    struct Counting {
        asked: Arc<AtomicU32>,
        for_money: bool,
    }

    impl Expression for Counting {
        fn holds(&self, facts: &CallFacts<'_>) -> Result<bool, String> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let poor = facts.remaining_usd.is_some_and(|usd| usd.0 < 5);
            Ok(if self.for_money { poor } else { facts.caller == "mallory" || facts.depth > 3 })
        }

        fn asks_for_money(&self) -> bool {
            self.for_money
        }
    }

    #[test]
    fn what_was_let_through_is_not_worked_out_again_unless_it_asks_for_money() {
        let asked: [Arc<AtomicU32>; 2] = Default::default();
        let rule = |for_money: bool| PolicyRule {
            name: if for_money { "poor" } else { "stranger" }.into(),
            kind: RuleKind::DenyWhen,
            condition: Box::new(Counting { asked: Arc::clone(&asked[usize::from(for_money)]), for_money }),
        };
        let rules = Rules { rules: vec![rule(true), rule(false)], passed: Passed::default() };
        let counts = || asked.each_ref().map(|asked| asked.load(Ordering::Relaxed));
        let facts = CallFacts {
            caller: "ada",
            tenant: "acme",
            agent: "echo",
            skill: None,
            operation: "SendMessage",
            depth: 0,
            attribution: Attribution::Root,
            remaining_usd: Some(MicroUsd(9)),
            version: "1.0",
            binding: "JSONRPC",
        };
        for _ in 0..3 {
            rules.judge(&facts).unwrap();
        }
        assert_eq!(counts(), [1, 3]);
        rules.judge(&CallFacts { remaining_usd: Some(MicroUsd(4)), ..facts.clone() }).unwrap_err();
        for other in [
            CallFacts { caller: "mallory", ..facts.clone() },
            CallFacts { depth: 4, ..facts.clone() },
            CallFacts { caller: "mallory", tenant: "", agent: "acmeecho", ..facts.clone() },
        ] {
            for _ in 0..2 {
                rules.judge(&other).unwrap_err();
            }
        }
        assert_eq!(counts()[0], 7, "a refusal is worked out each time");
        rules.judge(&CallFacts { skill: Some(""), ..facts.clone() }).unwrap();
        assert_eq!(counts()[0], 8, "no skill is not the same as one without a name");
    }
}
