//! Signed cards across implementations, both ways: ours under their verifiers, theirs under ours; prints one table.

use chancery_identity::cards::{
    CardShape, VerifyRules, sign_card, sign_original_card, verify_card, verify_card_signatures, verify_original_card,
    verify_rvagent_card,
};
use chancery_identity::keys::Cards;
use chancery_identity::{Algorithm, Jwk, Jwks, SigningKey};
use serde_json::{Value, json};

use crate::fronts::Prepare;
use crate::implementation::{Implementation, Table};
use crate::machine::MACHINE;
use crate::toolbox::Toolbox;

const PYTHON: Prepare = |tools| tools.python("python_1_3", "cards.py");
const OLDER_PYTHON: Prepare = |tools| tools.python("python_0_3", "cards.py");
const JS: Prepare = |tools| tools.node("js_1_3", "cards.mjs");
const RVAGENT: Prepare = |tools| tools.cargo("rvagent", "rvagent-cards");

#[test]
fn official_sdks_and_we_verify_each_others_cards() {
    let _shared = MACHINE.blocking_read();
    let tools = Toolbox::new();
    let mut table = Table::default();
    let sdks = [
        ("python 1.3.0", PYTHON, CardShape::V1_0, cards_1_0()),
        ("js 1.3.0", JS, CardShape::V1_0, cards_1_0()),
        ("python 0.3.26", OLDER_PYTHON, CardShape::V0_3, cards_0_3()),
    ];
    for (sdk, prepare, shape, cards) in sdks {
        let other = Implementation::ready(&tools, prepare);
        for algorithm in [Algorithm::EdDsa, Algorithm::Es256] {
            for (kind, card) in &cards {
                let column = |what: &str| format!("{sdk:<14} {:<6} {kind:<13} {what}", algorithm.as_str());
                ours_under(&other, (algorithm, shape), card, &mut table, &column);
                theirs_under_us(&other, algorithm, card, &mut table, &column);
            }
        }
    }
    with_the_objects_of_the_js_sdk(&Implementation::ready(&tools, JS), &mut table);
    // Two algorithms; five rows for each card, and three for the objects of the JS SDK.
    table.settle(2 * ((4 + 4 + 2) * 5 + 3));
}

/// The JS SDK signs its own objects too, but then loses the security schemes on the way. What it signed that way verifies here as a
/// card without them; what we sign verifies there that way only if the card has none, because we do not sign so little.
fn with_the_objects_of_the_js_sdk(js: &Implementation, table: &mut Table) {
    for algorithm in [Algorithm::EdDsa, Algorithm::Es256] {
        let column = |what: &str| format!("{:<14} {:<6} {:<13} {what}", "js 1.3.0", algorithm.as_str(), "its object");
        let (_, card) = cards_1_0().remove(0);
        let signed = js.run(&["sign", algorithm.as_str(), "object"], &card);
        let jwks: Jwks = serde_json::from_value(signed["jwks"].clone()).unwrap();
        let verified = verify_card_signatures(&signed["card"].to_string(), &jwks, &VerifyRules::default());
        let mut covered = card.clone();
        covered.as_object_mut().unwrap().remove("securitySchemes");
        let good = verified.as_ref().is_ok_and(|verified| verified.card == covered);
        table.row(column("theirs verifies here, as far as it goes"), good, &format!("{verified:?}"));

        let key = SigningKey::<Cards>::generate(algorithm).unwrap();
        for (mut card, what, verifies) in
            [(covered, "ours without schemes verifies there", true), (card, "ours with schemes is refused there", false)]
        {
            sign_card(&mut card, CardShape::V1_0, &[&key], None).unwrap();
            let jwks = json!({ "keys": [Jwk::of(key.public(), None)] });
            let answer = js.run(&["verify", "object"], &json!({ "card": card, "jwks": jwks }));
            table.row(column(what), answer["verified"] == verifies, &answer);
        }
    }
}

