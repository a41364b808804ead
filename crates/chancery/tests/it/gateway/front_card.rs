//! The card a gateway shows: every address is ours or gone, every promise one that is kept, and signed by us.

use chancery_identity::cards::{VerifyRules, verify_card_signatures, verify_original_card};
use chancery_identity::{Jwks, SealKey};
use serde_json::{Value, json};

use super::in_front_of;
use super::pages::CARD;
use super::scripted::{Asked, Script, Scripted};
use crate::support::server::Server;

const ORIGINAL: &str = "/.well-known/agent.json";

/// Every shape a card is shown in: a name, the path, the version asked for.
const SHAPES: [(&str, &str, Option<&str>); 8] = [
    ("1.0", CARD, Some("1.0")),
    ("0.3", CARD, Some("0.3")),
    ("mixed", CARD, None),
    ("original", ORIGINAL, None),
    ("named 1.0", "/agents/front/.well-known/agent-card.json", Some("1.0")),
    ("named 0.3", "/agents/front/.well-known/agent-card.json", Some("0.3")),
    ("named mixed", "/agents/front/.well-known/agent-card.json", None),
    ("named original", "/agents/front/.well-known/agent.json", None),
];

async fn shown(gateway: &Server, path: &str, version: Option<&str>) -> String {
    let request = reqwest::Client::new().get(format!("{}{path}", gateway.url()));
    let request = version.iter().fold(request, |request, version| request.header("A2A-Version", *version));
    request.send().await.expect("an answer").text().await.expect("text")
}

