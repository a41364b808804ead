//! The promises of a card, apart from their wording: an operator should review a change of them.

use chancery_identity::{SealKey, jcs};
use chancery_protocol::AgentCard;
use serde_json::json;

/// A digest of addresses, skills, schemes, modes and capabilities. Names, descriptions, versions, icons and examples do not
/// count.
pub fn structure(card: &AgentCard) -> String {
    let mut skills: Vec<_> = card
        .skills
        .iter()
        .map(|skill| json!([skill.id, skill.input_modes, skill.output_modes, skill.security_requirements]))
        .collect();
    skills.sort_by_key(ToString::to_string);
    let extensions: Vec<_> =
        card.capabilities.extensions.iter().map(|extension| json!([extension.uri, extension.required])).collect();
    let promised = json!({
        "interfaces": card.supported_interfaces,
        "skills": skills,
        "schemes": card.security_schemes,
        "requirements": card.security_requirements,
        "input": card.default_input_modes,
        "output": card.default_output_modes,
        "streaming": card.capabilities.streaming,
        "push": card.capabilities.push_notifications,
        "extended": card.capabilities.extended_agent_card,
        "extensions": extensions,
    });
    let bytes = jcs::canonical(&promised).unwrap_or_else(|_| promised.to_string().into_bytes());
    SealKey::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{AgentInterface, AgentSkill};

    fn card() -> AgentCard {
        let skill = |id: &str| AgentSkill {
            id: id.into(),
            name: id.into(),
            description: "does it".into(),
            tags: Vec::new(),
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        };
        let interface = AgentInterface {
            url: "https://h".into(),
            protocol_binding: "JSONRPC".into(),
            tenant: None,
            protocol_version: "1.0".into(),
        };
        AgentCard { skills: vec![skill("a"), skill("b")], supported_interfaces: vec![interface], ..AgentCard::default() }
    }

    #[test]
    fn words_may_change_and_promises_may_not() {
        let before = structure(&card());
        let mut words = card();
        words.description = "better words".into();
        words.version = "2".into();
        words.skills[0].description = "does it well".into();
        words.skills.reverse();
        assert_eq!(structure(&words), before);

        let changes: [fn(&mut AgentCard); 5] = [
            |card| card.supported_interfaces[0].url = "https://elsewhere".into(),
            |card| card.skills.truncate(1),
            |card| card.capabilities.streaming = Some(true),
            |card| card.default_input_modes.push("text/plain".into()),
            |card| card.security_requirements.push(Default::default()),
        ];
        for change in changes {
            let mut changed = card();
            change(&mut changed);
            assert_ne!(structure(&changed), before);
        }
    }
}
