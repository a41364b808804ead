//! The shapes in which one agent card is served.

use chancery_protocol::AgentCard;
use serde_json::Value;

pub use super::v0_3::card::is_reachable as is_reachable_over_0_3;
use super::write::write;
use super::{original, v0_3};

/// The 1.0 card with the members 0.3 readers look for beside it: each version finds its own and ignores the other's.
/// A card without a 0.3 address is shown as it is.
pub fn hybrid(card: &AgentCard) -> Vec<u8> {
    let mut out = Vec::new();
    if !is_reachable_over_0_3(card) {
        write(&mut out, card);
        return out;
    }
    // Neither version's signature covers a mixture of both.
    let unsigned = AgentCard { signatures: Vec::new(), ..card.clone() };
    let older = v0_3::card::Card::from(&unsigned);
    if let (Ok(mut both), Ok(older)) = (serde_json::to_value(&unsigned), serde_json::to_value(older)) {
        add(&mut both, older);
        write(&mut out, &both);
    }
    out
}

/// The card at the end of the 0.3 REST paths. Some of its readers take it for the 0.3 JSON and some for the JSON of the
/// 0.3 proto; the two differ in how they declare security schemes, so each scheme is declared both ways.
pub(crate) fn v0_3_rest(card: &AgentCard) -> Vec<u8> {
    let mut out = Vec::new();
    let older = v0_3::card::Card::from(card);
    if card.security_schemes.is_empty() {
        write(&mut out, &older);
    } else if let (Ok(mut older), Ok(schemes)) = (serde_json::to_value(older), serde_json::to_value(&card.security_schemes)) {
        add(&mut older, serde_json::json!({ "securitySchemes": schemes }));
        write(&mut out, &older);
    }
    out
}

/// The card of the original protocol, in the shape the ADR gives it.
pub fn adr(card: &AgentCard) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &original::card::Card::from(card));
    out
}

/// Adds what `from` has and `to` has not, at every level. Lists of equal length are taken item by item.
fn add(to: &mut Value, from: Value) {
    match (to, from) {
        (Value::Object(to), Value::Object(from)) => {
            for (name, value) in from {
                match to.get_mut(&name) {
                    Some(present) => add(present, value),
                    None => {
                        to.insert(name, value);
                    }
                }
            }
        }
        (Value::Array(to), Value::Array(from)) if to.len() == from.len() => {
            to.iter_mut().zip(from).for_each(|(to, from)| add(to, from));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Codec as _;
    use crate::json::v1_0::V1_0;

    const CARD: &str = r#"{
        "name":"n","description":"d","version":"1","capabilities":{"streaming":true,"extendedAgentCard":true},
        "supportedInterfaces":[
            {"url":"http://h/","protocolBinding":"JSONRPC","protocolVersion":"1.0"},
            {"url":"http://h/old","protocolBinding":"JSONRPC","protocolVersion":"0.3"},
            {"url":"h:1","protocolBinding":"GRPC","protocolVersion":"0.3"}],
        "securitySchemes":{"key":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}},
        "securityRequirements":[{"schemes":{"key":{"list":[]}}}],
        "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
        "skills":[{"id":"s","name":"s","description":"s","tags":["t"]}],
        "signatures":[{"protected":"p","signature":"s"}]}"#;

    fn card() -> AgentCard {
        V1_0.decode_card(CARD).unwrap()
    }

    #[test]
    fn a_hybrid_card_reads_as_either_version() {
        let bytes = hybrid(&card());
        let text = std::str::from_utf8(&bytes).unwrap();
        let newest = V1_0.decode_card(text).unwrap();
        assert_eq!(newest, AgentCard { signatures: Vec::new(), ..card() });

        let older: AgentCard = serde_json::from_str::<v0_3::card::Card>(text).unwrap().into();
        let urls: Vec<_> = older.supported_interfaces.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(urls, ["http://h/old", "h:1"]);
        assert_eq!(older.security_schemes, newest.security_schemes);
        assert_eq!(older.security_requirements, newest.security_requirements);
    }

    #[test]
    fn a_hybrid_card_has_the_members_older_readers_look_for() {
        let value: Value = serde_json::from_slice(&hybrid(&card())).unwrap();
        assert_eq!(value["protocolVersion"], "0.3.0");
        assert_eq!(value["url"], "http://h/old");
        assert_eq!(value["preferredTransport"], "JSONRPC");
        assert_eq!(value["additionalInterfaces"][1]["url"], "h:1", "each address is listed once");
        assert_eq!(value["additionalInterfaces"].as_array().unwrap().len(), 2);
        assert_eq!(value["supportsAuthenticatedExtendedCard"], true);
        assert_eq!(value["securitySchemes"]["key"]["type"], "http");
        assert_eq!(value.get("signatures"), None);
    }

    #[test]
    fn an_address_of_grpc_that_others_list_in_both_forms_is_one_address() {
        let read = |text: &str| -> Vec<String> {
            let older: AgentCard = serde_json::from_str::<v0_3::card::Card>(text).unwrap().into();
            older.supported_interfaces.into_iter().map(|one| one.url).collect()
        };
        let https = String::from_utf8(hybrid(&card())).unwrap().replace("http://h/", "https://h/");
        let both = https.replace(
            r#"{"transport":"GRPC","url":"h:1"}"#,
            r#"{"transport":"GRPC","url":"https://h:1"},{"transport":"GRPC","url":"h:1"}"#,
        );
        assert_ne!(https, both);
        assert_eq!(read(&both), ["https://h/old", "h:1"]);
        assert_eq!(read(&https.replace("\"h:1\"", "\"https://h:1\"")), ["https://h/old", "https://h:1"], "alone, it stays");
    }

    #[test]
    fn a_card_without_an_older_address_stays_exactly_1_0() {
        let mut card = card();
        card.supported_interfaces.truncate(1);
        assert_eq!(hybrid(&card), V1_0.encode_card(&card));
    }

    #[test]
    fn the_adr_card_has_all_that_its_two_kinds_of_readers_need() {
        let value: Value = serde_json::from_slice(&adr(&card())).unwrap();
        assert_eq!(value["url"], "http://h/old");
        assert_eq!(value["provider"]["organization"], "n");
        assert_eq!(value["authentication"]["schemes"][0], "bearer");
        assert_eq!(value["capabilities"]["pushNotifications"], false);
        assert_eq!(value["inputModes"], value["defaultInputModes"]);
        assert_eq!(value["skills"][0]["inputModes"], serde_json::json!([]));
    }
}
