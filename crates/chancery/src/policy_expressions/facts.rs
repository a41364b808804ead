//! What a condition can ask about a call, by name.

use cel::common::types::{CelDouble, CelInt, CelString};
use cel::common::value::CowVal;
use cel::context::VariableResolver;
use chancery_rules::MicroUsd;
use chancery_rules::lineage::Attribution;
use chancery_rules::policy::CallFacts;

/// The one that is another for nearly every call.
pub(super) const MONEY: &str = "remaining_usd";

/// Every name, with what it stands for in [`Variables`].
pub(super) const NAMES: [&str; 10] =
    ["caller", "tenant", "agent", "skill", "operation", "depth", "attribution", MONEY, "version", "binding"];

/// The facts of a call for the interpreter. A value is built only when an expression reads it, and nothing is
/// copied.
pub(super) struct Variables<'a> {
    facts: &'a CallFacts<'a>,
}

impl<'a> Variables<'a> {
    pub(super) fn of(facts: &'a CallFacts<'a>) -> Self {
        Self { facts }
    }
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let facts = self.facts;
        let text = match variable {
            "caller" => facts.caller,
            "tenant" => facts.tenant,
            "agent" => facts.agent,
            // Empty if nobody knows: a condition that compares it is then false, not broken.
            "skill" => facts.skill.unwrap_or_default(),
            "operation" => facts.operation,
            "depth" => return Some(CowVal::owned(CelInt::from(i64::from(facts.depth)))),
            "attribution" => facts.attribution.as_str(),
            // More than any number without a cap, for the same reason.
            MONEY => {
                let usd = facts.remaining_usd.map_or(f64::INFINITY, |MicroUsd(micros)| micros as f64 / 1e6);
                return Some(CowVal::owned(CelDouble::from(usd)));
            }
            "version" => facts.version,
            "binding" => facts.binding,
            _ => return None,
        };
        Some(CowVal::owned(CelString::from(text)))
    }
}

/// A call on which a condition is tried out when it is read.
pub(super) fn made_up() -> CallFacts<'static> {
    CallFacts {
        caller: "caller",
        tenant: "tenant",
        agent: "agent",
        skill: Some("skill"),
        operation: "SendMessage",
        depth: 1,
        attribution: Attribution::Verified,
        remaining_usd: Some(MicroUsd(1_000_000)),
        version: "1.0",
        binding: "JSONRPC",
    }
}
