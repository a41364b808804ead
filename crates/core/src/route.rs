//! Which agent a call is for, and whether the call is one that agent takes.

use std::sync::Arc;

use chancery_protocol::{AgentCard, CallContext, Error, ErrorKind, Message, Request};
use chancery_rules::routing::takes_media_type;

use crate::admit::Admitted;
use crate::agents::Agent;
use crate::decide::{Denial, Verdicts};
use crate::governed_call::GovernedCall;
use crate::runner::SelectorQuery;
use crate::service::ChanceryInner;
use crate::{Fact, Rule};

impl ChanceryInner {
    /// The agent of a call: the one at its address, or at the root address the one of the task or the skill it names.
    pub(crate) async fn route(&self, context: &CallContext, request: &Request) -> Result<Arc<Agent>, Error> {
        let agents = self.agents.load_full();
        let agent = if self.is_routed(context, &agents) {
            Box::pin(self.route_at_root(context, &agents, request)).await?
        } else {
            agents.called(context.agent.as_ref())?
        };
        match missing_extension(&agent, context) {
            None => Ok(agent),
            Some(uri) => Err(Error::new(
                ErrorKind::ExtensionSupportRequired,
                format!("this agent requires the extension {uri}; ask for it in A2A-Extensions"),
            )
            .with_fact("extension", uri)),
        }
    }
}

/// An extension that an agent requires and a call does not ask for.
pub(crate) fn missing_extension<'a>(agent: &'a Agent, context: &CallContext) -> Option<&'a str> {
    let required = agent.card.capabilities.extensions.iter().filter(|extension| extension.required);
    required.map(|extension| &*extension.uri).find(|uri| !context.extensions.iter().any(|asked| asked == uri))
}

/// A call whose agent, or replica of an agent, is settled. Only this step makes one.
#[derive(Debug)]
pub(crate) struct Routed {
    admitted: Admitted,
    selected: Option<Arc<str>>,
}

impl Routed {
    /// The call that was admitted, and who is to be asked, where there was a choice.
    pub(crate) fn into_parts(self) -> (Admitted, Option<Arc<str>>) {
        (self.admitted, self.selected)
    }
}

impl ChanceryInner {
    /// Lets the agent's runner choose, where nothing binds the call to a replica.
    pub(crate) fn choose(
        &self,
        call: &GovernedCall<'_>,
        message: &Message,
        admitted: Admitted,
        bound: bool,
        verdicts: &mut Verdicts,
    ) -> Result<Routed, Denial> {
        let asked = SelectorQuery {
            message,
            skill: call.skill.id().map(|skill| &**skill),
            estimated_tokens: admitted.estimated().estimate.tokens.filter(|tokens| *tokens > 0),
        };
        let selected = if bound { None } else { call.agent.runner.select(&asked).map_err(nobody)? };
        verdicts.pass(Rule::Selector, || {
            let peer = selected.as_ref().map(|peer| ("peer".into(), Fact::Name(Arc::clone(peer))));
            let mut facts: Vec<_> = self.route_fact(call.context, call.agent).into_iter().chain(peer).collect();
            if let Some(by) = call.agent.runner.lineage_by(selected.as_deref()) {
                let most = u64::try_from(call.rules.lineage.max_bytes).unwrap_or(u64::MAX);
                facts.extend([("lineage".into(), Fact::text(by)), ("lineage_max_bytes".into(), Fact::Number(most))]);
            }
            facts
        });
        Ok(Routed { admitted, selected })
    }
}

fn nobody(error: Error) -> Denial {
    let facts = error.facts.iter().map(|(name, value)| (*name, value.clone())).collect::<Vec<_>>();
    let denial = Denial::new(Rule::Selector, error.kind, error.message.into_owned()).retry_after(error.retry_after);
    facts.into_iter().fold(denial, |denial, (name, value)| denial.with_fact(name, value))
}

/// Refuses parts of a media type that neither the agent nor any of its skills takes. Parts that name none pass.
pub(crate) fn check_media_types(card: &AgentCard, message: &Message) -> Result<(), Error> {
    let taken = || card.default_input_modes.iter().chain(card.skills.iter().flat_map(|skill| &skill.input_modes));
    let refused = message.parts.iter().filter_map(|part| part.media_type.as_deref()).find(|media_type| {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        !taken().any(|mode| takes_media_type(mode, essence))
    });
    match refused {
        None => Ok(()),
        Some(media_type) => Err(Error::new(ErrorKind::ContentTypeNotSupported, format!("this agent does not take {media_type}"))
            .with_fact("mediaType", media_type)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{Part, Role};

    #[test]
    fn media_types_are_matched_as_in_http() {
        let card = AgentCard { default_input_modes: vec!["text".into(), "image/*".into()], ..AgentCard::default() };
        let message = |media_type: Option<&str>| {
            let part = Part { media_type: media_type.map(str::to_owned), ..Part::text("x") };
            Message::of_parts(Role::User, "m", vec![part])
        };
        for taken in [None, Some("text/plain"), Some("text/plain; charset=utf-8"), Some("IMAGE/png")] {
            assert_eq!(check_media_types(&card, &message(taken)), Ok(()), "{taken:?}");
        }
        let refused = check_media_types(&card, &message(Some("application/x-unknown"))).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::ContentTypeNotSupported);
    }
}
