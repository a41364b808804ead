//! A call as the steps of governance look at it: who asks which agent, for which skill, on which terms.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, SendMessage};
use chancery_rules::budget::Caps;
use chancery_rules::policy::AskedSkill;

use crate::agents::Agent;
use crate::govern::InForce;
use crate::govern::terms::CallTerms;
use crate::service::ChanceryInner;

/// A call as the steps look at it.
#[derive(Debug)]
pub(crate) struct GovernedCall<'a> {
    pub(crate) context: &'a CallContext,
    pub(crate) agent: &'a Arc<Agent>,
    pub(crate) rules: Arc<InForce>,
    pub(crate) terms: CallTerms,
    pub(crate) skill: AskedSkill,
    /// What other nodes let it cost, by the hop tokens that it brought of them.
    foreign_caps: Caps,
}

impl<'a> GovernedCall<'a> {
    pub(crate) fn new(
        inner: &ChanceryInner,
        context: &'a CallContext,
        agent: &'a Arc<Agent>,
        send: &SendMessage,
    ) -> Result<Self, Error> {
        let terms = CallTerms::of(send)?;
        let rules = inner.govern.rules.load_full();
        let skill = match terms.skill.as_deref() {
            Some(skill) if agent.lists(skill) || rules.names_skill(&agent.name, skill) => AskedSkill::Named(skill.into()),
            Some(skill) => AskedSkill::Unlisted(skill.into()),
            None => agent.only_skill(),
        };
        let mut call = Self { context, agent, rules, terms, skill, foreign_caps: Caps::NONE };
        if let Some(tokens) = call.hop_token() {
            let caps = inner.foreign_tokens(&tokens).into_iter().map(|token| token.budget);
            call.foreign_caps = caps.fold(Caps::NONE, Caps::narrowed);
        }
        Ok(call)
    }

    /// The hop tokens that came with it: in a header, or in metadata where none can be set.
    pub(crate) fn hop_token(&self) -> Option<Arc<str>> {
        self.context.hop_token.clone().or_else(|| self.terms.hop_token.as_deref().map(Arc::from))
    }

    /// What the caller wants to be spent at most, for the task and all below it.
    pub(crate) fn asked(&self) -> Caps {
        Caps { usd: self.terms.budget.usd, tokens: self.terms.budget.tokens, tasks: None }.narrowed(self.foreign_caps)
    }
}
