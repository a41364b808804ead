//! The bytes of a card that a JSON Web Signature covers. There is more than one form, because the signers in use differ.
//!
//! The specification signs the card without its signatures and without members that are unset or have the
//! default value. It keeps required members even if they are empty. The official SDKs sign only members of
//! their schema, and drop empty members at every level, required or not. For many cards these are the same
//! bytes. Where they differ, the node signs both, so that each reader finds a signature it can verify. The
//! node verifies either form. No document says what 0.3 signs. So the node signs the whole card there, and
//! again in the form of the SDK for 0.3.
//!
//! Accepting more than one form is safe: a verified card contains only what the form covered (see
//! [`super::Verified::card`]). Content that was added in a place that the form leaves out is gone by then.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::CardFault;
use super::schema::{self, UnknownMembers};
use crate::jcs;

pub(super) const SIGNATURES: &str = "signatures";

/// Which version's layout a card with JSON Web Signatures has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardShape {
    V1_0,
    V0_3,
}

impl CardShape {
    /// By the member that only one of them has. The specification made it required, the older one does not know it.
    pub(super) fn of(card: &Map<String, Value>) -> Self {
        if card.contains_key("supportedInterfaces") { Self::V1_0 } else { Self::V0_3 }
    }
}

/// From the one that covers most to the one that covers least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// Everything but the signatures, as it stands.
    Whole,
    /// What counts as present, members of others' extensions included.
    Present,
    /// What counts as present and is in the schema.
    Known,
    /// What is in the schema and not empty: the official SDKs' form for 1.0.
    Dense,
    /// The same without security schemes, which the JS SDK (1.3.0) loses when it signs its own objects. The
    /// node does not sign this form: a reader that verifies only this form could be sent to a foreign token
    /// endpoint.
    Schemeless,
    /// The form of the Python SDK for 0.3 (0.3.26): what is not empty, without what its model has by default, and in ASCII. It
    /// writes some fractions and sorts some astral names in ways of its own; those it has to itself.
    Older,
}

#[derive(Debug)]
pub(super) struct SignedPayload {
    pub(super) form: Form,
    /// What a signature over these bytes says of the card.
    pub(super) covered: Value,
    pub(super) bytes: Vec<u8>,
}

impl SignedPayload {
    fn of(card: &Map<String, Value>, form: Form) -> Result<Self, CardFault> {
        let mut unsigned = card.clone();
        unsigned.remove(SIGNATURES);
        let covered = match form {
            Form::Whole => unsigned,
            Form::Present => schema::present(&unsigned, UnknownMembers::Kept),
            Form::Known => schema::present(&unsigned, UnknownMembers::Dropped),
            Form::Dense => dense_members(&schema::present(&unsigned, UnknownMembers::Dropped)),
            Form::Older => with_schemes_that_say_something(dense_members(&unsigned)),
            Form::Schemeless => {
                unsigned.remove("securitySchemes");
                dense_members(&schema::present(&unsigned, UnknownMembers::Dropped))
            }
        };
        let bytes = match form {
            Form::Older => ascii(&jcs::canonical(&Value::Object(without_defaults_of_0_3(&covered)))?),
            _ => jcs::canonical(&Value::Object(covered.clone()))?,
        };
        Ok(Self { form, covered: Value::Object(covered), bytes })
    }
}

/// What we sign.
pub(super) fn to_sign(card: &Map<String, Value>, shape: CardShape) -> Result<Vec<SignedPayload>, CardFault> {
    match shape {
        CardShape::V1_0 => distinct(card, &[Form::Present, Form::Dense]),
        CardShape::V0_3 => distinct(card, &[Form::Whole, Form::Older]),
    }
}

/// What others may have signed.
pub(super) fn to_verify(card: &Map<String, Value>, shape: CardShape) -> Result<Vec<SignedPayload>, CardFault> {
    match shape {
        CardShape::V1_0 => distinct(card, &[Form::Whole, Form::Present, Form::Known, Form::Dense, Form::Schemeless]),
        CardShape::V0_3 => distinct(card, &[Form::Whole, Form::Older]),
    }
}

fn distinct(card: &Map<String, Value>, forms: &[Form]) -> Result<Vec<SignedPayload>, CardFault> {
    let mut payloads: Vec<SignedPayload> = Vec::new();
    for form in forms {
        let payload = SignedPayload::of(card, *form)?;
        if payloads.iter().all(|other| other.bytes != payload.bytes) {
            payloads.push(payload);
        }
    }
    Ok(payloads)
}

fn dense_members(members: &Map<String, Value>) -> Map<String, Value> {
    members.iter().filter_map(|(name, value)| Some((name.clone(), dense(value)?))).collect()
}

fn dense(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(dense).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(members) => {
            let members = dense_members(members);
            (!members.is_empty()).then_some(Value::Object(members))
        }
        other => Some(other.clone()),
    }
}

/// A scheme with only its type leaves no trace in the signed form, so any server could add one.
fn with_schemes_that_say_something(mut card: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(schemes)) = card.get_mut("securitySchemes") {
        schemes.retain(|_, scheme| scheme.as_object().is_none_or(|members| members.keys().any(|name| name != "type")));
    }
    card
}

/// A member that is there by default may be left out; one with any other value may not.
fn without_defaults_of_0_3(card: &Map<String, Value>) -> Map<String, Value> {
    let mut card = card.clone();
    for (name, default) in [("protocolVersion", "0.3.0"), ("preferredTransport", "JSONRPC")] {
        if card.get(name).is_some_and(|value| value == default) {
            card.remove(name);
        }
    }
    if let Some(Value::Object(schemes)) = card.get_mut("securitySchemes") {
        for scheme in schemes.values_mut().filter_map(Value::as_object_mut) {
            let kinds = [("in", "apiKey"), ("scheme", "http"), ("flows", "oauth2"), ("openIdConnectUrl", "openIdConnect")];
            let implied = kinds.iter().find(|(member, _)| scheme.contains_key(*member)).map_or("mutualTLS", |(_, kind)| kind);
            if scheme.get("type").is_some_and(|kind| kind == implied) {
                scheme.remove("type");
            }
        }
    }
    dense_members(&card)
}

fn ascii(canonical: &[u8]) -> Vec<u8> {
    let mut out = String::with_capacity(canonical.len());
    for character in String::from_utf8_lossy(canonical).chars() {
        if matches!(character, ' '..='~') {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing into a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out.into_bytes()
}
