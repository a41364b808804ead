//! Which agent a call is for, and whether the call is one that agent takes.

use std::sync::Arc;

use chancery_protocol::{AgentCard, CallContext, Error, ErrorKind, Message};
use chancery_rules::routing::takes_media_type;

use crate::agents::Agent;
use crate::service::Inner;

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
