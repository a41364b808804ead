//! What a selector may know of a task, and whether a card offers it.

use std::time::Duration;

use chancery_protocol::AgentCard;

/// The part of a task that choosing a peer needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskSpec<'a> {
    /// Empty when the caller named none; then every skill will do.
    pub skill_id: &'a str,
    /// The estimated number of tokens.
    pub estimated_tokens: Option<u64>,
    /// How long the caller will wait.
    pub deadline: Option<Duration>,
    /// Media types of the parts that name one.
    pub input_modes: &'a [&'a str],
    /// Capabilities by their names on the card (`streaming`, `pushNotifications`), extensions by their URIs, or tags of the skill.
    pub required_capabilities: &'a [&'a str],
}

impl TaskSpec<'_> {
    /// Whether a card has the skill and takes the media types. Selectors are only shown peers whose card does.
    pub fn is_offered_by(&self, card: &AgentCard) -> bool {
        let skilled = self.skill_id.is_empty() || card.skills.iter().any(|skill| skill.id == self.skill_id);
        skilled && self.input_modes.iter().all(|mode| takes(card, self.skill_id, mode))
    }

    /// Whether a card lists every required capability.
    pub fn is_within_capabilities_of(&self, card: &AgentCard) -> bool {
        self.required_capabilities.iter().all(|wanted| lists(card, self.skill_id, wanted))
    }
}

fn lists(card: &AgentCard, skill_id: &str, wanted: &str) -> bool {
    let flags = &card.capabilities;
    let flag = match wanted {
        "streaming" => flags.streaming,
        "pushNotifications" | "push_notifications" => flags.push_notifications,
        "extendedAgentCard" | "extended_agent_card" => flags.extended_agent_card,
        _ => None,
    };
    let tagged = |tag: &String| tag == wanted;
    flag == Some(true)
        || flags.extensions.iter().any(|extension| extension.uri == wanted)
        || card
            .skills
            .iter()
            .filter(|skill| skill_id.is_empty() || skill.id == skill_id)
            .any(|skill| skill.tags.iter().any(tagged))
}

/// A skill's own media types count beside the card's. A card that names none at all takes anything.
fn takes(card: &AgentCard, skill_id: &str, media_type: &str) -> bool {
    let skills = card.skills.iter().filter(|skill| skill_id.is_empty() || skill.id == skill_id);
    let mut modes = card.default_input_modes.iter().chain(skills.flat_map(|skill| &skill.input_modes)).peekable();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    modes.peek().is_none() || modes.any(|mode| takes_media_type(mode, essence))
}

/// `*/*` and `text/*` match as in HTTP; `text` is how older cards write `text/plain`.
pub fn takes_media_type(mode: &str, essence: &str) -> bool {
    let mode = if mode == "text" { "text/plain" } else { mode };
    match mode.split_once('/') {
        Some(("*", "*")) => true,
        Some((kind, "*")) => essence.split_once('/').is_some_and(|(other, _)| other.eq_ignore_ascii_case(kind)),
        _ => mode.eq_ignore_ascii_case(essence),
    }
}
