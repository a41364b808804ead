//! Reads a card in whichever version's shape it has.

use chancery_identity::strict_json;
use chancery_protocol::{AgentCard, Version};
use chancery_wire::Codec as _;
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use serde_json::Value;

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
    // An address that cannot be called is replaced by the configured one, so it need not be usable: it has to be there.
    if card.supported_interfaces.is_empty() {
        return Err("it names no address".to_owned());
    }
    Ok((card, version))
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
    fn law_1_4_5_a_card_needs_an_entry_for_an_address_and_the_entry_need_not_be_usable() {
        let card = |interfaces: &str| {
            format!(
                r#"{{"name":"A","description":"","version":"1","capabilities":{{}},"defaultInputModes":[],"defaultOutputModes":[],"skills":[],
                "supportedInterfaces":[{interfaces}]}}"#
            )
        };
        for url in ["https://a/b", "", "/rpc", "dummy", "a b:1", "file:///rpc", "https://"] {
            let entry = format!(r#"{{"url":"{url}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}"#);
            assert!(read(&card(&entry)).is_ok(), "{url}");
        }
        assert_eq!(read(&card("")).unwrap_err(), "it names no address");
    }
}
