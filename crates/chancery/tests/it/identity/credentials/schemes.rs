//! What cards declare: exactly the kinds of credentials that are configured.

use chancery_identity::credentials::KeyHash;
use serde_json::Value;

use super::TestIssuer;
use crate::support::certificates::Signer;
use crate::support::server::{Home, Setup};

async fn card(client: &reqwest::Client, url: &str, version: &str) -> Value {
    let request = client.get(format!("{url}/.well-known/agent-card.json")).header("A2A-Version", version);
    request.send().await.expect("an answer").json().await.expect("JSON")
}

fn names(schemes: &Value) -> Vec<String> {
    schemes.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[tokio::test]
async fn a_card_declares_what_is_configured_and_nothing_else() {
    let issuer = TestIssuer::start().await;
    let (nodes, node) = (Signer::new("nodes"), Signer::new("nodes").node());
    let key = format!("[callers.k]\nkey_hash = '{}'\n", KeyHash::of("the-key-of-the-planner"));
    let agent = format!("[callers.s]\nagent_id = '{}'\n", super::TestAgent::random().id);
    let discovered = "[issuers.acme]\nissuer = 'https://login.acme.example'\naudience = 'https://node.example'\n".to_owned();
    let tls = "[tls]\ncert_file = 'node.pem'\nkey_file = 'node.key'\n";
    let mutual = format!("{tls}client_ca_file = 'callers.pem'\n[callers.c]\ncertificate = 'spiffe://acme/c'\n");
    for (what, config, expected) in [
        ("open", String::new(), vec![]),
        ("open over TLS", tls.to_owned(), vec![]),
        ("keys", key.clone(), vec!["apiKey", "bearer"]),
        ("signatures have no scheme", agent, vec![]),
        ("tokens", issuer.config(""), vec!["bearer"]),
        ("tokens, discovered", discovered.clone(), vec!["bearer", "oidc-acme"]),
        ("certificates", mutual.clone(), vec!["mutualTls"]),
        ("all", format!("{discovered}{key}{mutual}"), vec!["apiKey", "bearer", "mutualTls", "oidc-acme"]),
    ] {
        let home = Home::new();
        for (name, text) in [("node.pem", &node.certificate), ("node.key", &node.key), ("callers.pem", &nodes.pem())] {
            std::fs::write(home.path().join(name), text).expect("the home takes files");
        }
        let server = Setup::in_home(&home).args(["--memory"]).config(&config).start();
        // Whoever the node is does not matter here.
        let client = reqwest::Client::builder().no_proxy().tls_danger_accept_invalid_certs(true).build().expect("a client");
        let newer = card(&client, server.url(), "1.0").await;
        assert_eq!(names(&newer["securitySchemes"]), expected, "{what}: {newer}");
        let required: Vec<String> =
            newer["securityRequirements"].as_array().into_iter().flatten().flat_map(|one| names(&one["schemes"])).collect();
        assert_eq!(required, expected, "{what}: each alone is enough: {newer}");
        let older = card(&client, server.url(), "0.3").await;
        assert_eq!(names(&older["securitySchemes"]), expected, "{what}: {older}");
        let required: Vec<String> = older["security"].as_array().into_iter().flatten().flat_map(names).collect();
        assert_eq!(required, expected, "{what}: {older}");
    }
}

#[tokio::test]
async fn a_card_declares_what_a_caller_added_since_brought_with_it() {
    let issuer = TestIssuer::start().await;
    let home = Home::new();
    let server = super::server(&home, &issuer.config(""));
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    assert_eq!(names(&card(&client, server.url(), "1.0").await["securitySchemes"]), ["bearer"]);
    let added = super::operate(&client, &home, &server, "callers", &serde_json::json!({ "name": "late" })).await;
    assert!(added["key"].as_str().is_some(), "{added}");
    crate::support::patience::soon("the card to say so", async || {
        let schemes = card(&client, server.url(), "1.0").await["securitySchemes"].clone();
        (names(&schemes) == ["apiKey", "bearer"]).then_some(())
    })
    .await;
}
