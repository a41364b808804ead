//! The agent card: what an agent is, where it is and what it can do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::lenient::{non_empty, null_default};
use crate::{Binding, Metadata, SecurityRequirement, SecurityScheme, Version};

/// The card of an agent: its description, addresses, capabilities and skills.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// The name of the agent that people read.
    pub name: String,
    /// What the agent does.
    pub description: String,
    /// The addresses of the agent, the preferred one first.
    #[serde(default, alias = "supported_interfaces", deserialize_with = "null_default")]
    pub supported_interfaces: Vec<AgentInterface>,
    /// The organization that offers the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<AgentProvider>,
    /// The version of the agent, in its own numbering.
    pub version: String,
    /// The URL of the agent's documentation.
    #[serde(default, alias = "documentation_url", skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    /// The optional features of the protocol that the agent has.
    pub capabilities: AgentCapabilities,
    /// The ways to authenticate, by their names.
    #[serde(default, alias = "security_schemes", deserialize_with = "null_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// The alternatives that a caller has. One of them must be satisfied.
    #[serde(default, alias = "security_requirements", deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub security_requirements: Vec<SecurityRequirement>,
    /// The media types that the agent accepts, unless a skill names others.
    #[serde(default, alias = "default_input_modes", deserialize_with = "null_default")]
    pub default_input_modes: Vec<String>,
    /// The media types that the agent produces, unless a skill names others.
    #[serde(default, alias = "default_output_modes", deserialize_with = "null_default")]
    pub default_output_modes: Vec<String>,
    /// The skills of the agent.
    #[serde(default, deserialize_with = "null_default")]
    pub skills: Vec<AgentSkill>,
    /// The signatures over the card.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<AgentCardSignature>,
    /// The URL of an image for the agent.
    #[serde(default, alias = "icon_url", skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
}

/// One address the agent answers at. The first of a card's list is the preferred one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInterface {
    /// The URL of the interface.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or the URI of a binding of someone's own.
    #[serde(alias = "protocol_binding")]
    pub protocol_binding: String,
    /// The tenant that calls to this address name.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The protocol version of the interface, such as `1.0`.
    #[serde(alias = "protocol_version")]
    pub protocol_version: String,
}

impl AgentInterface {
    /// An address for calls of one version over one binding, without a tenant.
    pub fn new(url: impl Into<String>, binding: Binding, version: Version) -> Self {
        let (protocol_binding, protocol_version) = (binding.as_str().to_owned(), version.as_str().to_owned());
        Self { url: url.into(), protocol_binding, tenant: None, protocol_version }
    }
}

impl AgentCard {
    /// Sets the version of the agent.
    #[must_use]
    pub fn with_version(self, version: impl Into<String>) -> Self {
        Self { version: version.into(), ..self }
    }

    /// Adds a skill.
    #[must_use]
    pub fn with_skill(mut self, skill: AgentSkill) -> Self {
        self.skills.push(skill);
        self
    }
}

/// The organization that offers an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentProvider {
    /// The URL of the organization's website.
    pub url: String,
    /// The name of the organization.
    pub organization: String,
}

/// Presence matters here: an explicit `false` is not the same as nothing when a card is signed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCapabilities {
    /// Whether the agent answers with streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Whether the agent delivers push notifications.
    #[serde(default, alias = "push_notifications", skip_serializing_if = "Option::is_none")]
    pub push_notifications: Option<bool>,
    /// The extensions of the protocol that the agent has.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<AgentExtension>,
    /// Whether authenticated callers can get an extended card.
    #[serde(default, alias = "extended_agent_card", skip_serializing_if = "Option::is_none")]
    pub extended_agent_card: Option<bool>,
}

/// An extension of the protocol that an agent has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentExtension {
    /// The URI that identifies the extension.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// How the agent uses the extension.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether callers must use the extension.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The parameters of the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Metadata>,
}

impl AgentExtension {
    /// An extension that callers may use and need not.
    pub fn new(uri: impl Into<String>, description: impl Into<String>) -> Self {
        Self { uri: uri.into(), description: description.into(), required: false, params: None }
    }

    /// The same extension, for callers that have to use it.
    #[must_use]
    pub fn mandatory(self) -> Self {
        Self { required: true, ..self }
    }

    /// Sets the parameters of the extension.
    #[must_use]
    pub fn with_params(self, params: Metadata) -> Self {
        Self { params: Some(params), ..self }
    }
}

/// One thing that an agent can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSkill {
    /// The id of the skill, unique on the card.
    pub id: String,
    /// The name of the skill that people read.
    pub name: String,
    /// What the skill does.
    pub description: String,
    /// Keywords that callers search by.
    #[serde(default, deserialize_with = "null_default")]
    pub tags: Vec<String>,
    /// Examples of messages for the skill.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The media types that the skill accepts. Empty, those of the agent.
    #[serde(default, alias = "input_modes", deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub input_modes: Vec<String>,
    /// The media types that the skill produces. Empty, those of the agent.
    #[serde(default, alias = "output_modes", deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<String>,
    /// The alternatives that a caller of the skill has to authenticate.
    #[serde(default, alias = "security_requirements", deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub security_requirements: Vec<SecurityRequirement>,
}

impl AgentSkill {
    /// A skill with the media types of its agent. Its name is its id until [`AgentSkill::named`] sets another one.
    pub fn new(id: impl Into<String>, description: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            name: id.clone(),
            id,
            description: description.into(),
            tags: Vec::new(),
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }
    }

    /// Sets the name that people read.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Adds a tag that callers search by.
    #[must_use]
    pub fn tagged(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Adds an example of a message to the skill.
    #[must_use]
    pub fn with_example(mut self, example: impl Into<String>) -> Self {
        self.examples.push(example.into());
        self
    }
}

/// A detached JWS over the card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentCardSignature {
    /// The protected header of the JWS, in base64url.
    pub protected: String,
    /// The signature, in base64url.
    pub signature: String,
    /// The unprotected header of the JWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Metadata>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn constructors_of_a_card_s_members_write_the_1_0_form() {
        let skill = AgentSkill::new("greet", "Greets you.").named("Greeting").tagged("polite").with_example("Ada");
        let written = json!({
            "id": "greet", "name": "Greeting", "description": "Greets you.", "tags": ["polite"], "examples": ["Ada"],
        });
        assert_eq!(serde_json::to_value(skill).unwrap(), written);
        let interface = AgentInterface::new("https://a.example", Binding::Rest, Version::V1_0);
        let written = json!({ "url": "https://a.example", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" });
        assert_eq!(serde_json::to_value(interface).unwrap(), written);
        let params = serde_json::from_value(json!({ "a": 1 })).unwrap();
        let extension = AgentExtension::new("urn:x", "Does x").mandatory().with_params(params);
        let written = json!({ "uri": "urn:x", "description": "Does x", "required": true, "params": { "a": 1 } });
        assert_eq!(serde_json::to_value(extension).unwrap(), written);
    }
}
