//! A call that comes back to an agent that waits for it is stopped, whatever the agents echo and however they speak; and hop
//! tokens in the wrong hands open nothing.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::{ErrorKind, Message, Request, Role, SendConfiguration, SendMessage, Unknown, Version};
use serde_json::{Value, json};

use super::scripted::{Asked, Script, Scripted};
use super::{ANYWHERE_HERE, QUICK};
use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, Conditions, Refusal, WireClient};

const KEYS: [(&str, &str); 3] = [("user", "key-of-the-user-0001"), ("ka", "key-of-agent-a-0001"), ("kb", "key-of-agent-b-0001")];

fn key(caller: &str) -> String {
    KEYS.iter().find(|(name, _)| *name == caller).map(|(_, key)| (*key).to_owned()).expect("a known caller")
}

/// Takes a task and works on it until it is cancelled. It echoes nothing.
async fn busy() -> Scripted {
    Scripted::agent(|asked: &Asked| {
        match asked.kind().as_str() {
            "SendStreamingMessage" => {}
            "CancelTask" => {
                let status = json!({ "state": "TASK_STATE_CANCELED" });
                return Script::result(asked, &json!({ "id": asked.task(), "contextId": "", "status": status }));
            }
            _ => return Script::error(asked, -32001, "Task not found"),
        }
        let number = asked.before;
        let task =
            json!({ "id": format!("t{number}"), "contextId": format!("c{number}"), "status": { "state": "TASK_STATE_WORKING" } });
        Script::stream().event(asked, &json!({ "task": task })).hang()
    })
    .await
}

/// A node with the agents A and B, whose keys say which they are, and a user.
struct Scene {
    node: Server,
    a: Scripted,
    b: Scripted,
}

impl Scene {
    async fn start(lineage: &str) -> Self {
        let (a, b) = (busy().await, busy().await);
        let agents =
            format!("[agents.a]\nurl = '{}'\nstream = 'always'\n[agents.b]\nurl = '{}'\nstream = 'always'\n", a.url(), b.url());
        let callers = "[callers.user]\nkey_env = 'KEY_USER'\n[callers.ka]\nkey_env = 'KEY_KA'\nagent = 'a'\n[callers.kb]\nkey_env = 'KEY_KB'\nagent = 'b'\n";
        let limits = "[limits]\ncancel_grace_ms = 50\ncalls_per_second_per_caller = 0\n";
        let home = Home::new();
        let data = home.data();
        let setup = Setup::in_home(&home)
            .args(["--memory", "--data"])
            .args([data])
            .config(&format!("{QUICK}{ANYWHERE_HERE}{limits}{lineage}{agents}{callers}"));
        let setup = KEYS.iter().fold(setup, |setup, (name, key)| setup.env(&format!("KEY_{}", name.to_uppercase()), key));
        Self { node: setup.start(), a, b }
    }

