//! Reads an agent's card, in the shape of whichever version it has, with what it lacks left empty.

use chancery_protocol::{AgentCard, Binding, Error, Version};
use serde_json::{Map, Value, json};

use super::unreadable::MemberFault;
use super::words::letters;
use super::{Leniencies, Leniency, ReadAnswer, Unreadable};
use crate::codec::Codec as _;
use crate::json::codecs;
use crate::json::v0_3::V0_3;

/// A card and the version of its shape.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadCard {
    pub card: AgentCard,
    pub version: Version,
}

/// Reads a card that was scanned. An interface without a version keeps an empty one, and an address is kept
/// unchanged: the client decides about both. A card that mixes versions is read as the newest of them.
pub fn card(text: &str) -> Result<ReadAnswer<ReadCard>, Unreadable> {
    let fault = |reason: &str| MemberFault::new("", reason).within(text);
    let text = text.trim().trim_matches(|one: char| one < ' ' || one == '\u{feff}');
    let value: Value = serde_json::from_str(text).map_err(|_| fault("not JSON"))?;
    let Value::Object(mut members) = value else { return Err(fault("must be an object")) };
    if !is_card(&members) {
        return Err(fault("not an agent card: it has neither an address nor a name with skills"));
    }
    let version = version(&members);
    let codec = codecs::codec(version, Binding::JsonRpc);
    let mut leniencies = Leniencies::new();
    if let Ok(card) = codec.decode_card(text) {
        if card.supported_interfaces.iter().any(|interface| interface.protocol_version.is_empty()) {
            leniencies.insert(Leniency::NoInterfaceVersion);
        }
        return Ok(ReadAnswer { value: ReadCard { card: spelled(card), version }, leniencies });
    }
    complete(&mut members, version, &mut leniencies);
    leniencies.insert(Leniency::IncompleteCard);
    let security = security(&mut members);
    let read = codec.decode_card(&Value::Object(members).to_string());
    let mut card = read.map_err(|error: Error| MemberFault::of(&error).within(text))?;
    if let Some(secured) = security {
        (card.security_schemes, card.security_requirements) = (secured.security_schemes, secured.security_requirements);
    }
    Ok(ReadAnswer { value: ReadCard { card: spelled(card), version }, leniencies })
}

fn there<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

/// An answer to a search for a card may be any JSON, such as the words of an error.
fn is_card(members: &Map<String, Value>) -> bool {
    let has = |name: &str| there(members, name).is_some();
    let names_address =
        ["url", "supportedInterfaces", "supported_interfaces", "additionalInterfaces"].iter().any(|name| has(name));
    names_address || (has("name") && ["skills", "capabilities"].iter().any(|name| has(name)))
}

fn version(members: &Map<String, Value>) -> Version {
    let has = |name: &str| there(members, name).is_some();
    let lists = |name: &str| there(members, name).is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty()));
    if lists("supportedInterfaces") || lists("supported_interfaces") || (!has("url") && has("supportedInterfaces")) {
        Version::V1_0
    } else if has("protocolVersion") || has("preferredTransport") || has("additionalInterfaces") {
        Version::V0_3
    } else if has("authentication") || has("agent_id") {
        Version::Original
    } else {
        // Cards of 0.2 have nothing that tells them apart but what they lack.
        Version::V0_3
    }
}

/// Puts what is empty in the place of what is missing or of the wrong type.
fn complete(members: &mut Map<String, Value>, version: Version, leniencies: &mut Leniencies) {
    members.retain(|_, value| !value.is_null());
    for name in ["name", "description", "version"] {
        text(members, name);
    }
    for name in ["iconUrl", "icon_url", "documentationUrl", "documentation_url", "preferredTransport", "protocolVersion"] {
        only(members, name, Value::is_string);
    }
    for name in
        ["defaultInputModes", "defaultOutputModes", "inputModes", "outputModes", "default_input_modes", "default_output_modes"]
    {
        strings(members, name);
    }
    signatures(members);
    only(members, "supportsAuthenticatedExtendedCard", Value::is_boolean);
    only(members, "authentication", Value::is_object);
    provider(members);
    capabilities(members);
    each(members, "skills", complete_skill);
    members.entry("skills").or_insert_with(|| json!([]));
    match version {
        Version::V1_0 => {
            let name = if members.contains_key("supportedInterfaces") { "supportedInterfaces" } else { "supported_interfaces" };
            if members.get(name).is_some_and(Value::is_object) {
                let one = members.remove(name);
                members.insert(name.to_owned(), Value::Array(one.into_iter().collect()));
            }
            each(members, name, |interface, _| complete_interface(interface, leniencies));
        }
        Version::V0_3 | Version::Original => {
            text(members, "url");
            each(members, "additionalInterfaces", |interface, _| {
                text(interface, "url");
                interface.entry("transport").or_insert_with(|| json!("JSONRPC"));
                text(interface, "transport");
            });
        }
    }
}

