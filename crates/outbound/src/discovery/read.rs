//! Reads a card in whichever version's shape it has.

use chancery_identity::strict_json;
use chancery_protocol::{AgentCard, Version};
use chancery_wire::Codec as _;
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::tolerant::{self, Leniencies, ReadCard};

/// The card, the version of its shape, and what had to be overlooked to read it. Addresses are taken as they are written: one
/// that cannot be called is replaced by the configured one, so it need not be usable.
pub(crate) fn read(text: &str) -> Result<(AgentCard, Version, Leniencies), String> {
    strict_json::parse(text).map_err(|fault| fault.to_string())?;
    let read = tolerant::card(text).map_err(|fault| fault.to_string())?;
    let ReadCard { card, version } = read.value;
    if card.supported_interfaces.is_empty() {
        return Err("it names no address".to_owned());
    }
    Ok((card, version, read.leniencies))
}

/// A card in its version's shape.
pub(crate) fn write(card: &AgentCard, version: Version) -> String {
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
    fn a_card_is_read_whatever_its_addresses_look_like() {
        for url in ["https://a/b", "", "/rpc", "a.example", "dummy", "file:///rpc", "https://", "a b:1"] {
            let card = format!(
                r#"{{"name":"A","supportedInterfaces":[{{"url":"{url}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
            );
            let (card, version, _) = read(&card).unwrap();
            assert_eq!((card.supported_interfaces[0].url.as_str(), version), (url, Version::V1_0));
        }
        assert_eq!(read(r#"{"name":"A","supportedInterfaces":[]}"#).unwrap_err(), "it names no address");
    }

    #[test]
    fn text_that_two_readers_could_take_for_two_things_is_no_card() {
        assert!(read(r#"{"name":"A","name":"B","url":"https://a"}"#).unwrap_err().contains("strict JSON"));
        assert!(read(r#"{"detail":"Not Found"}"#).unwrap_err().contains("not an agent card"));
    }
}