#[test]
fn the_rvagent_crate_and_we_verify_each_others_cards() {
    let _shared = MACHINE.blocking_read();
    let other = Implementation::ready(&Toolbox::new(), RVAGENT);
    let mut table = Table::default();
    let column = |what: &str| format!("{:<14} {:<6} {:<13} {what}", "rvagent 0.1.0", "EdDSA", "original");

    let key = SigningKey::<Cards>::generate(Algorithm::EdDsa).unwrap();
    let mut ours = original_card();
    let agent_id = sign_original_card(&mut ours, &key).unwrap();
    let answer = other.run(&["verify"], &json!({ "card": ours }));
    table.row(column("ours verifies there"), answer["verified"] == true && answer["agent_id"] == agent_id.as_str(), &answer);
    table.row(column("and with the ADR's"), verify_card(&ours.to_string()).is_ok_and(|agent| agent == agent_id), &ours);
    for path in ["/name", "/skills/0/description", "/metadata/ruvector/memory/type", "/metadata/ruvector/signature/public_key"] {
        let answer = other.run(&["verify"], &json!({ "card": tampered(&ours, path) }));
        table.row(column(&format!("ours, {path} changed, is refused there")), answer["verified"] == false, &answer);
    }

    let theirs = other.run(&["sign"], &original_card())["card"].clone();
    let agent = verify_rvagent_card(&theirs);
    table.row(column("theirs verifies here"), agent.is_ok() && verify_original_card(&theirs).is_ok(), &theirs);
    for path in ["/name", "/skills/0/description", "/metadata/ruvector/memory/type", "/metadata/ruvector/signature/public_key"] {
        let refused = verify_rvagent_card(&tampered(&theirs, path)).is_err();
        table.row(column(&format!("theirs, {path} changed, is refused here")), refused, &theirs);
    }
    table.settle(11);
}

fn ours_under(
    other: &Implementation,
    (algorithm, shape): (Algorithm, CardShape),
    card: &Value,
    table: &mut Table,
    column: &dyn Fn(&str) -> String,
) {
    let key = SigningKey::<Cards>::generate(algorithm).unwrap();
    let stranger = SigningKey::<Cards>::generate(algorithm).unwrap();
    let jwks = json!({ "keys": [Jwk::of(key.public(), None)] });
    let mut signed = card.clone();
    sign_card(&mut signed, shape, &[&key], Some("https://agent.example/.well-known/jwks.json")).unwrap();

    let answer = other.run(&["verify"], &json!({ "card": signed, "jwks": jwks }));
    table.row(column("ours verifies there"), answer["verified"] == true, &answer);
    let answer = other.run(&["verify"], &json!({ "card": tampered(&signed, "/name"), "jwks": jwks }));
    table.row(column("ours, changed, is refused there"), answer["verified"] == false, &answer);
    let wrong = Jwk { kid: Some(key.kid().to_owned()), ..Jwk::of(stranger.public(), None) };
    let answer = other.run(&["verify"], &json!({ "card": signed, "jwks": { "keys": [wrong] } }));
    table.row(column("ours under a wrong key is refused there"), answer["verified"] == false, &answer);
}

fn theirs_under_us(
    other: &Implementation,
    algorithm: Algorithm,
    card: &Value,
    table: &mut Table,
    column: &dyn Fn(&str) -> String,
) {
    let signed = other.run(&["sign", algorithm.as_str()], card);
    let jwks: Jwks = serde_json::from_value(signed["jwks"].clone()).unwrap();
    let verify = |card: &Value| verify_card_signatures(&card.to_string(), &jwks, &VerifyRules::default());
    let verified = verify(&signed["card"]);
    let good = verified.as_ref().is_ok_and(|verified| {
        verified.unverified == 0
            && verified.by.len() == 1
            && verified.by[0].algorithm == algorithm
            && verified.card["name"] == card["name"]
    });
    table.row(column("theirs verifies here"), good, &format!("{verified:?}"));
    let refused = verify(&tampered(&signed["card"], "/name"));
    table.row(column("theirs, changed, is refused here"), refused.is_err(), &format!("{refused:?}"));
}

fn tampered(card: &Value, path: &str) -> Value {
    let mut card = card.clone();
    let place = card.pointer_mut(path).unwrap();
    let text = place.as_str().unwrap();
    // Hex stays hex, so that what is refused is the content and not the form.
    let last = if text.ends_with('0') { '1' } else { '0' };
    *place = json!(format!("{}{last}", &text[..text.len() - 1]));
    card
}