fn complete_interface(interface: &mut Map<String, Value>, leniencies: &mut Leniencies) {
    text(interface, "url");
    let binding = ["protocol_binding", "transport"].iter().find_map(|name| interface.remove(*name));
    if !interface.contains_key("protocolBinding") {
        interface.insert("protocolBinding".to_owned(), binding.unwrap_or_else(|| json!("JSONRPC")));
    }
    text(interface, "protocolBinding");
    if let Some(version) = interface.remove("protocol_version") {
        interface.entry("protocolVersion").or_insert(version);
    }
    text(interface, "protocolVersion");
    if interface.get("protocolVersion").is_some_and(|version| version == "") {
        leniencies.insert(Leniency::NoInterfaceVersion);
    }
    only(interface, "tenant", Value::is_string);
}

fn complete_skill(skill: &mut Map<String, Value>, place: usize) {
    let name =
        there(skill, "name").or_else(|| there(skill, "id")).cloned().unwrap_or_else(|| json!(format!("skill-{}", place + 1)));
    skill.entry("name").or_insert_with(|| name.clone());
    skill.entry("id").or_insert(name);
    for name in ["id", "name", "description"] {
        text(skill, name);
    }
    for name in ["tags", "examples", "inputModes", "outputModes", "input_modes", "output_modes"] {
        strings(skill, name);
    }
    only(skill, "security", Value::is_array);
    only(skill, "securityRequirements", Value::is_array);
}

fn provider(members: &mut Map<String, Value>) {
    let organization = members.get("provider").and_then(Value::as_str).map(str::to_owned);
    if let Some(organization) = organization {
        members.insert("provider".to_owned(), json!({ "organization": organization }));
    }
    match members.get_mut("provider") {
        Some(Value::Object(provider)) => {
            provider.retain(|_, value| !value.is_null());
            text(provider, "organization");
            text(provider, "url");
        }
        _ => {
            members.remove("provider");
        }
    }
}

fn capabilities(members: &mut Map<String, Value>) {
    only(members, "capabilities", Value::is_object);
    let capabilities = members.entry("capabilities").or_insert_with(|| json!({}));
    let Value::Object(capabilities) = capabilities else { return };
    capabilities.retain(|_, value| !value.is_null());
    for name in ["streaming", "pushNotifications", "push_notifications", "extendedAgentCard", "extended_agent_card"] {
        if let Some(word) = capabilities.get(name).and_then(Value::as_str).map(str::to_ascii_lowercase) {
            capabilities.insert(name.to_owned(), Value::Bool(word == "true"));
        }
        only(capabilities, name, Value::is_boolean);
    }
    if let Some(Value::Array(list)) = capabilities.get_mut("extensions") {
        for extension in list.iter_mut().filter(|one| one.is_string()) {
            *extension = json!({ "uri": extension.take() });
        }
    }
    each(capabilities, "extensions", |extension, _| {
        text(extension, "uri");
        text(extension, "description");
        only(extension, "required", Value::is_boolean);
        only(extension, "params", Value::is_object);
    });
}

