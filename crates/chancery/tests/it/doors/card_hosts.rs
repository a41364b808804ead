//! Cards at each of the node's own hosts: strict clients take no address of another origin.

use chancery_identity::Jwks;
use chancery_identity::cards::{VerifyRules, verify_card_signatures};
use serde_json::{Value, json};
use url::Url;

use super::{JSON, NEWEST};
use crate::support::server::{Home, Server, Setup};

const CARD: &str = "/.well-known/agent-card.json";

/// Every shape of a card: its path, and the version that is asked for.
const SHAPES: [(&str, Option<&str>); 4] =
    [(CARD, Some("1.0")), (CARD, Some("0.3")), (CARD, None), ("/.well-known/agent.json", None)];

async fn fetch(server: &Server, host: &str, path: &str, version: Option<&str>) -> reqwest::Response {
    let request = reqwest::Client::new().get(format!("{}{path}", server.url())).header("Host", host);
    let request = version.iter().fold(request, |request, version| request.header("A2A-Version", *version));
    request.send().await.expect("an answer")
}

/// Every address a card of any version says its agent can be called at.
fn addresses(card: &Value) -> Vec<String> {
    let listed = |member: &str| card[member].as_array().cloned().unwrap_or_default();
    let listed = listed("supportedInterfaces").into_iter().chain(listed("additionalInterfaces"));
    let all = listed.map(|interface| interface["url"].clone()).chain(card.get("url").cloned());
    all.map(|url| url.as_str().expect("a text").to_owned()).collect()
}

/// The check of Google ADK's client: a scheme, https or http on a loopback host, and the origin the card came from.
#[track_caller]
fn assert_adk_takes(card: &Value, fetched_from: &str) {
    let origin = Url::parse(fetched_from).unwrap().origin();
    let addresses = addresses(card);
    assert!(!addresses.is_empty(), "{card}");
    for address in addresses {
        let url = Url::parse(&address).unwrap_or_else(|fault| panic!("{address}: {fault}"));
        let host = url.host_str().unwrap_or_default();
        let is_loopback = host == "localhost" || host.starts_with("127.") || host == "[::1]";
        assert!(url.scheme() == "https" || (url.scheme() == "http" && is_loopback), "{address}");
        assert_eq!(url.origin(), origin, "{address}");
    }
}

#[tokio::test]
async fn law_1_5_1_every_address_on_a_card_has_the_origin_it_was_fetched_from() {
    let server = Setup::conformance().args(["--agent", "echo"]).start();
    let port = server.url().rsplit_once(':').unwrap().1.to_owned();
    let hosts = [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}"), format!("127.1.2.3:{port}")];
    for host in hosts.iter().map(String::as_str).chain(["localhost", "localhost:8080"]) {
        for at in ["", "/agents/echo"] {
            for (path, version) in SHAPES {
                let card: Value = fetch(&server, host, &format!("{at}{path}"), version).await.json().await.unwrap();
                assert_adk_takes(&card, &format!("http://{host}"));
                assert!(addresses(&card).iter().all(|url| url.trim_end_matches('/').ends_with(at)), "{card}");
            }
        }
    }
}

#[tokio::test]
async fn a_card_is_signed_for_each_host_and_tagged_by_what_it_says() {
    let server = Setup::conformance().start();
    let port = server.url().rsplit_once(':').unwrap().1.to_owned();
    let mut tags = Vec::new();
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        let jwks: Jwks = fetch(&server, &host, "/.well-known/jwks.json", None).await.json().await.expect("keys");
        for version in ["1.0", "0.3"] {
            let first = fetch(&server, &host, CARD, Some(version)).await;
            assert_eq!(first.headers()["vary"], "A2A-Version, Host");
            let tag = first.headers()["etag"].to_str().unwrap().to_owned();
            let text = first.text().await.unwrap();
            let rules = VerifyRules { card_url: Some(format!("http://{host}")), ..VerifyRules::default() };
            let verified = verify_card_signatures(&text, &jwks, &rules).unwrap_or_else(|fault| panic!("{fault}: {text}"));
            assert_eq!(verified.by.len(), 2, "{text}");
            assert!(text.contains(&format!("http://{host}/.well-known/jwks.json")), "{text}");

            let again = reqwest::Client::new().get(format!("{}{CARD}", server.url())).header("Host", &host);
            let again = again.header("A2A-Version", version).header("If-None-Match", &tag).send().await.unwrap();
            assert_eq!(again.status(), 304);
            tags.push(tag);
        }
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 6, "each host and version has a tag of its own");
}

#[tokio::test]
async fn a_host_that_is_not_ours_gets_the_public_card() {
    let server = Setup::conformance().args(["--insecure"]).start();
    for (path, version) in SHAPES {
        let public = fetch(&server, server.url().trim_start_matches("http://"), path, version).await.text().await.unwrap();
        for foreign in ["evil.example", "localhost.evil.example:80", "0.0.0.0", "10.0.0.1:7420"] {
            let seen = fetch(&server, foreign, path, version).await.text().await.unwrap();
            assert!(!seen.contains(foreign), "{foreign}: {seen}");
            assert_eq!(addresses(&serde_json::from_str(&seen).unwrap()), addresses(&serde_json::from_str(&public).unwrap()));
        }
    }
}

#[tokio::test]
async fn the_extended_card_has_the_host_of_its_caller_too() {
    let config = "[agents.echo]\nrun = 'echo'\nextended_skills = [{ id = 'audit', name = 'A', description = 'A', tags = ['a'] }]\n\
        [callers.planner]\nkey_env = 'PLANNER_KEY'\n";
    let home = Home::new();
    let key = "a-key-of-the-planner-which-is-long-enough";
    let server = Setup::in_home(&home).args(["--memory"]).env("PLANNER_KEY", key).config(config).start();
    let client = reqwest::Client::new();
    let rest = client.get(format!("{}/extendedAgentCard", server.url())).header("Host", "localhost:7");
    let rest: Value = rest.header(NEWEST.0, NEWEST.1).bearer_auth(key).send().await.unwrap().json().await.unwrap();
    assert_adk_takes(&rest, "http://localhost:7");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "agent/getAuthenticatedExtendedCard" });
    let rpc = client.post(server.url()).header("Host", "[::1]:7").header(JSON.0, JSON.1).bearer_auth(key);
    let rpc: Value = rpc.body(body.to_string()).send().await.unwrap().json().await.unwrap();
    assert_adk_takes(&rpc["result"], "http://[::1]:7");
    assert!(rpc["result"]["skills"].as_array().unwrap().iter().any(|skill| skill["id"] == "audit"), "{rpc}");
}

#[tokio::test]
async fn grpc_is_listed_once_and_without_a_scheme_only_if_the_config_says_so() {
    for (bindings, form) in [("", "http://localhost:7"), ("[card]\nbindings = ['HTTP+JSON', 'GRPC-TARGET']\n", "localhost:7")] {
        let server = Setup::conformance().config(bindings).start();
        for (version, list, name) in
            [("1.0", "supportedInterfaces", "protocolBinding"), ("0.3", "additionalInterfaces", "transport")]
        {
            let card: Value = fetch(&server, "localhost:7", CARD, Some(version)).await.json().await.unwrap();
            let grpc: Vec<_> = card[list].as_array().unwrap().iter().filter(|one| one[name] == "GRPC").collect();
            let of_version = if version == "1.0" { 2 } else { 1 };
            assert_eq!(grpc.len(), of_version, "once for each version: {card}");
            assert!(grpc.iter().all(|one| one["url"] == form), "{card}");
        }
    }
}
