//! The members of a 1.0 card and when each is part of what is signed (specification §8.4.1).

use serde_json::{Map, Value};

/// Whether a member is written when it has the default value of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Written even if it is empty.
    Required,
    /// Written if it was set, to any value.
    Tracked,
    /// Not written if it is empty: empty and unset look the same.
    Implicit,
}

#[derive(Debug)]
enum Kind {
    Scalar,
    Message(&'static [SchemaMember]),
    Messages(&'static [SchemaMember]),
    MessageMap(&'static [SchemaMember]),
    /// A map of strings, or anything the author likes: nothing in it is by default.
    Free,
}

#[derive(Debug)]
pub(super) struct SchemaMember {
    name: &'static str,
    presence: Presence,
    kind: Kind,
}

use Kind::{Free, Message, MessageMap, Messages, Scalar};
use Presence::{Implicit, Required, Tracked};

const fn member(name: &'static str, presence: Presence, kind: Kind) -> SchemaMember {
    SchemaMember { name, presence, kind }
}

pub(super) static CARD: &[SchemaMember] = &[
    member("name", Required, Scalar),
    member("description", Required, Scalar),
    member("supportedInterfaces", Required, Messages(INTERFACE)),
    member("provider", Tracked, Message(PROVIDER)),
    member("version", Required, Scalar),
    member("documentationUrl", Tracked, Scalar),
    member("capabilities", Required, Message(CAPABILITIES)),
    member("securitySchemes", Implicit, MessageMap(SECURITY_SCHEME)),
    member("securityRequirements", Implicit, Messages(SECURITY_REQUIREMENT)),
    member("defaultInputModes", Required, Scalar),
    member("defaultOutputModes", Required, Scalar),
    member("skills", Required, Messages(SKILL)),
    member("iconUrl", Tracked, Scalar),
];

static INTERFACE: &[SchemaMember] = &[
    member("url", Required, Scalar),
    member("protocolBinding", Required, Scalar),
    member("tenant", Implicit, Scalar),
    member("protocolVersion", Required, Scalar),
];

static PROVIDER: &[SchemaMember] = &[member("url", Required, Scalar), member("organization", Required, Scalar)];

static CAPABILITIES: &[SchemaMember] = &[
    member("streaming", Tracked, Scalar),
    member("pushNotifications", Tracked, Scalar),
    member("extensions", Implicit, Messages(EXTENSION)),
    member("extendedAgentCard", Tracked, Scalar),
];

static EXTENSION: &[SchemaMember] = &[
    member("uri", Implicit, Scalar),
    member("description", Implicit, Scalar),
    member("required", Implicit, Scalar),
    member("params", Tracked, Free),
];

static SKILL: &[SchemaMember] = &[
    member("id", Required, Scalar),
    member("name", Required, Scalar),
    member("description", Required, Scalar),
    member("tags", Required, Scalar),
    member("examples", Implicit, Scalar),
    member("inputModes", Implicit, Scalar),
    member("outputModes", Implicit, Scalar),
    member("securityRequirements", Implicit, Messages(SECURITY_REQUIREMENT)),
];

static SECURITY_REQUIREMENT: &[SchemaMember] = &[member("schemes", Implicit, MessageMap(STRING_LIST))];

static STRING_LIST: &[SchemaMember] = &[member("list", Implicit, Scalar)];

static SECURITY_SCHEME: &[SchemaMember] = &[
    member("apiKeySecurityScheme", Tracked, Message(API_KEY)),
    member("httpAuthSecurityScheme", Tracked, Message(HTTP_AUTH)),
    member("oauth2SecurityScheme", Tracked, Message(OAUTH2)),
    member("openIdConnectSecurityScheme", Tracked, Message(OPEN_ID_CONNECT)),
    member("mtlsSecurityScheme", Tracked, Message(MUTUAL_TLS)),
];

static API_KEY: &[SchemaMember] =
    &[member("description", Implicit, Scalar), member("location", Required, Scalar), member("name", Required, Scalar)];

static HTTP_AUTH: &[SchemaMember] =
    &[member("description", Implicit, Scalar), member("scheme", Required, Scalar), member("bearerFormat", Implicit, Scalar)];

static OAUTH2: &[SchemaMember] = &[
    member("description", Implicit, Scalar),
    member("flows", Required, Message(FLOWS)),
    member("oauth2MetadataUrl", Implicit, Scalar),
];

static OPEN_ID_CONNECT: &[SchemaMember] =
    &[member("description", Implicit, Scalar), member("openIdConnectUrl", Required, Scalar)];

static MUTUAL_TLS: &[SchemaMember] = &[member("description", Implicit, Scalar)];

static FLOWS: &[SchemaMember] = &[
    member("authorizationCode", Tracked, Message(FLOW)),
    member("clientCredentials", Tracked, Message(FLOW)),
    member("deviceCode", Tracked, Message(FLOW)),
    member("implicit", Tracked, Message(FLOW)),
    member("password", Tracked, Message(FLOW)),
];

/// All flows in one: which members a flow may have is for its readers.
static FLOW: &[SchemaMember] = &[
    member("authorizationUrl", Required, Scalar),
    member("deviceAuthorizationUrl", Required, Scalar),
    member("tokenUrl", Required, Scalar),
    member("refreshUrl", Implicit, Scalar),
    member("scopes", Required, Free),
    member("pkceRequired", Implicit, Scalar),
];

/// The handling of members that the schema does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownMembers {
    Kept,
    Dropped,
}

/// The card with only those members that count as present.
pub(super) fn present(card: &Map<String, Value>, unknown: UnknownMembers) -> Map<String, Value> {
    message(card, CARD, unknown)
}

fn message(members: &Map<String, Value>, schema: &[SchemaMember], unknown: UnknownMembers) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, value) in members {
        let Some(known) = schema.iter().find(|one| one.name == name) else {
            if unknown == UnknownMembers::Kept {
                out.insert(name.clone(), value.clone());
            }
            continue;
        };
        let absent = value.is_null() || (known.presence == Presence::Implicit && is_default(value));
        if !absent {
            out.insert(name.clone(), content(value, &known.kind, unknown));
        }
    }
    out
}