/// Keeps malformed signatures as empty ones. Without them a card with damaged signatures would count as
/// unsigned.
fn signatures(members: &mut Map<String, Value>) {
    let Some(signatures) = members.get_mut("signatures") else { return };
    if !signatures.is_array() {
        *signatures = Value::Array(vec![signatures.take()]);
    }
    for signature in signatures.as_array_mut().into_iter().flatten() {
        if !signature.is_object() {
            *signature = json!({});
        }
        let Value::Object(signature) = signature else { continue };
        for name in ["protected", "signature"] {
            only(signature, name, Value::is_string);
            signature.entry(name).or_insert_with(|| json!(""));
        }
        only(signature, "header", Value::is_object);
    }
}

/// How callers prove themselves, in either version's form. It is taken out of the card, because the reader of one version does
/// not read the form of the other.
fn security(members: &mut Map<String, Value>) -> Option<AgentCard> {
    let mut schemes = Map::new();
    if let Some(Value::Object(declared)) = ["securitySchemes", "security_schemes"].iter().find_map(|name| members.remove(*name)) {
        schemes = declared;
    }
    let requirements =
        ["securityRequirements", "security_requirements", "security"].iter().find_map(|name| members.remove(*name));
    let security = requirements.filter(Value::is_array).unwrap_or_else(|| json!([]));
    // The reader of 0.3 cards takes both forms. A scheme that it cannot read is left out, and a requirement that names such a
    // scheme then fails closed.
    let read = |schemes: &Map<String, Value>, security: &Value| {
        let card =
            json!({ "name": "", "url": "", "version": "", "capabilities": {}, "securitySchemes": schemes, "security": security });
        V0_3.decode_card(&card.to_string()).ok()
    };
    schemes.retain(|name, scheme| {
        let one = Map::from_iter([(name.clone(), scheme.clone())]);
        read(&one, &json!([])).is_some()
    });
    read(&schemes, &security)
}

/// The bindings in the words of the specification: `jsonrpc`, `json-rpc`, `REST` and the like are the same.
fn spelled(mut card: AgentCard) -> AgentCard {
    // Case alone is no deviation: a card keeps its bytes where clients know the word.
    let is_known = |binding: &str| ["JSONRPC", "HTTP+JSON", "GRPC"].contains(&binding.to_ascii_uppercase().as_str());
    for interface in card.supported_interfaces.iter_mut().filter(|one| !is_known(&one.protocol_binding)) {
        let name = match letters(&interface.protocol_binding).as_str() {
            "jsonrpc" | "jsonrpc20" | "jsonrpc2" | "transportprotocoljsonrpc" => "JSONRPC",
            "httpjson" | "rest" | "http/json" | "transportprotocolhttpjson" => "HTTP+JSON",
            "grpc" | "transportprotocolgrpc" => "GRPC",
            _ => continue,
        };
        name.clone_into(&mut interface.protocol_binding);
    }
    card
}

/// Text, or what a number or a boolean is spelled as; anything else is empty.
fn text(members: &mut Map<String, Value>, name: &str) {
    let text = match members.remove(name) {
        Some(Value::String(text)) => text,
        Some(plain @ (Value::Number(_) | Value::Bool(_))) => plain.to_string(),
        _ => String::new(),
    };
    members.insert(name.to_owned(), Value::String(text));
}

/// A list of strings. A single string is a list of one, and other values are left out.
fn strings(members: &mut Map<String, Value>, name: &str) {
    let list = match members.remove(name) {
        Some(Value::Array(list)) => list.into_iter().filter(Value::is_string).collect(),
        Some(one @ Value::String(_)) => vec![one],
        _ => return,
    };
    members.insert(name.to_owned(), Value::Array(list));
}

/// Leaves out a member that is not of its type.
fn only(members: &mut Map<String, Value>, name: &str, is_right: impl Fn(&Value) -> bool) {
    if members.get(name).is_some_and(|value| !is_right(value)) {
        members.remove(name);
    }
}

/// Goes over a list of objects. What is no object is left out.
fn each(members: &mut Map<String, Value>, name: &str, mut complete: impl FnMut(&mut Map<String, Value>, usize)) {
    only(members, name, Value::is_array);
    let Some(Value::Array(list)) = members.get_mut(name) else { return };
    list.retain(Value::is_object);
    for (place, item) in list.iter_mut().enumerate() {
        let Value::Object(item) = item else { continue };
        item.retain(|_, value| !value.is_null());
        complete(item, place);
    }
}