    /// Begins a task at an agent of the node and does not wait for its end.
    async fn begin(&self, caller: &str, agent: &str, token: Option<&str>) -> Value {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
        let params = json!({ "message": message, "configuration": { "returnImmediately": true } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
        let url = format!("{}/agents/{agent}", self.node.url());
        let mut request =
            reqwest::Client::new().post(url).header("A2A-Version", "1.0").header("x-api-key", key(caller)).json(&body);
        if let Some(token) = token {
            request = request.header("chancery-hop-token", token);
        }
        request.send().await.expect("the node answers").json().await.expect("with JSON")
    }

    /// A works for the user, and B for A.
    async fn a_waits_for_b(&self) -> Value {
        let root = self.begin("user", "a", None).await;
        soon("A has its task", async || (self.a.calls().len() == 1).then_some(())).await;
        let child = self.begin("ka", "b", None).await;
        assert!(child["result"]["task"]["id"].is_string(), "{child}");
        soon("B has its task", async || (self.b.calls().len() == 1).then_some(())).await;
        root["result"]["task"]["id"].clone()
    }

    /// B calls A back, in one of the ways there are to speak.
    async fn back(&self, combination: Combination, token: Option<&str>) -> Refusal {
        let client = WireClient::new(self.node.url(), combination);
        let attempt = if token.is_some() { "token" } else { "nothing" };
        let conditions = Conditions { api_key: Some(key("kb")), hop_token: token.map(str::to_owned), ..Conditions::default() };
        let request = Request::SendMessage(SendMessage {
            tenant: None,
            message: Arc::new(Message::text(Role::User, "m", "back")),
            configuration: SendConfiguration::default(),
            metadata: None,
            client_task_id: (combination.version == Version::Original)
                .then(|| format!("by-{}-{attempt}", combination.name()).into()),
            unknown: Unknown::default(),
        });
        client.call(&request, &conditions).await.map(|reply| panic!("{}: {reply:?}", combination.name())).unwrap_err()
    }
}

/// The loop is refused as what it is, with its path, and says how sure the node is of it.
#[track_caller]
fn is_stopped(refusal: &Refusal, combination: Combination, attribution: &str) {
    refusal.check(ErrorKind::RecursionRevisit, combination).unwrap_or_else(|fault| panic!("{}: {fault}", combination.name()));
    assert!(refusal.message().contains("a → b → a"), "{}: {}", combination.name(), refusal.message());
    let said = format!("attribution={attribution}");
    assert!(refusal.message().contains(&said), "{}: {said}: {}", combination.name(), refusal.message());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_is_stopped_over_every_binding_and_version_proven_inferred_or_only_possible() {
    let scene = Scene::start("").await;
    scene.a_waits_for_b().await;
    let token = scene.b.calls()[0].headers["chancery-hop-token"].clone();
    for combination in Combination::ALL {
        is_stopped(&scene.back(combination, None).await, combination, "inferred");
        is_stopped(&scene.back(combination, Some(&token)).await, combination, "verified");
    }
    // With another task B may call for either of the two, so both bind it.
    scene.begin("user", "b", None).await;
    soon("B has another task", async || (scene.b.calls().len() == 2).then_some(())).await;
    for combination in Combination::ALL {
        is_stopped(&scene.back(combination, None).await, combination, "ambiguous");
    }
    assert_eq!(scene.a.calls().len(), 1, "A was never called again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_lineage_is_asked_for_an_agent_that_echoes_nothing_is_refused() {
    let scene = Scene::start("[lineage]\nunattributed = 'deny'\n").await;
    scene.begin("user", "a", None).await;
    soon("A has its task", async || (scene.a.calls().len() == 1).then_some(())).await;
    let refused = scene.begin("ka", "b", None).await;
    assert!(refused["error"]["message"].as_str().is_some_and(|message| message.starts_with("LINEAGE_REQUIRED")), "{refused}");
    let token = scene.a.calls()[0].headers["chancery-hop-token"].clone();
    let taken = scene.begin("ka", "b", Some(&token)).await;
    assert!(taken["result"]["task"]["id"].is_string(), "{taken}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_widened_stolen_and_replayed_tokens_are_refused() {
    let scene = Scene::start("").await;
    let root = scene.a_waits_for_b().await;
    let of_a = scene.a.calls()[0].headers["chancery-hop-token"].clone();
    let of_b = scene.b.calls()[0].headers["chancery-hop-token"].clone();
    let (node, body) = of_a.split_once('.').expect("a node and a body");
    let altered = |place: usize| {
        let mut bytes = URL_SAFE_NO_PAD.decode(body).expect("base64url");
        bytes[place] ^= 1;
        format!("{node}.{}", URL_SAFE_NO_PAD.encode(bytes))
    };
    let turned: String = body.chars().rev().collect();
    for (what, caller, token) in [
        ("forged", "ka", format!("{node}.{turned}")),
        ("cut", "ka", node.to_owned()),
        ("of another key", "ka", altered(0)),
        ("of another task", "ka", altered(10)),
        ("in another place of its tree", "ka", altered(20)),
        ("for longer", "ka", altered(31)),
        ("without its mark", "ka", of_a[..of_a.len() - 22].to_owned()),
        ("stolen by an agent", "kb", of_a.clone()),
        ("stolen by a user", "user", of_a.clone()),
        ("of another agent", "ka", of_b.clone()),
        ("nonsense", "ka", "x".repeat(40)),
    ] {
        let refused = scene.begin(caller, "b", Some(&token)).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("LINEAGE_INVALID") && message.contains("decision="), "{what}: {refused}");
    }
    assert_eq!(scene.b.calls().len(), 1, "none of them reached B");
    let good = scene.begin("ka", "b", Some(&of_a)).await;
    assert!(good["result"]["task"]["id"].is_string(), "{good}");
    // The task ends, and with it what its token was good for.
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": { "id": root } });
    let cancel = reqwest::Client::new().post(format!("{}/agents/a", scene.node.url())).header("A2A-Version", "1.0");
    let cancelled: Value = cancel.header("x-api-key", key("user")).json(&body).send().await.unwrap().json().await.unwrap();
    assert_eq!(cancelled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{cancelled}");
    let refused = scene.begin("ka", "b", Some(&of_a)).await;
    assert!(refused["error"]["message"].as_str().is_some_and(|message| message.starts_with("LINEAGE_INVALID")), "{refused}");
}

/// B is gone when A's task is cancelled: the operator is told what could not be stopped, and the rest ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cascade_says_which_peer_did_not_stop() {
    let scene = Scene::start("").await;
    let root = scene.a_waits_for_b().await;
    let Scene { node, a: _a, b } = scene;
    drop(b);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": { "id": root } });
    let cancel = reqwest::Client::new().post(format!("{}/agents/a", node.url())).header("A2A-Version", "1.0");
    let cancelled: Value = cancel.header("x-api-key", key("user")).json(&body).send().await.unwrap().json().await.unwrap();
    assert_eq!(cancelled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{cancelled}");
    let log = node.log();
    let left = log.lines().find(|line| line.contains("cannot cancel a task below a cancelled one")).expect("it is said");
    assert_eq!(serde_json::from_str::<Value>(left).expect("a line of JSON")["agent"], "b", "{left}");
}
