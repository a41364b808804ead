//! What the node publishes about itself: no caller can change a byte of it, and everybody can verify it.

use std::collections::BTreeMap;

use chancery_identity::Jwks;
use chancery_identity::cards::{VerifyRules, verify_card_signatures, verify_original_card};
use chancery_identity::credentials::KeyHash;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::patience::BOUND;
use crate::support::server::{Home, Server, Setup};

const KEY: &str = "the-key-of-the-planner";
const CARD: &str = "/.well-known/agent-card.json";
const JWKS: &str = "/.well-known/jwks.json";

type Headers = &'static [(&'static str, &'static str)];

/// Everything that is published, by a name of its own: the path, and what to say beside it.
const PUBLISHED: [(&str, &str, Headers); 10] = [
    ("1.0", CARD, &[("A2A-Version", "1.0")]),
    ("0.3", CARD, &[("A2A-Version", "0.3")]),
    ("hybrid", CARD, &[]),
    ("original", "/.well-known/agent.json", &[]),
    ("keys", JWKS, &[]),
    ("extended 1.0", "/extendedAgentCard", &[("A2A-Version", "1.0"), ("X-API-Key", KEY)]),
    ("extended 0.3", "/v1/card", &[("A2A-Version", "0.3"), ("X-API-Key", KEY)]),
    ("second 1.0", "/agents/second/.well-known/agent-card.json", &[("A2A-Version", "1.0")]),
    ("second hybrid", "/agents/second/.well-known/agent-card.json", &[]),
    ("second original", "/agents/second/.well-known/agent.json", &[]),
];

fn start(home: &Home, more: &str) -> Server {
    let skills = "extended_skills = [{ id = 'audit', name = 'Audit', description = 'Shows what was said.', tags = ['audit'] }]";
    let agents = format!("[agents.first]\nrun = 'echo'\n{skills}\n[agents.second]\nrun = 'conformance'\n");
    let config = format!("{more}\n{agents}[callers.planner]\nkey_hash = '{}'\n", KeyHash::of(KEY));
    Setup::in_home(home).config(&config).start()
}

/// Headers without the date, and the body.
type Page = (BTreeMap<String, String>, String);

/// One exchange, byte by byte as it is written here: no client would send some of this.
async fn exchange(server: &Server, target: &str, headers: &[(&str, &str)]) -> Page {
    let address = server.url().trim_start_matches("http://");
    let mut request = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(format!("{request}\r\n").as_bytes()).await.expect("it is taken");
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(BOUND, stream.read_to_end(&mut bytes)).await;
    read.expect("an answer in time").expect("an answer to its end");
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("HTTP/1.1 200 OK"), "{target} {headers:?}: {text}");
    let headers = lines.filter_map(|line| line.split_once(": ")).filter(|(name, _)| *name != "date");
    (headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), body.to_owned())
}

async fn everything(server: &Server, change: impl Fn(&str) -> String, more: &[(&str, &str)]) -> BTreeMap<&'static str, Page> {
    let mut pages = BTreeMap::new();
    for (name, path, headers) in PUBLISHED {
        pages.insert(name, exchange(server, &change(path), &[headers, more].concat()).await);
    }
    pages
}

#[tokio::test]
async fn no_host_and_no_forwarding_header_changes_a_byte() {
    let home = Home::new();
    for (more, public) in [("", None), ("public_url = 'https://agents.example.org/a2a'", Some("agents.example.org"))] {
        let server = start(&home, more);
        let plain = |path: &str| path.to_owned();
        let host: Vec<_> = public.map(|public| ("Host", public)).into_iter().collect();
        let honest = everything(&server, plain, &host).await;
        assert_eq!(everything(&server, plain, &host).await, honest, "the same bytes for everybody, made once");
        for hostile in [
            [("Host", "evil.example")].as_slice(),
            &[("Host", "evil.example:443")],
            &[("X-Forwarded-Host", "evil.example")],
            &[("X-Forwarded-Proto", "https")],
            &[("X-Forwarded-Proto", "gopher"), ("X-Forwarded-Port", "70")],
            &[("X-Forwarded-For", "203.0.113.7"), ("X-Real-IP", "203.0.113.7")],
            &[("X-Forwarded-Prefix", "/evil"), ("X-Forwarded-Server", "evil.example")],
            &[("Forwarded", "for=203.0.113.7;host=evil.example;proto=https;by=evil")],
            &[("X-Original-URL", "/evil"), ("X-Rewrite-URL", "/evil"), ("X-Original-Host", "evil.example")],
            &[("Referer", "https://evil.example/")],
            &[("Host", "evil.example"), ("X-Forwarded-Host", "worse.example"), ("Forwarded", "host=worst.example")],
            &[("Via", "1.1 evil.example"), ("CF-Connecting-IP", "203.0.113.7"), ("True-Client-IP", "203.0.113.7")],
        ] {
            let names_host = hostile.iter().any(|(name, _)| *name == "Host");
            let headers = if names_host { hostile.to_vec() } else { [&host, hostile].concat() };
            assert_eq!(everything(&server, plain, &headers).await, honest, "{hostile:?}");
        }
        for origin in ["http://evil.example", "https://evil.example:8443"] {
            let absolute = |path: &str| format!("{origin}{path}");
            assert_eq!(everything(&server, absolute, &[("Host", "evil.example")]).await, honest, "{origin}");
        }
        for (name, (headers, body)) in &honest {
            assert!(!format!("{headers:?}{body}").contains("evil"), "{name}");
        }
    }
}

