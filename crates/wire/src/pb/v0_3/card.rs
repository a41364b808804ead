//! The agent card: one main address and more beside it, instead of a list of interfaces.

use std::collections::BTreeMap;

use chancery_protocol::{AgentCapabilities, AgentCard, AgentInterface, Error};

use super::proto;
use crate::pb::fields::{Within, list, of_peer, optional, or_empty};
use crate::pb::v1::card::{
    read_extension, read_provider, read_signature, read_skill, write_extension, write_provider, write_skill,
};
use crate::pb::v1::proto::o_auth_flows::Flow;
use crate::pb::v1::proto::{OAuthFlows, SecurityScheme, security_scheme::Scheme};
use crate::pb::v1::security;

const PROTOCOL_VERSION: &str = "0.3.0";
/// The version by which interfaces of a 0.3 card go in the model.
const INTERFACE_VERSION: &str = "0.3";

/// Reads a peer's card. Flags it leaves out are taken for unset: protobuf does not tell them from `false` here.
pub fn read(card: proto::AgentCard) -> Result<AgentCard, Error> {
    of_peer(read_card(card))
}

fn read_card(card: proto::AgentCard) -> Result<AgentCard, Error> {
    let capabilities = card.capabilities.unwrap_or_default();
    let transport = optional(card.preferred_transport).unwrap_or_else(|| "JSONRPC".to_owned());
    let main = proto::AgentInterface { url: card.url, transport };
    let beside = card.additional_interfaces.into_iter().filter(|one| *one != main);
    Ok(AgentCard {
        name: card.name,
        description: card.description,
        supported_interfaces: std::iter::once(main.clone()).chain(beside).map(read_interface).collect(),
        provider: card.provider.map(read_provider),
        version: card.version,
        documentation_url: optional(card.documentation_url),
        capabilities: AgentCapabilities {
            streaming: capabilities.streaming.then_some(true),
            push_notifications: capabilities.push_notifications.then_some(true),
            extensions: list(capabilities.extensions, "extensions", read_extension).within("capabilities")?,
            extended_agent_card: card.supports_authenticated_extended_card.then_some(true),
        },
        security_schemes: security::read_schemes(with_flows(card.security_schemes)).within("security_schemes")?,
        security_requirements: card.security.into_iter().map(security::read_requirement).collect(),
        default_input_modes: card.default_input_modes,
        default_output_modes: card.default_output_modes,
        skills: card.skills.into_iter().map(read_skill).collect(),
        signatures: list(card.signatures, "signatures", read_signature)?,
        icon_url: optional(card.icon_url),
    })
}

/// Writes the card for 0.3 callers, with the addresses they can use. The first of them is the main one.
pub fn write(card: &AgentCard) -> proto::AgentCard {
    let interfaces: Vec<_> = card.supported_interfaces.iter().filter(|one| speaks_0_3(one)).map(write_interface).collect();
    let main = interfaces.first().cloned().unwrap_or_default();
    let capabilities = &card.capabilities;
    proto::AgentCard {
        protocol_version: PROTOCOL_VERSION.to_owned(),
        name: card.name.clone(),
        description: card.description.clone(),
        url: main.url,
        preferred_transport: main.transport,
        additional_interfaces: interfaces,
        provider: card.provider.as_ref().map(write_provider),
        version: card.version.clone(),
        documentation_url: or_empty(card.documentation_url.as_ref()),
        capabilities: Some(proto::AgentCapabilities {
            streaming: capabilities.streaming.unwrap_or_default(),
            push_notifications: capabilities.push_notifications.unwrap_or_default(),
            extensions: capabilities.extensions.iter().map(write_extension).collect(),
        }),
        security_schemes: as_0_3_knows(security::write_schemes(&card.security_schemes)),
        security: card.security_requirements.iter().map(security::write_requirement).collect(),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(write_skill).collect(),
        supports_authenticated_extended_card: capabilities.extended_agent_card.unwrap_or_default(),
        // A signature covers the shape it was made over, which is not this one.
        signatures: Vec::new(),
        icon_url: or_empty(card.icon_url.as_ref()),
    }
}

fn speaks_0_3(interface: &AgentInterface) -> bool {
    interface.protocol_version == INTERFACE_VERSION || interface.protocol_version.starts_with("0.3.")
}

/// The address is written as the model has it: gRPC clients of 0.3 dial `host:port` as they find it.
fn write_interface(interface: &AgentInterface) -> proto::AgentInterface {
    proto::AgentInterface { url: interface.url.clone(), transport: interface.protocol_binding.clone() }
}

fn read_interface(interface: proto::AgentInterface) -> AgentInterface {
    // Some servers write gRPC addresses as URLs.
    let url = match interface.url.strip_prefix("http://") {
        Some(address) if interface.transport == "GRPC" => address.trim_end_matches('/').to_owned(),
        _ => interface.url,
    };
    let protocol_version = INTERFACE_VERSION.to_owned();
    AgentInterface { url, protocol_binding: interface.transport, tenant: None, protocol_version }
}

/// 0.3 has no words for a device code or for required PKCE: what is left says OAuth without saying how, or without PKCE.
fn as_0_3_knows(mut schemes: BTreeMap<String, SecurityScheme>) -> BTreeMap<String, SecurityScheme> {
    for flows in schemes.values_mut().filter_map(flows_of) {
        match &mut flows.flow {
            Some(Flow::AuthorizationCode(flow)) => flow.pkce_required = false,
            Some(Flow::DeviceCode(_)) => flows.flow = None,
            _ => {}
        }
    }
    schemes
}

/// Leaves out OAuth without a flow: the model cannot say it, and a requirement that names it then fails closed.
fn with_flows(mut schemes: BTreeMap<String, SecurityScheme>) -> BTreeMap<String, SecurityScheme> {
    schemes.retain(|_, scheme| match &scheme.scheme {
        Some(Scheme::Oauth2SecurityScheme(oauth)) => oauth.flows.as_ref().is_some_and(|flows| flows.flow.is_some()),
        _ => true,
    });
    schemes
}

fn flows_of(scheme: &mut SecurityScheme) -> Option<&mut OAuthFlows> {
    match &mut scheme.scheme {
        Some(Scheme::Oauth2SecurityScheme(oauth)) => oauth.flows.as_mut(),
        _ => None,
    }
}