fn content(value: &Value, kind: &Kind, unknown: UnknownMembers) -> Value {
    let as_message = |value: &Value, schema: &[SchemaMember]| match value {
        Value::Object(members) => Value::Object(message(members, schema, unknown)),
        other => other.clone(),
    };
    match (kind, value) {
        (Kind::Message(schema), value) => as_message(value, schema),
        (Kind::Messages(schema), Value::Array(items)) => items.iter().map(|item| as_message(item, schema)).collect(),
        (Kind::MessageMap(schema), Value::Object(entries)) => {
            entries.iter().map(|(name, entry)| (name.clone(), as_message(entry, schema))).collect()
        }
        (_, value) => value.clone(),
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Bool(set) => !set,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Null | Value::Number(_) => false,
    }
}

/// The path of the first member that the schema does not have.
pub(super) fn first_unknown(card: &Map<String, Value>) -> Option<String> {
    unknown_in(card, CARD, "")
}

fn unknown_in(members: &Map<String, Value>, schema: &[SchemaMember], path: &str) -> Option<String> {
    members.iter().find_map(|(name, value)| {
        let here = format!("{path}/{name}");
        let Some(known) = schema.iter().find(|one| one.name == name) else { return Some(here) };
        let inside = |value: &Value, schema: &[SchemaMember], path: &str| unknown_in(value.as_object()?, schema, path);
        match (&known.kind, value) {
            (Kind::Message(schema), value) => inside(value, schema, &here),
            (Kind::Messages(schema), Value::Array(items)) => {
                items.iter().enumerate().find_map(|(at, item)| inside(item, schema, &format!("{here}/{at}")))
            }
            (Kind::MessageMap(schema), Value::Object(entries)) => {
                entries.iter().find_map(|(name, entry)| inside(entry, schema, &format!("{here}/{name}")))
            }
            _ => None,
        }
    })
}