#[tokio::test]
async fn over_http2_the_authority_changes_nothing_either() {
    let server = start(&Home::new(), "");
    let honest = everything(&server, str::to_owned, &[]).await;
    // The address is ours; the name in the request is theirs.
    let address = server.url().trim_start_matches("http://").parse().expect("an address");
    let builder = reqwest::Client::builder().no_proxy().http2_prior_knowledge().resolve("evil.example", address);
    let client = builder.build().expect("a client");
    for (name, path, headers) in PUBLISHED {
        let url = format!("http://evil.example:{}{path}", address.port());
        let request = headers.iter().fold(client.get(url), |request, (name, value)| request.header(*name, *value));
        let body = request.send().await.expect("an answer").text().await.expect("text");
        assert_eq!(body, honest[name].1, "{name}");
    }
}

#[tokio::test]
async fn cards_verify_with_the_keys_that_are_published_and_the_mixed_one_is_unsigned() {
    let server = start(&Home::new(), "");
    let pages = everything(&server, str::to_owned, &[]).await;
    let keys: Jwks = serde_json::from_str(&pages["keys"].1).expect("keys");
    for secret in ["\"d\"", "\"k\"", "\"p\"", "\"q\""] {
        assert!(!pages["keys"].1.contains(secret), "public halves only: {}", pages["keys"].1);
    }
    let rules = VerifyRules { card_url: Some(server.url().to_owned()), ..VerifyRules::default() };
    let mut agents = BTreeMap::new();
    for name in ["1.0", "0.3", "extended 1.0", "extended 0.3", "second 1.0"] {
        let verified = verify_card_signatures(&pages[name].1, &keys, &rules).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!((verified.by.len(), verified.unverified), (2, 0), "{name}: EdDSA and ES256");
        let jwks = format!("{}{JWKS}", server.url());
        assert!(verified.by.iter().all(|one| one.jku.as_deref() == Some(jwks.as_str())), "{verified:?}");
        let agent = verified.by.iter().find_map(|one| one.agent_id.clone()).expect("an Ed25519 key is an agent");
        agents.insert(name, agent.to_string());
        let broken = pages[name].1.replacen("Echo", "Ecko", 1).replacen("Conformance", "Conformanc3", 1);
        assert!(verify_card_signatures(&broken, &keys, &rules).is_err(), "{name} says something else");
    }
    for (name, same) in [("original", "1.0"), ("second original", "second 1.0")] {
        let card: Value = serde_json::from_str(&pages[name].1).expect("JSON");
        let agent = verify_original_card(&card).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(agent.to_string(), agents[same], "one agent in every shape");
    }
    assert_ne!(agents["1.0"], agents["second 1.0"], "each agent has a key of its own");
    for name in ["hybrid", "second hybrid"] {
        assert!(!pages[name].1.contains("signature"), "{}", pages[name].1);
    }
    assert_eq!(pages["keys"].0["cache-control"], "public, max-age=300");
}

#[tokio::test]
async fn tags_are_the_same_after_a_restart_although_signatures_are_not() {
    let home = Home::new();
    let first = start(&home, "public_url = 'https://agents.example.org'");
    let public = [("Host", "agents.example.org")];
    let before = everything(&first, str::to_owned, &public).await;
    first.terminate();
    let second = start(&home, "public_url = 'https://agents.example.org'");
    let after = everything(&second, str::to_owned, &public).await;
    for (name, (headers, body)) in &before {
        let (headers_after, body_after) = &after[name];
        assert_eq!(headers.get("etag"), headers_after.get("etag"), "{name}");
        assert_eq!(headers.contains_key("etag"), !name.starts_with("extended"), "{name}: {headers:?}");
        // ES256 signs differently each time; what it signs, and whose keys they are, stays.
        let signed_by_es256 = matches!(*name, "1.0" | "0.3" | "extended 1.0" | "extended 0.3" | "second 1.0");
        assert_eq!(body != body_after, signed_by_es256, "{name}:\n{body}\n{body_after}");
    }
    let keys: Jwks = serde_json::from_str(&before["keys"].1).expect("keys");
    let rules = VerifyRules { card_url: Some("https://agents.example.org".to_owned()), ..VerifyRules::default() };
    assert!(verify_card_signatures(&after["1.0"].1, &keys, &rules).is_ok(), "the keys of before verify the card of after");
}
