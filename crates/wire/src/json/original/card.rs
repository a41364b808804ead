//! The card at `/.well-known/agent.json`: what clients of the original protocol and of the ADR's own crate both read.

use std::collections::BTreeMap;

use chancery_protocol::lenient::null_default;
use chancery_protocol::{
    AgentCapabilities, AgentCard, AgentInterface, AgentProvider, AgentSkill, HttpAuthScheme, SecurityRequirement, SecurityScheme,
    StringList,
};
use serde::{Deserialize, Serialize};

/// The version by which the address of such a card goes in the model.
const INTERFACE_VERSION: &str = "0.1";
const JSON_RPC: &str = "JSONRPC";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Card {
    name: String,
    #[serde(default, deserialize_with = "null_default")]
    description: String,
    url: String,
    version: String,
    #[serde(default)]
    provider: Option<Provider>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    documentation_url: Option<String>,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(default, deserialize_with = "null_default")]
    authentication: Authentication,
    /// The original's spelling; the next two are the ADR's.
    #[serde(default, deserialize_with = "null_default")]
    default_input_modes: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    default_output_modes: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    input_modes: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    output_modes: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    skills: Vec<Skill>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Provider {
    organization: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    #[serde(default, deserialize_with = "null_default")]
    streaming: bool,
    #[serde(default, deserialize_with = "null_default")]
    push_notifications: bool,
    #[serde(default, skip_deserializing)]
    state_transition_history: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Authentication {
    #[serde(default, deserialize_with = "null_default")]
    schemes: Vec<String>,
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
    #[serde(default, deserialize_with = "null_default")]
    examples: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    input_modes: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    output_modes: Vec<String>,
}

/// The address for callers that post `tasks/send`: the oldest JSON-RPC interface, or else the first
/// interface.
fn address(card: &AgentCard) -> &str {
    let interfaces = &card.supported_interfaces;
    let json_rpc = |version: &str| {
        let fits = |one: &&AgentInterface| one.protocol_binding == JSON_RPC && one.protocol_version.starts_with(version);
        interfaces.iter().find(fits)
    };
    let found = json_rpc("0.1").or_else(|| json_rpc("0.3")).or_else(|| json_rpc("")).or_else(|| interfaces.first());
    found.map_or("", |interface| &interface.url)
}

fn scheme_name(scheme: &SecurityScheme) -> String {
    match scheme {
        SecurityScheme::ApiKey(_) => "apikey".to_owned(),
        SecurityScheme::HttpAuth(http) => http.scheme.to_ascii_lowercase(),
        SecurityScheme::OAuth2(_) => "oauth2".to_owned(),
        SecurityScheme::OpenIdConnect(_) => "openidconnect".to_owned(),
        SecurityScheme::MutualTls(_) => "mtls".to_owned(),
    }
}

impl From<&AgentCard> for Card {
    fn from(card: &AgentCard) -> Self {
        let provider = match &card.provider {
            Some(AgentProvider { url, organization }) => {
                let url = (!url.is_empty()).then(|| url.clone());
                Provider { organization: organization.clone(), url }
            }
            // One of the two readers insists on a provider; an agent nobody answers for stands for itself.
            None => Provider { organization: card.name.clone(), url: None },
        };
        let mut schemes: Vec<String> = card.security_schemes.values().map(scheme_name).collect();
        schemes.sort();
        schemes.dedup();
        Self {
            name: card.name.clone(),
            description: card.description.clone(),
            url: address(card).to_owned(),
            version: card.version.clone(),
            provider: Some(provider),
            documentation_url: card.documentation_url.clone(),
            capabilities: Capabilities {
                streaming: card.capabilities.streaming.unwrap_or(false),
                push_notifications: card.capabilities.push_notifications.unwrap_or(false),
                state_transition_history: false,
            },
            authentication: Authentication { schemes },
            default_input_modes: card.default_input_modes.clone(),
            default_output_modes: card.default_output_modes.clone(),
            input_modes: card.default_input_modes.clone(),
            output_modes: card.default_output_modes.clone(),
            skills: card.skills.iter().map(Into::into).collect(),
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
        }
    }
}

impl From<Card> for AgentCard {
    fn from(card: Card) -> Self {
        let either = |first: Vec<String>, second: Vec<String>| if first.is_empty() { second } else { first };
        let schemes = card.authentication.schemes;
        // Any one of the schemes will do, so each is a requirement of its own.
        let requirement =
            |name: &String| SecurityRequirement { schemes: BTreeMap::from([(name.clone(), StringList::default())]) };
        let http = |scheme: String| {
            let declared = HttpAuthScheme { description: None, scheme: scheme.clone(), bearer_format: None };
            (scheme, SecurityScheme::HttpAuth(declared))
        };
        Self {
            name: card.name,
            description: card.description,
            supported_interfaces: vec![AgentInterface {
                url: card.url,
                protocol_binding: JSON_RPC.to_owned(),
                tenant: None,
                protocol_version: INTERFACE_VERSION.to_owned(),
            }],
            provider: card
                .provider
                .map(|Provider { organization, url }| AgentProvider { url: url.unwrap_or_default(), organization }),
            version: card.version,
            documentation_url: card.documentation_url,
            capabilities: AgentCapabilities {
                streaming: Some(card.capabilities.streaming),
                push_notifications: Some(card.capabilities.push_notifications),
                ..AgentCapabilities::default()
            },
            security_requirements: schemes.iter().map(requirement).collect(),
            security_schemes: schemes.into_iter().map(http).collect(),
            default_input_modes: either(card.default_input_modes, card.input_modes),
            default_output_modes: either(card.default_output_modes, card.output_modes),
            skills: card.skills.into_iter().map(Into::into).collect(),
            ..Self::default()
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
            security_requirements: Vec::new(),
        }
    }
}
