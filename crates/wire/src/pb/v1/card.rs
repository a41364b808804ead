//! The agent card.

use chancery_protocol::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill, Error,
};

use super::{proto, security};
use crate::pb::fields::{Within, list, metadata, of_peer, optional, or_empty, to_metadata};

/// Reads a peer's card. Texts it leaves empty stay empty: protobuf does not tell them from absent ones.
pub fn read(card: proto::AgentCard) -> Result<AgentCard, Error> {
    of_peer(read_card(card))
}

fn read_card(card: proto::AgentCard) -> Result<AgentCard, Error> {
    Ok(AgentCard {
        name: card.name,
        description: card.description,
        supported_interfaces: card.supported_interfaces.into_iter().map(read_interface).collect(),
        provider: card.provider.map(read_provider),
        version: card.version,
        documentation_url: card.documentation_url,
        capabilities: read_capabilities(card.capabilities.unwrap_or_default()).within("capabilities")?,
        security_schemes: security::read_schemes(card.security_schemes).within("security_schemes")?,
        security_requirements: card.security_requirements.into_iter().map(security::read_requirement).collect(),
        default_input_modes: card.default_input_modes,
        default_output_modes: card.default_output_modes,
        skills: card.skills.into_iter().map(read_skill).collect(),
        signatures: list(card.signatures, "signatures", read_signature)?,
        icon_url: card.icon_url,
    })
}

pub fn write(card: &AgentCard) -> proto::AgentCard {
    proto::AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        supported_interfaces: card.supported_interfaces.iter().map(write_interface).collect(),
        provider: card.provider.as_ref().map(write_provider),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone(),
        capabilities: Some(write_capabilities(&card.capabilities)),
        security_schemes: security::write_schemes(&card.security_schemes),
        security_requirements: card.security_requirements.iter().map(security::write_requirement).collect(),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(write_skill).collect(),
        signatures: card.signatures.iter().map(write_signature).collect(),
        icon_url: card.icon_url.clone(),
    }
}

fn read_interface(interface: proto::AgentInterface) -> AgentInterface {
    AgentInterface {
        url: interface.url,
        protocol_binding: interface.protocol_binding,
        tenant: optional(interface.tenant),
        protocol_version: interface.protocol_version,
    }
}

fn write_interface(interface: &AgentInterface) -> proto::AgentInterface {
    proto::AgentInterface {
        url: interface.url.clone(),
        protocol_binding: interface.protocol_binding.clone(),
        tenant: or_empty(interface.tenant.as_ref()),
        protocol_version: interface.protocol_version.clone(),
    }
}

pub(in crate::pb) fn read_provider(provider: proto::AgentProvider) -> AgentProvider {
    AgentProvider { url: provider.url, organization: provider.organization }
}

pub(in crate::pb) fn write_provider(provider: &AgentProvider) -> proto::AgentProvider {
    proto::AgentProvider { url: provider.url.clone(), organization: provider.organization.clone() }
}

fn read_capabilities(capabilities: proto::AgentCapabilities) -> Result<AgentCapabilities, Error> {
    Ok(AgentCapabilities {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extensions: list(capabilities.extensions, "extensions", read_extension)?,
        extended_agent_card: capabilities.extended_agent_card,
    })
}

fn write_capabilities(capabilities: &AgentCapabilities) -> proto::AgentCapabilities {
    proto::AgentCapabilities {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extensions: capabilities.extensions.iter().map(write_extension).collect(),
        extended_agent_card: capabilities.extended_agent_card,
    }
}

pub(in crate::pb) fn read_extension(extension: proto::AgentExtension) -> Result<AgentExtension, Error> {
    Ok(AgentExtension {
        uri: extension.uri,
        description: extension.description,
        required: extension.required,
        params: metadata(extension.params, "params")?,
    })
}

pub(in crate::pb) fn write_extension(extension: &AgentExtension) -> proto::AgentExtension {
    proto::AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone(),
        required: extension.required,
        params: to_metadata(extension.params.as_ref()),
    }
}

pub(in crate::pb) fn read_skill(skill: proto::AgentSkill) -> AgentSkill {
    AgentSkill {
        id: skill.id,
        name: skill.name,
        description: skill.description,
        tags: skill.tags,
        examples: skill.examples,
        input_modes: skill.input_modes,
        output_modes: skill.output_modes,
        security_requirements: skill.security_requirements.into_iter().map(security::read_requirement).collect(),
    }
}

pub(in crate::pb) fn write_skill(skill: &AgentSkill) -> proto::AgentSkill {
    proto::AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        security_requirements: skill.security_requirements.iter().map(security::write_requirement).collect(),
    }
}

pub(in crate::pb) fn read_signature(signature: proto::AgentCardSignature) -> Result<AgentCardSignature, Error> {
    Ok(AgentCardSignature {
        protected: signature.protected,
        signature: signature.signature,
        header: metadata(signature.header, "header")?,
    })
}

fn write_signature(signature: &AgentCardSignature) -> proto::AgentCardSignature {
    proto::AgentCardSignature {
        protected: signature.protected.clone(),
        signature: signature.signature.clone(),
        header: to_metadata(signature.header.as_ref()),
    }
}