fn cards_1_0() -> Vec<(&'static str, Value)> {
    let plain = json!({
        "name": "echo", "description": "Says it again", "version": "1.2.3",
        "supportedInterfaces": [
            {"url": "https://agent.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "agent.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0", "tenant": "t"}],
        "provider": {"organization": "Example", "url": "https://example.com"},
        "documentationUrl": "https://example.com/docs", "iconUrl": "https://example.com/icon",
        "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": true},
        "securitySchemes": {
            "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
            "oauth": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://i.example", "scopes": {"s": "all"}}}}}},
        "securityRequirements": [{"schemes": {"oauth": {"list": ["s"]}}}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "Say", "description": "Says", "tags": ["t"], "examples": ["hi"]}],
    });
    let mut sparse = plain.clone();
    sparse["description"] = json!("");
    sparse["skills"][0]["tags"] = json!([]);
    sparse["securityRequirements"] = json!([{"schemes": {"key": {"list": []}}}]);
    sparse["securitySchemes"]["mtls"] = json!({"mtlsSecurityScheme": {}});
    let mut worldly = plain.clone();
    worldly["name"] = json!("écho \u{1f600} \"quoted\" \\ \u{7f}\u{2028} 0");
    worldly["description"] = json!("two\nlines\tand \u{1} control");
    worldly["securitySchemes"]["ключ"] = json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}});
    let mut extended = plain.clone();
    extended["capabilities"]["extensions"] = json!([{
        "uri": "urn:chancery:identity:v1", "description": "d", "required": false,
        "params": {
            "half": 0.5, "whole": 3.0, "small": 1e-7, "large": 1e21, "negative": -1.25, "list": [1, "two", true, {"a": "b"}],
            "\u{e000}": "private use", "\u{10000}": "astral", "empty": "", "nothing": {}, "none": [],
        },
    }]);
    vec![("plain", plain), ("empty members", sparse), ("worldly", worldly), ("extension", extended)]
}

fn cards_0_3() -> Vec<(&'static str, Value)> {
    let plain = json!({
        "protocolVersion": "0.3.0", "name": "echo", "description": "Says it again", "url": "https://agent.example/",
        "preferredTransport": "JSONRPC", "version": "1.2.3",
        "additionalInterfaces": [{"url": "https://agent.example/", "transport": "JSONRPC"}],
        "capabilities": {"streaming": true, "pushNotifications": false, "stateTransitionHistory": false, "extensions": [
            {"uri": "urn:chancery:identity:v1", "description": "d", "params": {"half": 0.5, "list": [1, "two"]}}]},
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "bearer": {"type": "http", "scheme": "Bearer"},
            "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://i.example"},
            "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://i.example", "scopes": {"s": "all"}}}}},
        "security": [{"oauth": ["s"]}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "Say", "description": "Says", "tags": ["t"]}],
    });
    let mut worldly = plain.clone();
    worldly["name"] = json!("écho \u{1f600} \"quoted\" \\ \u{7f}\u{2028} 0");
    worldly["preferredTransport"] = json!("GRPC");
    worldly["security"] = json!([{"key": []}]);
    worldly["skills"][0]["tags"] = json!([]);
    worldly["securitySchemes"]["mtls"] = json!({"type": "mutualTLS"});
    vec![("plain", plain), ("worldly", worldly)]
}

fn original_card() -> Value {
    json!({
        "name": "écho \u{1f600} 0", "description": "Says it again\n", "url": "https://agent.example/", "version": "1.2.3",
        "provider": {"organization": "Example"},
        "capabilities": {"streaming": true, "stateTransitionHistory": false},
        "authentication": {"schemes": ["bearer"]},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "Say", "description": "Says", "tags": ["t"], "examples": ["hi"]}],
        "metadata": {"ruvector": {"memory": {"type": "rvlake", "witness_format_version": 2, "share": 1.0}}, "\u{e000}": 1, "\u{10000}": 2},
    })
}
