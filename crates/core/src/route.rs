//! Which agent a call is for, and whether the call is one that agent takes.

use std::sync::Arc;

use chancery_protocol::{AgentCard, CallContext, Error, ErrorKind, Message};
use chancery_rules::routing::takes_media_type;

use crate::admit::{Admitted, Call};
use crate::agents::Agent;
use crate::decide::{Denial, Verdicts};
use crate::runner::Asked;
use crate::service::Inner;
use crate::{Fact, Rule};

impl Inner {
    pub(crate) fn route(&self, context: &CallContext) -> Result<Arc<Agent>, Error> {
        let agent = self.agents.load().called(context.agent.as_ref())?;
        let missing = agent
            .card
            .capabilities
            .extensions
            .iter()
            .find(|extension| extension.required && !context.extensions.contains(&extension.uri));
        match missing {
            None => Ok(agent),
            Some(extension) => Err(Error::new(
                ErrorKind::ExtensionSupportRequired,
                format!("this agent requires the extension {}; ask for it in A2A-Extensions", extension.uri),
            )
            .with_fact("extension", &extension.uri)),
        }
    }
}

/// A call whose agent, or replica of an agent, is settled. Only this step makes one.
#[derive(Debug)]
pub(crate) struct Routed {
    pub(crate) admitted: Admitted,
    pub(crate) selected: Option<Arc<str>>,
}

impl Inner {
    /// Lets the agent's runner choose, where nothing binds the call to somebody already.
    pub(crate) fn choose(
        &self,
        call: &Call<'_>,
        message: &Message,
        admitted: Admitted,
        bound: bool,
        verdicts: &mut Verdicts,
    ) -> Result<Routed, Denial> {
        let asked = Asked {
            message,
            skill: call.skill.id().map(|skill| &**skill),
            estimated_tokens: admitted.estimated.estimate.tokens.filter(|tokens| *tokens > 0),
        };
        let selected = if bound { None } else { call.agent.runner.select(&asked).map_err(nobody)? };
        verdicts.pass(Rule::Selector, || match &selected {
            Some(peer) => vec![("peer".into(), Fact::Text(Arc::clone(peer)))],
            None => Vec::new(),
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
