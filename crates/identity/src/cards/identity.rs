//! What a card says of its agent's identity, as metadata of the original's card and as an extension of the others.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chancery_protocol::{AgentExtension, AgentId, Metadata};
use serde_json::{Map, Value, json};

use crate::keys::{Algorithm, Cards, KeyFault, SigningKey};

pub const IDENTITY_EXTENSION: &str = "urn:chancery:identity:v1";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFacts {
    pub agent_id: AgentId,
    pub pubkey_ed25519: [u8; 32],
    /// Where the node's keys are published.
    pub jwks_url: Option<String>,
}

impl IdentityFacts {
    pub fn of(key: &SigningKey<Cards>, jwks_url: Option<&str>) -> Result<Self, KeyFault> {
        let other = KeyFault::OtherAlgorithm { wanted: Algorithm::EdDsa, found: key.algorithm() };
        let (Some(agent_id), Ok(pubkey_ed25519)) = (key.agent_id(), key.public().raw().try_into()) else { return Err(other) };
        Ok(Self { agent_id, pubkey_ed25519, jwks_url: jwks_url.map(str::to_owned) })
    }

    fn members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("agent_id".to_owned(), json!(self.agent_id));
        members.insert("agent_id_from".to_owned(), json!("shake256-32(pubkey_ed25519)"));
        members.insert("pubkey_ed25519".to_owned(), json!(STANDARD.encode(self.pubkey_ed25519)));
        if let Some(url) = &self.jwks_url {
            members.insert("jwks_url".to_owned(), json!(url));
        }
        members
    }

    /// For `metadata.ruvector.identity`.
    pub fn metadata(&self) -> Value {
        Value::Object(self.members())
    }

    /// For `capabilities.extensions`, with the same facts.
    pub fn extension(&self) -> AgentExtension {
        AgentExtension {
            uri: IDENTITY_EXTENSION.to_owned(),
            description: "Who the agent is by its Ed25519 key".to_owned(),
            required: false,
            params: Some(Metadata::from_object(self.members())),
        }
    }
}
