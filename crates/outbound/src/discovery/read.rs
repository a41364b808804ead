//! Reads a card in whichever version's shape it has.

use chancery_identity::strict_json;
use chancery_protocol::{AgentCard, AgentInterface, Version};
use chancery_wire::Codec as _;
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use serde_json::Value;
use url::Url;

/// The card and the version of its shape. A card that mixes versions is read as the newest of them.
pub(super) fn read(text: &str) -> Result<(AgentCard, Version), String> {
    let value = strict_json::parse(text).map_err(|fault| fault.to_string())?;
    let Value::Object(members) = &value else { return Err("it is not an object".to_owned()) };
    let has = |name: &str| members.contains_key(name);
    let (read, version) = if has("supportedInterfaces") {
        (V1_0.decode_card(text), Version::V1_0)
    } else if has("protocolVersion") || has("preferredTransport") || has("additionalInterfaces") {
        (V0_3.decode_card(text), Version::V0_3)
    } else if has("authentication") || has("agent_id") {
        (Original.decode_card(text), Version::Original)
    } else {
        // Cards of 0.2 have nothing that tells them apart but what they lack.
        (V0_3.decode_card(text), Version::V0_3)
    };
    let card = read.map_err(|error| error.message.into_owned())?;
    if card.supported_interfaces.iter().all(|interface| interface.url.is_empty()) {
        return Err("it names no address".to_owned());
    }
    // Whoever shows the card as its own has to know what to write in the place of each.
    if let Some(strange) = card.supported_interfaces.iter().find(|interface| !is_address(interface)) {
        return Err(format!("its address for {} is none", strange.protocol_binding));
    }
    Ok((card, version))
}

/// Whether an interface of a binding we know says where it is.
fn is_address(interface: &AgentInterface) -> bool {
    let url = interface.url.as_str();
    let (is_grpc, is_http) =
        (interface.protocol_binding == "GRPC", ["JSONRPC", "HTTP+JSON"].contains(&&*interface.protocol_binding));
    if url.is_empty() || !(is_grpc || is_http) {
        return true;
    }
    // Addresses of gRPC may come without a scheme.
    let read = if is_grpc && !url.contains("://") { Url::parse(&format!("http://{url}")) } else { Url::parse(url) };
    read.is_ok_and(|url| url.has_host() && matches!(url.scheme(), "http" | "https" | "grpc" | "grpcs" | "dns" | "ipv4" | "ipv6"))
}

/// A card in its version's shape.
pub(super) fn write(card: &AgentCard, version: Version) -> String {
    let bytes = match version {
        Version::V1_0 => V1_0.encode_card(card),
        Version::V0_3 => V0_3.encode_card(card),
        Version::Original => Original.encode_card(card),
    };
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_whose_address_is_none_is_no_card() {
        let card = |url: &str, binding: &str| {
            format!(
                r#"{{"name":"A","description":"","version":"1","capabilities":{{}},"defaultInputModes":[],"defaultOutputModes":[],"skills":[],
                "supportedInterfaces":[{{"url":"https://a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}},
                {{"url":"{url}","protocolBinding":"{binding}","protocolVersion":"1.0"}}]}}"#
            )
        };
        for (url, binding) in [
            ("https://a/b", "HTTP+JSON"),
            ("a.example:443", "GRPC"),
            ("https://a:443", "GRPC"),
            ("", "JSONRPC"),
            ("pigeon:loft 7", "https://example.org/pigeons"),
        ] {
            assert!(read(&card(url, binding)).is_ok(), "{url} {binding}");
        }
        for (url, binding) in [
            ("/rpc", "JSONRPC"),
            ("a.example", "HTTP+JSON"),
            ("file:///rpc", "JSONRPC"),
            ("https://", "JSONRPC"),
            ("a b:1", "GRPC"),
        ] {
            let fault = read(&card(url, binding)).unwrap_err();
            assert_eq!(fault, format!("its address for {binding} is none"), "{url}");
        }
    }
}
