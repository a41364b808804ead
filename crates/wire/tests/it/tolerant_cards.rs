//! Cards are taken as they are: what they lack is left empty, and only an address has to be there.

use chancery_protocol::{SecurityScheme, Version};
use chancery_wire::tolerant::{self, Leniency};
use serde_json::{Value, json};

fn card() -> Value {
    json!({
        "name": "A", "description": "d", "version": "1", "capabilities": { "streaming": true },
        "supportedInterfaces": [{ "url": "http://h/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "provider": { "organization": "o", "url": "http://p/" },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "s", "name": "S", "description": "d", "tags": ["t"] }],
    })
}

fn older() -> Value {
    let mut card = card();
    card.as_object_mut().unwrap().remove("supportedInterfaces");
    card["url"] = json!("http://h/");
    card["protocolVersion"] = json!("0.3.0");
    card
}

fn read(card: &Value) -> (tolerant::ReadCard, tolerant::Leniencies) {
    let read = tolerant::card(&card.to_string()).unwrap_or_else(|fault| panic!("{fault}: {card}"));
    (read.value, read.leniencies)
}

#[test]
fn a_card_as_it_should_be_deviates_in_nothing() {
    for (card, version) in [(card(), Version::V1_0), (older(), Version::V0_3)] {
        let (read, leniencies) = read(&card);
        assert_eq!((read.version, read.card.name.as_str()), (version, "A"));
        assert!(leniencies.is_empty(), "{leniencies:?}");
    }
}

#[test]
fn a_signature_of_the_wrong_type_is_read_as_an_empty_one_and_never_as_absent() {
    for signatures in [json!({}), json!("s"), json!([7]), json!([{ "protected": 1 }])] {
        for whole in [card(), older()] {
            let mut card = whole;
            card["signatures"] = signatures.clone();
            let (read, leniencies) = read(&card);
            assert_eq!(read.card.signatures.len(), 1, "{signatures}");
            assert_eq!((&*read.card.signatures[0].protected, &*read.card.signatures[0].signature), ("", ""));
            assert!(leniencies.contains(&Leniency::IncompleteCard), "{signatures}");
        }
    }
    let mut unsigned = card();
    unsigned["signatures"] = json!([]);
    assert!(read(&unsigned).0.card.signatures.is_empty());
}

#[test]
fn law_1_4_1_members_that_are_missing_null_or_of_the_wrong_type_are_empty() {
    let members =
        ["name", "description", "version", "capabilities", "provider", "skills", "defaultInputModes", "defaultOutputModes"];
    for whole in [card(), older()] {
        for name in members {
            for value in [None, Some(Value::Null), Some(json!(7))] {
                let mut card = whole.clone();
                card.as_object_mut().unwrap().remove(name);
                card.as_object_mut().unwrap().extend(value.clone().map(|value| (name.to_owned(), value)));
                let (read, _) = read(&card);
                assert_eq!(read.card.supported_interfaces[0].url, "http://h/", "{name} {value:?}");
            }
        }
        for name in ["id", "name", "description", "tags"] {
            let mut card = whole.clone();
            card["skills"][0].as_object_mut().unwrap().remove(name);
            let (read, _) = read(&card);
            let skill = &read.card.skills[0];
            assert!(!skill.id.is_empty() && !skill.name.is_empty(), "{name}: {skill:?}");
        }
        for provider in [json!({ "organization": "o" }), json!({ "url": null }), json!("o")] {
            let mut card = whole.clone();
            card["provider"] = provider;
            assert!(read(&card).0.card.provider.is_some());
        }
    }
    let (read, leniencies) = read(&json!({ "supportedInterfaces": [{ "url": "/" }] }));
    assert_eq!(read.card.supported_interfaces[0].protocol_binding, "JSONRPC");
    assert!(leniencies.contains(&Leniency::IncompleteCard));
}

#[test]
fn law_1_4_2_an_interface_without_a_version_keeps_it_open() {
    let mut card = card();
    card["supportedInterfaces"][0].as_object_mut().unwrap().remove("protocolVersion");
    card["protocolVersion"] = json!("0.3");
    card["url"] = json!("http://h/");
    let (read, leniencies) = read(&card);
    assert_eq!((read.version, read.card.supported_interfaces[0].protocol_version.as_str()), (Version::V1_0, ""));
    assert!(leniencies.contains(&Leniency::NoInterfaceVersion));
    card["supportedInterfaces"] = json!([]);
    assert_eq!(self::read(&card).0.version, Version::V0_3, "an empty list says nothing");
}

#[test]
fn bindings_and_security_are_read_in_the_words_of_either_version() {
    for (binding, read_as) in [("json-rpc", "JSONRPC"), ("REST", "HTTP+JSON"), ("HTTP_JSON", "HTTP+JSON"), ("grpc", "grpc")] {
        let mut card = card();
        card["supportedInterfaces"][0]["protocolBinding"] = json!(binding);
        assert_eq!(read(&card).0.card.supported_interfaces[0].protocol_binding, read_as);
    }
    let mut card = card();
    card["securitySchemes"] = json!({ "key": { "type": "http", "scheme": "Bearer" }, "odd": 7 });
    card["security"] = json!([{ "key": [] }]);
    let (read, _) = read(&card);
    assert!(matches!(&read.card.security_schemes["key"], SecurityScheme::HttpAuth(scheme) if scheme.scheme == "Bearer"));
    assert!(read.card.security_requirements[0].schemes.contains_key("key"));
    assert!(!read.card.security_schemes.contains_key("odd"));
}

#[test]
fn what_is_no_card_is_unreadable() {
    for text in ["", "7", "[]", "<html>", "{}", r#"{"detail":"Not Found"}"#, r#"{"error":{"message":"no"}}"#, r#"{"name":"A"}"#] {
        assert!(tolerant::card(text).is_err(), "{text}");
    }
}
