//! All that a config makes of a node, as texts that two nodes can be compared by.

use std::collections::BTreeMap;
use std::fmt::Debug;

use axum::body::{Body, to_bytes};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_inbound::DoorSettings;
use http::Request;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::Node;

/// Every part that depends on the config, by its name.
pub(super) async fn picture(node: &Node) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    cards(node, &mut parts).await;
    let chancery = node.chancery();
    for agent in chancery.agents().iter() {
        let facts = (agent.exposed, agent.enforces_input_modes, &agent.extended, chancery.agents().first().name == agent.name);
        parts.insert(format!("agent {}", agent.name), format!("{facts:#?}"));
    }
    parts.insert("rules".to_owned(), chancery.look_at_rules(|rules| unordered(rules)));
    parts.insert("limits".to_owned(), format!("{:#?}", chancery.limits()));
    parts.insert("retention".to_owned(), format!("{:#?} {:?}", chancery.retention(), chancery.dedupe()));
    let running = node.running();
    let gateway = &running.service().gateway;
    parts.insert("agents elsewhere".to_owned(), gateway.lines().join("\n"));
    for (name, guard) in gateway.guards() {
        parts.insert(format!("guard {name}"), format!("{:#?}", guard.config()));
    }
    let webhooks = running.service().webhooks.as_ref();
    parts.insert(
        "egress".to_owned(),
        format!("{:#?}", webhooks.map(|webhooks| webhooks.egress().map(|guard| guard.config().clone()))),
    );
    let doors = running.doors_handle().doors();
    // Routes cannot be compared; what they are made of is among the other parts.
    let DoorSettings {
        public_url,
        listen,
        hosts,
        every_host,
        tls,
        headerless,
        limits,
        json,
        admin_routes,
        authenticator,
        signposts,
        swp,
    } = doors.settings();
    let texts = (public_url, listen, hosts, every_host, tls, headerless, limits, json, signposts, swp);
    parts.insert("doors".to_owned(), format!("{texts:#?}"));
    parts.insert("admin".to_owned(), admin_routes.is_some().to_string());
    parts.insert("authenticator".to_owned(), unordered(authenticator));
    parts.insert("hosts".to_owned(), doors.refuses_other_hosts().to_string());
    parts
}

/// Lines that differ between two of the same: seeds of hash maps, and when a cache was last looked at.
const DRAWN: [&str; 2] = ["per_hasher_seed:", "last:"];

/// A text of something whose maps have no order: its lines, sorted.
fn unordered(of: impl Debug) -> String {
    let text = format!("{of:#?}");
    let is_drawn = |line: &&str| DRAWN.iter().any(|name| line.trim_start().starts_with(name));
    let mut lines: Vec<&str> = text.lines().filter(|line| !is_drawn(line)).collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// The bytes of every card and of the keys, at the root, at each agent and at each host that is an agent's.
async fn cards(node: &Node, parts: &mut BTreeMap<String, String>) {
    let agents = node.chancery().agents();
    let doors = node.running().doors_handle().doors();
    let hosts = doors.settings().signposts.hosts.keys().map(ToString::to_string).collect::<Vec<_>>();
    let paths = agents.iter().map(|agent| format!("/agents/{}", agent.name)).chain([String::new()]);
    let mut asked: Vec<(String, String, &str)> = Vec::new();
    for path in paths {
        for version in ["", "1.0", "0.3"] {
            asked.push(("127.0.0.1:7420".to_owned(), format!("{path}/.well-known/agent-card.json"), version));
        }
        asked.push(("localhost:7420".to_owned(), format!("{path}/.well-known/agent-card.json"), ""));
        asked.push(("127.0.0.1:7420".to_owned(), format!("{path}/.well-known/agent.json"), ""));
    }
    asked.extend(hosts.into_iter().map(|host| (host, "/.well-known/agent-card.json".to_owned(), "")));
    asked.push(("127.0.0.1:7420".to_owned(), "/.well-known/jwks.json".to_owned(), ""));
    for (host, path, version) in asked {
        let mut request = Request::get(&path).header("host", &host);
        if !version.is_empty() {
            request = request.header("A2A-Version", version);
        }
        let answer = node.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let status = answer.status();
        let text = String::from_utf8(to_bytes(answer.into_body(), 1 << 20).await.unwrap().to_vec()).unwrap();
        parts.insert(format!("card {host}{path} {version}"), format!("{status} {}", without_es256(text)));
    }
}

/// A card with its ES256 signatures blanked: each is made with a number drawn for it. All other bytes stay.
fn without_es256(mut text: String) -> String {
    let card: Value = serde_json::from_str(&text).unwrap_or_default();
    for signature in card["signatures"].as_array().into_iter().flatten() {
        let head = URL_SAFE_NO_PAD.decode(signature["protected"].as_str().unwrap_or_default()).unwrap_or_default();
        let head: Value = serde_json::from_slice(&head).unwrap_or_default();
        if head["alg"] == "ES256" {
            text = text.replace(signature["signature"].as_str().unwrap(), "drawn");
        }
    }
    text
}
