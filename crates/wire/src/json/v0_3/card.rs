//! The 0.3 agent card: one main address and more beside it, instead of a list of interfaces.

use chancery_protocol::lenient::null_default;
use chancery_protocol::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
};
use serde::{Deserialize, Serialize};

use super::security::{self, Requirement, Schemes};

const PROTOCOL_VERSION: &str = "0.3.0";
/// The version by which interfaces of a 0.3 card go in the model.
const INTERFACE_VERSION: &str = "0.3";
const GRPC: &str = "GRPC";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Card {
    #[serde(default, skip_deserializing)]
    protocol_version: &'static str,
    name: String,
    #[serde(default, deserialize_with = "null_default")]
    description: String,
    url: String,
    #[serde(default)]
    preferred_transport: Option<String>,
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    additional_interfaces: Vec<Interface>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    icon_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider: Option<AgentProvider>,
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    documentation_url: Option<String>,
    capabilities: Capabilities,
    #[serde(default, skip_serializing_if = "Schemes::is_empty")]
    security_schemes: Schemes,
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    security: Vec<Requirement>,
    #[serde(default, deserialize_with = "null_default")]
    default_input_modes: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    default_output_modes: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    skills: Vec<Skill>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    supports_authenticated_extended_card: Option<bool>,
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    signatures: Vec<AgentCardSignature>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Interface {
    url: String,
    transport: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    streaming: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    push_notifications: Option<bool>,
    /// Nothing in the model says so, and nothing in 0.3 says where such a history would be.
    #[serde(default, skip_deserializing)]
    state_transition_history: bool,
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<AgentExtension>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Skill {
    id: String,
    name: String,
    #[serde(default, deserialize_with = "null_default")]
    description: String,
    #[serde(default, deserialize_with = "null_default")]
    tags: Vec<String>,
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    examples: Vec<String>,
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    input_modes: Vec<String>,
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    output_modes: Vec<String>,
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    security: Vec<Requirement>,
}

/// Whether the card has an address that 0.3 callers can use. Without one there is no 0.3 card to show.
pub fn is_reachable(card: &AgentCard) -> bool {
    card.supported_interfaces.iter().any(speaks_0_3)
}

fn speaks_0_3(interface: &AgentInterface) -> bool {
    interface.protocol_version == INTERFACE_VERSION || interface.protocol_version.starts_with("0.3.")
}

/// An interface as 0.3 lists it.
fn listed(interface: &AgentInterface) -> Interface {
    Interface { url: interface.url.clone(), transport: interface.protocol_binding.clone() }
}

/// What was listed, with a gRPC address in one form only. One that is only there as an https URL stays that: who dials it has
/// to speak TLS.
fn read_interfaces(mut all: Vec<Interface>) -> Vec<AgentInterface> {
    let bare: Vec<String> =
        all.iter().filter(|one| one.transport == GRPC && !one.url.contains("://")).map(|one| one.url.clone()).collect();
    for one in all.iter_mut().filter(|one| one.transport == GRPC) {
        let address = match one.url.split_once("://") {
            Some(("http", rest)) => Some(rest.trim_end_matches('/')),
            Some(("https", rest)) => Some(rest.trim_end_matches('/')).filter(|address| bare.iter().any(|one| one == address)),
            _ => None,
        };
        if let Some(address) = address.map(str::to_owned) {
            one.url = address;
        }
    }
    let mut interfaces: Vec<AgentInterface> = Vec::new();
    for Interface { url, transport } in all {
        let version = INTERFACE_VERSION.to_owned();
        let interface = AgentInterface { url, protocol_binding: transport, tenant: None, protocol_version: version };
        // Cards repeat their main address, and a gRPC one in both of its forms.
        if !interfaces.contains(&interface) {
            interfaces.push(interface);
        }
    }
    interfaces
}

impl From<&AgentCard> for Card {
    fn from(card: &AgentCard) -> Self {
        let interfaces: Vec<Interface> = card.supported_interfaces.iter().filter(|one| speaks_0_3(one)).map(listed).collect();
        let main = interfaces.first().cloned();
        let capabilities = &card.capabilities;
        Self {
            protocol_version: PROTOCOL_VERSION,
            name: card.name.clone(),
            description: card.description.clone(),
            url: main.as_ref().map(|main| main.url.clone()).unwrap_or_default(),
            preferred_transport: Some(main.map_or_else(|| "JSONRPC".to_owned(), |main| main.transport)),
            additional_interfaces: interfaces,
            icon_url: card.icon_url.clone(),
            provider: card.provider.clone(),
            version: card.version.clone(),
            documentation_url: card.documentation_url.clone(),
            capabilities: Capabilities {
                streaming: capabilities.streaming,
                push_notifications: capabilities.push_notifications,
                state_transition_history: false,
                extensions: capabilities.extensions.clone(),
            },
            security_schemes: Schemes::of(&card.security_schemes),
            security: security::requirements(&card.security_requirements),
            default_input_modes: card.default_input_modes.clone(),
            default_output_modes: card.default_output_modes.clone(),
            skills: card.skills.iter().map(Into::into).collect(),
            supports_authenticated_extended_card: capabilities.extended_agent_card,
            // A signature covers the shape it was made over, which is not this one.
            signatures: Vec::new(),
        }
    }
}

impl From<&AgentSkill> for Skill {
    fn from(skill: &AgentSkill) -> Self {
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            tags: skill.tags.clone(),
            examples: skill.examples.clone(),
            input_modes: skill.input_modes.clone(),
            output_modes: skill.output_modes.clone(),
            security: security::requirements(&skill.security_requirements),
        }
    }
}

impl From<Card> for AgentCard {
    fn from(card: Card) -> Self {
        let transport = card.preferred_transport.unwrap_or_else(|| "JSONRPC".to_owned());
        let main = Interface { url: card.url, transport };
        let interfaces = read_interfaces(std::iter::once(main).chain(card.additional_interfaces).collect());
        Self {
            name: card.name,
            description: card.description,
            supported_interfaces: interfaces,
            provider: card.provider,
            version: card.version,
            documentation_url: card.documentation_url,
            capabilities: AgentCapabilities {
                streaming: card.capabilities.streaming,
                push_notifications: card.capabilities.push_notifications,
                extensions: card.capabilities.extensions,
                extended_agent_card: card.supports_authenticated_extended_card,
            },
            security_schemes: card.security_schemes.into_model(),
            security_requirements: security::to_model(card.security),
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: card.skills.into_iter().map(Into::into).collect(),
            signatures: card.signatures,
            icon_url: card.icon_url,
        }
    }
}

impl From<Skill> for AgentSkill {
    fn from(skill: Skill) -> Self {
        Self {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples,
            input_modes: skill.input_modes,
            output_modes: skill.output_modes,
            security_requirements: security::to_model(skill.security),
        }
    }
}
