//! Many agents behind one address: a host or a tenant says which, at every door, and says nothing about who may call it.

use std::sync::atomic::{AtomicUsize, Ordering};

use chancery_identity::Jwks;
use chancery_identity::cards::{VerifyRules, verify_card_signatures};
use chancery_identity::credentials::KeyHash;
use chancery_protocol::{
    Binding, GetTask, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, TaskId, TaskState, Version,
};
use chancery_wire::pb;
use serde_json::{Value, json};

use super::pages::CARD;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, RawAnswer, RawCall, RawClient};

const HOST: &str = "research.example";
const TENANT: &str = "lab";
/// The first agent completes whatever it is told; the other one does it.
const AGENTS: &str = "hosts = ['other.example']\n[agents.echo]\nrun = 'echo'\n[agents.research]\nrun = 'conformance'\n\
    hosts = ['Research.Example', 'also.example']\ntenants = 'lab'\n";

fn node(config: &str) -> Server {
    let home = Home::new();
    let data = home.data();
    Setup::in_home(&home).args(["--memory", "--data"]).args([data]).config(config).start()
}

fn at(server: &Server, host: &str) -> RawClient {
    RawClient::at_host(server.url(), host)
}

fn send(combination: Combination, tenant: Option<&str>, text: &str) -> RawCall {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let send = SendMessage {
        tenant: tenant.map(str::to_owned),
        message: Message::text(Role::User, "m", text).into(),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| format!("own-{number}").into()),
        unknown: chancery::protocol::Unknown::none(),
    };
    RawCall::of(combination, &Request::SendMessage(send)).expect("every version can send")
}

