//! The last question before work is given out: may this caller have this skill now, at this cost?

use std::sync::Arc;

use chancery_protocol::IdentityProof;
use chancery_rules::policy::{CallFacts, DEFAULT_CONCURRENCY, PolicyError, PolicyQuestion, Slot, UNLIMITED, judge};

use crate::admit::Admitted;
use crate::decide::{Denial, Verdicts};
use crate::governed_call::GovernedCall;
use crate::route::Routed;
use crate::service::ChanceryInner;
use crate::{Fact, Rule};

/// A call that may be carried out: a slot is held for it. Only this step makes one.
#[derive(Debug)]
pub(crate) struct Permitted {
    admitted: Admitted,
    /// Who is to be asked, where there was a choice.
    selected: Option<Arc<str>>,
    slot: Slot,
}

impl Permitted {
    pub(crate) fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    pub(crate) fn admitted_mut(&mut self) -> &mut Admitted {
        &mut self.admitted
    }

    /// The call that was admitted, who is to be asked, and the slot that is held.
    pub(crate) fn into_parts(self) -> (Admitted, Option<Arc<str>>, Slot) {
        (self.admitted, self.selected, self.slot)
    }
}

impl ChanceryInner {
    pub(crate) fn permit(&self, call: &GovernedCall<'_>, routed: Routed, verdicts: &mut Verdicts) -> Result<Permitted, Denial> {
        let (admitted, selected) = routed.into_parts();
        let slot = self.judge(call, &admitted).map_err(|error| denied(&error))?;
        verdicts.pass(Rule::Policy, || {
            let skill = call.skill.name().map_or_else(|| Fact::text("unknown"), |skill| Fact::Name(Arc::clone(skill)));
            vec![("skill".into(), skill)]
        });
        Ok(Permitted { admitted, selected, slot })
    }

    fn judge(&self, call: &GovernedCall<'_>, admitted: &Admitted) -> Result<Slot, PolicyError> {
        let context = call.context;
        let ask = PolicyQuestion {
            caller: &context.caller,
            skill: &call.skill,
            estimate: admitted.estimated().estimate.expected.usd,
            hint: call.terms.hint(),
            // Where nobody is asked who they are, there is no caller to count by.
            concurrency: if context.standing.proof == IdentityProof::None { UNLIMITED } else { DEFAULT_CONCURRENCY },
        };
        let slot = judge(admitted.policy(), &ask, &self.govern.slots)?;
        if !call.rules.expressions.is_empty() {
            call.rules.expressions.judge(&CallFacts {
                caller: &context.caller.name,
                tenant: &context.caller.tenant,
                agent: &call.agent.name,
                skill: call.skill.name().map(|skill| &**skill),
                operation: "SendMessage",
                depth: admitted.kinship().depth,
                attribution: admitted.kinship().attribution,
                remaining_usd: self.govern.ledger.remaining(admitted.reservation().accounts(), self.govern.now()).usd,
                version: context.version.as_str(),
                binding: context.binding.as_str(),
            })?;
        }
        Ok(slot)
    }
}

fn denied(error: &PolicyError) -> Denial {
    let denial = Denial::new(Rule::Policy, error.kind(), format!("{}: {error}", error.kind().reason()));
    match error {
        PolicyError::Exceeded { field, actual, limit } => {
            denial.with_fact("field", field).with_fact("actual", actual).with_fact("limit", limit)
        }
        PolicyError::SkillDenied(skill) => denial.with_fact("skill", skill.as_deref().unwrap_or("unknown")),
        PolicyError::ConcurrencyFull { limit, skill, .. } => {
            denial.with_fact("limit", limit).with_fact("skill", skill.as_deref().unwrap_or("unknown"))
        }
        PolicyError::Timeout { limit_ms } => denial.with_fact("limit_ms", limit_ms),
        PolicyError::Denied { rule, fault } => {
            let denial = denial.with_fact("rule", rule);
            match fault {
                Some(fault) => denial.with_fact("fault", fault),
                None => denial,
            }
        }
    }
}
