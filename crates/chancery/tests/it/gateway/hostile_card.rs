//! A card whose every URL leads to somebody who is listening: nobody ever comes.

use base64::Engine as _;
use serde_json::{Value, json};

use super::canary::Canary;
use super::in_front_of;
use super::pages::{CARD, Pages};
use super::scripted::{Asked, Script, Scripted, card};
use crate::support::line::Line;

fn signature(jku: &str) -> Value {
    let base64 = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let header = json!({ "alg": "EdDSA", "kid": "k", "jku": jku });
    json!({ "protected": base64.encode(header.to_string()), "signature": base64.encode([7; 64]) })
}

/// Everything in a card of 1.0 that holds a URL, but the interfaces.
fn decorated(mut card: Value, canary: &Canary) -> Value {
    let url = |path: &str| canary.url(path);
    card["provider"] = json!({ "organization": "Canaries", "url": url("provider") });
    card["documentationUrl"] = json!(url("documentation"));
    card["iconUrl"] = json!(url("icon"));
    card["securitySchemes"] = json!({
        "oidc": { "openIdConnectSecurityScheme": { "openIdConnectUrl": url("oidc") } },
        "code": { "oauth2SecurityScheme": { "oauth2MetadataUrl": url("metadata"), "flows": { "authorizationCode": {
            "authorizationUrl": url("authorize"), "tokenUrl": url("token"), "refreshUrl": url("refresh"), "scopes": {} } } } },
        "device": { "oauth2SecurityScheme": { "flows": { "deviceCode": {
            "deviceAuthorizationUrl": url("device"), "tokenUrl": url("token"), "scopes": {} } } } },
    });
    card["capabilities"]["extensions"] = json!([{ "uri": url("extension"), "required": false, "params": { "endpoint": url("params"), "nested": [url("nested")] } }]);
    card["signatures"] = json!([signature(&url("jku"))]);
    card
}

/// An agent that works, and whose answers hold the canary too.
fn answers(asked: &Asked, canary: &str) -> Script {
    let task = json!({ "task": { "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" },
        "artifacts": [{ "artifactId": "a", "parts": [{ "url": canary, "mediaType": "image/png" }] }] } });
    Script::result(asked, &task)
}

async fn send(url: &str) -> Value {
    let gateway = in_front_of(url, "");
    Line::to(gateway.url(), "").send("hello").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_may_write_any_url_into_its_card_and_is_called_at_its_own_alone() {
    let canary = Canary::listen().await;
    let pictured = canary.url("picture");
    let agent = Scripted::start(|url| {
        let shown = decorated(card(url, json!({})), &canary);
        move |asked: &Asked| if asked.path == CARD { Script::json(&shown) } else { answers(asked, &pictured) }
    })
    .await;
    let sent = send(&agent.url()).await;
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    assert_eq!(agent.count("SendMessage"), 1);
    canary.nobody_came("every field but the interfaces").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interfaces_elsewhere_are_not_called() {
    let canary = Canary::listen().await;
    let (port, at) = (canary.address.port(), canary.address.to_string());
    let names = [
        canary.url(""),
        format!("http://localhost:{port}/"),
        format!("http://127.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://user@127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        at,
    ];
    for (binding, version) in [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("GRPC", "1.0"), ("JSONRPC", "0.3"), ("GRPC", "0.3")] {
        let pages = Pages::open().await;
        let mut hostile = decorated(card(&pages.agent.url(), json!({ "streaming": true })), &canary);
        let listed = |url: &String| json!({ "url": url, "protocolBinding": binding, "protocolVersion": version });
        hostile["supportedInterfaces"] = json!(names.iter().map(listed).collect::<Vec<_>>());
        pages.show(CARD, &hostile.to_string());
        let sent = send(&pages.agent.url()).await;
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_FAILED", "{sent}");
        canary.nobody_came(binding).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_of_the_older_versions_lead_nowhere_else_either() {
    let canary = Canary::listen().await;
    let url = |path: &str| canary.url(path);
    let common = json!({
        "name": "Hostile", "description": "Points elsewhere.", "version": "1", "capabilities": { "streaming": true },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "s", "name": "S", "description": "Does it.", "tags": ["test"] }],
        "url": url("rpc"), "provider": { "organization": "Canaries", "url": url("provider") },
        "documentationUrl": url("documentation"), "iconUrl": url("icon"),
    });
    let mut older = common.clone();
    older["protocolVersion"] = json!("0.3.0");
    older["additionalInterfaces"] =
        json!([{ "url": url("rest"), "transport": "HTTP+JSON" }, { "url": canary.address.to_string(), "transport": "GRPC" }]);
    older["securitySchemes"] = json!({ "oidc": { "type": "openIdConnect", "openIdConnectUrl": url("oidc") } });
    older["signatures"] = json!([signature(&url("jku"))]);
    let mut original = common;
    original["authentication"] = json!({ "schemes": ["bearer"], "credentials": url("credentials") });
    for (path, hostile) in [(CARD, older), ("/.well-known/agent.json", original)] {
        let pages = Pages::open().await;
        pages.show(path, &hostile.to_string());
        let sent = send(&pages.agent.url()).await;
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_FAILED", "{sent}");
        canary.nobody_came(path).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_lead_nowhere() {
    let canary = Canary::listen().await;
    for status in [301, 302, 303, 307, 308] {
        for card_too in [true, false] {
            let location = canary.url("redirected");
            let agent = Scripted::start(|url| {
                let shown = Script::json(&card(url, json!({})));
                let away = Script::page_with(status, "text/plain", &[("Location", &location), ("Refresh", &location)], "");
                move |asked: &Asked| if asked.path.contains(".well-known") && !card_too { shown.clone() } else { away.clone() }
            })
            .await;
            let sent = send(&agent.url()).await;
            assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_FAILED", "{sent}");
        }
    }
    canary.nobody_came("redirects").await;
}
