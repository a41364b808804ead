//! Reads a card in whichever version's shape it has.

use chancery_identity::strict_json;
use chancery_protocol::{AgentCard, Version};
use chancery_wire::Codec as _;
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::tolerant::{self, ReadCard};

/// The card and the version of its shape. A card that mixes versions is read as the newest of them.
pub(super) fn read(text: &str) -> Result<(AgentCard, Version), String> {
    strict_json::parse(text).map_err(|fault| fault.to_string())?;
    let ReadCard { card, version } = tolerant::card(text).map_err(|fault| fault.to_string())?.value;
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