/// Cards in the shape of each version, with the agent's own address wherever one can stand.
fn cards(url: &str) -> [(&'static str, Value); 3] {
    let at = |path: &str| format!("{url}/{path}");
    let common = json!({
        "name": "Hidden", "description": "Behind a gateway.", "version": "7",
        "provider": { "organization": "Hiders", "url": at("provider") },
        "documentationUrl": at("documentation"), "iconUrl": at("icon"),
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "hide", "name": "Hide", "description": "Hides.", "tags": ["test"], "nobodyKnows": at("skill") }],
        "nobodyKnows": { "endpoint": at("unknown") },
    });
    let extensions = json!([
        { "uri": at("extension"), "required": false, "params": { "endpoint": at("endpoint") } },
        { "uri": "https://example.org/extensions/colours/v1", "params": { "colour": "blue" } },
        { "uri": "https://example.org/extensions/places/v1", "params": { "nested": [{ "place": at("place") }] } },
        { "uri": "urn:chancery:fronted:v1", "params": { "verification": "verified" } },
        { "uri": "urn:chancery:identity:v1", "params": { "agentId": "somebody else" } },
    ]);
    let oidc = at("oidc");
    let mut newer = common.clone();
    newer["supportedInterfaces"] =
        json!([{ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "inner" }]);
    newer["capabilities"] =
        json!({ "streaming": false, "pushNotifications": true, "extendedAgentCard": true, "extensions": extensions });
    newer["securitySchemes"] = json!({ "oidc": { "openIdConnectSecurityScheme": { "openIdConnectUrl": oidc } } });
    newer["securityRequirements"] = json!([{ "schemes": { "oidc": { "list": [] } } }]);
    newer["skills"][0]["securityRequirements"] = json!([{ "schemes": { "oidc": { "list": [] } } }]);
    let mut older = common.clone();
    older["protocolVersion"] = json!("0.3.0");
    older["url"] = json!(url);
    older["preferredTransport"] = json!("JSONRPC");
    older["additionalInterfaces"] = json!([{ "url": at("rest"), "transport": "HTTP+JSON" }]);
    older["supportsAuthenticatedExtendedCard"] = json!(true);
    older["capabilities"] = json!({ "pushNotifications": true, "stateTransitionHistory": true, "extensions": extensions });
    older["securitySchemes"] = json!({ "oidc": { "type": "openIdConnect", "openIdConnectUrl": oidc } });
    older["security"] = json!([{ "oidc": [] }]);
    let mut original = common;
    original["url"] = json!(url);
    original["authentication"] = json!({ "schemes": ["bearer"], "credentials": at("credentials") });
    original["capabilities"] = json!({ "pushNotifications": true });
    [("1.0", newer), ("0.3", older), ("original", original)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_shape_of_the_card_leads_past_the_gateway_and_every_promise_is_kept() {
    for version in 0..3 {
        // At an address that no other part of the test has, so that it can be looked for.
        let agent = Scripted::at("127.0.0.2", |url| {
            let page = Script::json(&cards(url)[version].1);
            move |asked: &Asked| if asked.path == CARD { page.clone() } else { Script::page(404, "text/plain", "") }
        })
        .await;
        let gateway = in_front_of(&agent.url(), "");
        let jwks: Jwks = serde_json::from_str(&shown(&gateway, "/.well-known/jwks.json", None).await).expect("keys");
        let theirs = cards(&agent.url())[version].clone();
        let mut ids = Vec::new();
        for (name, path, asked_for) in SHAPES {
            let what = format!("a card of {} shown as {name}", theirs.0);
            let text = shown(&gateway, path, asked_for).await;
            assert!(!text.contains("127.0.0.2"), "{what} names the agent's own address: {text}");
            assert!(!text.contains("nobodyKnows"), "{what} has a member nobody here looked at: {text}");
            let card: Value = serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{what}: {fault}: {text}"));
            assert!(text.contains(gateway.url()), "{what}: {text}");
            assert_eq!((&card["name"], &card["version"]), (&json!("Hidden"), &json!("7")), "{what}");
            assert_eq!(card["capabilities"]["streaming"], true, "{what}: streams are recorded here");
            assert_eq!(
                card["capabilities"]["pushNotifications"], true,
                "{what}: the log is here, so webhooks are told from here"
            );
            for member in ["securitySchemes", "security", "securityRequirements", "supportsAuthenticatedExtendedCard"] {
                let empty = matches!(&card[member], Value::Null | Value::Bool(false));
                let empty = empty || card[member].as_object().is_some_and(serde_json::Map::is_empty);
                assert!(empty || card[member] == json!([]), "{what}: {member} is {}", card[member]);
            }
            assert_ne!(card["capabilities"]["extendedAgentCard"], true, "{what}");
            assert!(card["skills"][0].get("securityRequirements").is_none(), "{what}: {text}");
            if name.ends_with("original") {
                ids.push(verify_original_card(&card).unwrap_or_else(|fault| panic!("{what}: {fault}")).to_string());
                continue;
            }
            let extensions = card["capabilities"]["extensions"].as_array().expect("some");
            let of = |uri: &str| extensions.iter().filter(|extension| extension["uri"] == uri).collect::<Vec<_>>();
            let fronted = of("urn:chancery:fronted:v1");
            assert_eq!(fronted.len(), 1, "{what}: {text}");
            let digest: String =
                SealKey::digest(theirs.1.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            let params = &fronted[0]["params"];
            assert_eq!(params["cardDigest"], format!("sha256:{digest}"), "{what}");
            assert_eq!((&params["cardVersion"], &params["verification"]), (&json!(theirs.0), &json!("unsigned")), "{what}");
            if theirs.0 != "original" {
                assert_eq!(of("https://example.org/extensions/colours/v1").len(), 1, "{what}: {text}");
            }
            if asked_for.is_some() {
                let rules = VerifyRules { card_url: Some(gateway.url().to_owned()), ..VerifyRules::default() };
                let verified = verify_card_signatures(&text, &jwks, &rules).unwrap_or_else(|fault| panic!("{what}: {fault}"));
                ids.extend(verified.by.iter().find_map(|one| one.agent_id.clone()).map(|id| id.to_string()));
                let identity = of("urn:chancery:identity:v1");
                assert_eq!(identity.len(), 1, "{what}: {text}");
                assert!(identity[0].to_string().contains(ids.last().expect("one")), "{what}: {text}");
            }
        }
        assert_eq!(ids.len(), 6);
        assert!(ids.iter().all(|id| *id == ids[0]), "one agent in every shape: {ids:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_says_whether_the_original_was_verified_and_by_whom() {
    let back = super::conformance();
    let gateway = in_front_of(back.url(), "");
    let theirs = shown(&back, CARD, Some("1.0")).await;
    let card: Value = serde_json::from_str(&shown(&gateway, CARD, Some("1.0")).await).expect("JSON");
    let extensions = card["capabilities"]["extensions"].as_array().expect("some");
    let fronted = extensions.iter().find(|extension| extension["uri"] == "urn:chancery:fronted:v1").expect("it says so");
    assert_eq!(fronted["params"]["verification"], "verified");
    let id = fronted["params"]["agentIds"][0].as_str().expect("an id");
    assert!(theirs.contains(id), "{id} signed {theirs}");
    let own = extensions.iter().find(|extension| extension["uri"] == "urn:chancery:identity:v1").expect("who we are");
    assert!(!own.to_string().contains(id), "the gateway signs with a key of its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pictures_and_documentation_elsewhere_stay_and_those_at_the_agents_own_host_go() {
    for kept in ["iconUrl", "documentationUrl"] {
        let agent = Scripted::at("127.0.0.2", |url| {
            let mut card = cards(url)[0].1.clone();
            card[kept] = json!("https://elsewhere.example/page");
            let page = Script::json(&card);
            move |asked: &Asked| if asked.path == CARD { page.clone() } else { Script::page(404, "text/plain", "") }
        })
        .await;
        let gateway = in_front_of(&agent.url(), "");
        for version in ["1.0", "0.3"] {
            let card: Value = serde_json::from_str(&shown(&gateway, CARD, Some(version)).await).expect("a card");
            for member in ["iconUrl", "documentationUrl"] {
                let expected = if member == kept { json!("https://elsewhere.example/page") } else { Value::Null };
                assert_eq!(card[member], expected, "{member} of {version}: {card}");
            }
        }
    }
}