/// How the task of a send ended, by whichever door.
fn state(combination: Combination, answer: &RawAnswer) -> Option<TaskState> {
    if answer.is_refusal() {
        return None;
    }
    if combination.binding == Binding::Grpc {
        let reply = match combination.version {
            Version::V1_0 => pb::v1::peer::sent(answer.message()),
            _ => pb::v0_3::peer::sent(answer.message()),
        };
        return match reply.ok()? {
            Reply::Sent(Sent::Task(shown)) => Some(shown.task.status.state),
            _ => None,
        };
    }
    let text = answer.text().to_lowercase();
    let ended = |words: [&str; 2]| words.iter().any(|word| text.contains(word));
    match () {
        () if ended(["\"task_state_failed\"", "\"failed\""]) => Some(TaskState::Failed),
        () if ended(["\"task_state_completed\"", "\"completed\""]) => Some(TaskState::Completed),
        () => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_its_agents_at_every_door_and_nobody_elses() {
    let server = node(AGENTS);
    let (host, also, root) = (at(&server, HOST), at(&server, "also.example"), at(&server, "other.example"));
    for combination in Combination::ALL {
        let call = || send(combination, None, "fail no luck");
        assert_eq!(state(combination, &host.ask(&call()).await), Some(TaskState::Failed), "{}", combination.name());
        assert_eq!(state(combination, &also.ask(&call()).await), Some(TaskState::Failed), "{}", combination.name());
        assert_eq!(state(combination, &root.ask(&call()).await), Some(TaskState::Completed), "{}", combination.name());
    }
    for (path, status) in
        [("/agents/echo/.well-known/agent-card.json", 404), ("/agents", 404), ("/admin/v1/status", 404), (CARD, 200)]
    {
        assert_eq!(host.get(path, None).await.status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_at_a_host_says_that_host_in_every_shape_and_its_keys_are_there() {
    let server = node(AGENTS);
    let host = at(&server, HOST);
    let port = server.url().rsplit(':').next().expect("a port");
    let base = format!("http://{HOST}:{port}");
    let jwks = host.get("/.well-known/jwks.json", None).await.text();
    let jwks: Jwks = serde_json::from_str(&jwks).expect("keys");
    for (path, version) in [(CARD, Some("1.0")), (CARD, Some("0.3")), (CARD, None), ("/.well-known/agent.json", None)] {
        let text = host.get(path, version).await.text();
        assert!(text.contains(&format!("\"{base}\"")) && !text.contains("127.0.0.1"), "{path} {version:?}: {text}");
        let card: Value = serde_json::from_str(&text).expect("a card");
        assert_eq!(card["name"], "Conformance", "{text}");
        if version.is_some() {
            let rules = VerifyRules { card_url: Some(base.clone()), ..VerifyRules::default() };
            let verified = verify_card_signatures(&text, &jwks, &rules).unwrap_or_else(|fault| panic!("{fault}: {text}"));
            assert!(verified.by.len() == 2 && text.contains("jwks.json"), "{text}");
        }
    }
    let card: Value = serde_json::from_str(&host.get(CARD, Some("1.0")).await.text()).expect("a card");
    let bindings: Vec<_> =
        card["supportedInterfaces"].as_array().expect("some").iter().map(|one| (&one["protocolBinding"], &one["url"])).collect();
    assert!(bindings.contains(&(&json!("GRPC"), &json!(format!("http://{HOST}:{port}")))), "gRPC has a place at a host: {card}");
}

/// Every way in which a call at the root can name a tenant.
fn ways(combination: Combination, text: &str) -> Vec<(&'static str, RawCall)> {
    let call = send(combination, None, text);
    let mut ways = vec![("header", call.clone().with("a2a-tenant", TENANT))];
    if combination.binding == Binding::Rest {
        let call = send(combination, None, text);
        ways.push(("path", RawCall { path: format!("/{TENANT}{}", call.path), ..call }));
    }
    if combination.version == Version::V1_0 {
        ways.push(("body", send(combination, Some(TENANT), text)));
    }
    ways
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_at_the_root_leads_to_its_agent_at_every_door() {
    let server = node(AGENTS);
    let client = RawClient::new(server.url());
    let mut told = 0;
    for combination in Combination::ALL {
        for (way, call) in ways(combination, "fail no luck") {
            let answer = client.ask(&call).await;
            assert_eq!(state(combination, &answer), Some(TaskState::Failed), "{way} over {}: {answer:?}", combination.name());
            told += 1;
        }
        let other = client.ask(&send(combination, None, "fail no luck").with("a2a-tenant", "another")).await;
        assert_eq!(state(combination, &other), Some(TaskState::Completed), "{}", combination.name());
    }
    assert_eq!(told, 7 + 2 + 3);
    // What was made by one name is there by the others, and not at the first agent.
    let made = client.ask(&send(Combination::ALL[0], Some(TENANT), "fail no luck")).await.json();
    let id = TaskId::from(made["result"]["task"]["id"].as_str().expect("an id"));
    let get = |tenant: Option<&str>| {
        let get = GetTask { tenant: tenant.map(str::to_owned), id: id.clone(), history_length: None };
        RawCall::of(Combination::ALL[0], &Request::GetTask(get)).expect("a call")
    };
    assert!(!client.ask(&get(Some(TENANT))).await.is_refusal());
    assert!(!at(&server, HOST).ask(&get(None)).await.is_refusal());
    assert!(!client.ask(&RawCall { path: "/agents/research".to_owned(), ..get(None) }).await.is_refusal());
    assert!(client.ask(&get(None)).await.is_refusal());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_of_1_0_say_the_tenant_and_older_ones_do_not_lead_to_the_wrong_agent() {
    let server = node(AGENTS);
    let client = RawClient::new(server.url());
    let path = format!("/agents/research{CARD}");
    let newer: Value = serde_json::from_str(&client.get(&path, Some("1.0")).await.text()).expect("a card");
    let by_tenant = newer["supportedInterfaces"].as_array().expect("some").iter().filter(|one| one["tenant"] == TENANT);
    let mut bindings: Vec<_> = by_tenant.map(|one| one["protocolBinding"].as_str().expect("a binding")).collect();
    bindings.sort_unstable();
    assert_eq!(bindings, ["GRPC", "HTTP+JSON", "JSONRPC"], "{newer}");
    let older = client.get(&path, Some("0.3")).await.text();
    assert!(!older.contains(&format!("\"{}\"", server.url())), "the root alone is another agent: {older}");
    let first = client.get(CARD, Some("1.0")).await.text();
    assert!(!first.contains(TENANT), "{first}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_leads_to_an_agent_opens_nothing_and_shows_nobody_elses_tasks() {
    let caller = |name: &str, more: &str| format!("[callers.{name}]\nkey_hash = '{}'\n{more}\n", KeyHash::of(name));
    let callers = [
        caller("red-caller-of-the-lab", "tenant = 'red'"),
        caller("blue-caller-of-the-lab", "tenant = 'blue'"),
        caller("red-caller-of-echo-only", "tenant = 'red'\nmay_call = ['echo']"),
        caller("a-caller-of-that-tenant", "tenant = 'lab'\nmay_call = ['echo']"),
    ];
    let server = node(&format!("{AGENTS}{}", callers.concat()));
    let (client, host) = (RawClient::new(server.url()), at(&server, HOST));
    let as_caller = |call: RawCall, name: &str| call.with("x-api-key", name);
    for combination in Combination::ALL {
        for (way, call) in ways(combination, "fail no luck") {
            let what = format!("{way} over {}", combination.name());
            let made = client.ask(&as_caller(call.clone(), "red-caller-of-the-lab")).await;
            assert_eq!(state(combination, &made), Some(TaskState::Failed), "{what}: its own tenant is red: {made:?}");
            for other in ["red-caller-of-echo-only", "a-caller-of-that-tenant"] {
                let refused = client.ask(&as_caller(call.clone(), other)).await;
                assert!(refused.is_refusal(), "{what} by {other}: {refused:?}");
            }
            assert!(client.ask(&call).await.is_refusal(), "{what}: nobody");
        }
        let refused = host.ask(&as_caller(send(combination, None, "x"), "red-caller-of-echo-only")).await;
        assert!(refused.is_refusal(), "{}: {refused:?}", combination.name());
        let another = send(combination, None, "x").with("a2a-tenant", "blue");
        assert!(client.ask(&as_caller(another, "red-caller-of-the-lab")).await.is_refusal(), "a tenant that is somebody's");
    }
    let newest = Combination::ALL[0];
    let made = client.ask(&as_caller(send(newest, Some(TENANT), "fail"), "red-caller-of-the-lab")).await.json();
    let id = made["result"]["task"]["id"].as_str().expect("an id");
    let get = Request::GetTask(GetTask { tenant: Some(TENANT.to_owned()), id: id.into(), history_length: None });
    let get = RawCall::of(newest, &get).expect("a call");
    assert!(!client.ask(&as_caller(get.clone(), "red-caller-of-the-lab")).await.is_refusal());
    assert!(client.ask(&as_caller(get, "blue-caller-of-the-lab")).await.is_refusal());
}

#[test]
fn a_name_that_would_lead_to_two_agents_stops_the_start_and_says_which() {
    let refused = |config: &str| {
        let home = Home::new();
        let file = home.path().join("chancery.toml");
        std::fs::write(&file, config).expect("the home takes files");
        let run = home.command().args(["serve", "--memory", "--listen", "127.0.0.1:0", "--config"]).arg(&file).output();
        let run = run.expect("the command runs");
        assert!(!run.status.success());
        String::from_utf8_lossy(&run.stderr).into_owned()
    };
    let two = |keys: [&str; 2]| format!("[agents.a]\nrun = 'echo'\n{}\n[agents.b]\nrun = 'echo'\n{}\n", keys[0], keys[1]);
    for (config, told) in [
        (two(["hosts = 'x.example'", "hosts = ['y.example', 'X.example:7']"]), "agents.b: the host x.example:7 is the agent a's"),
        (two(["tenants = ['t', 'u']", "tenants = 'u'"]), "agents.b: the tenant u leads to the agent a"),
        (two(["hosts = '127.0.0.1'", ""]), "agents.a.hosts: an agent's host is a name, not an address"),
        (
            format!("public_url = 'https://x.example'\n{}", two(["", "hosts = 'x.example'"])),
            "the host x.example is the node's own",
        ),
    ] {
        let said = refused(&config);
        assert!(said.contains(told), "{told:?} is not in {said}");
    }
}
