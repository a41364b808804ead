//! Witnesses and webhooks between this node and the real `rvagent-a2a` crate, in both directions.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::{Router, routing::post};
use chancery_protocol::{Artifact, ArtifactKind};
use http::HeaderMap;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fronts::{Prepare, ready};
use crate::implementation::Implementation;
use crate::machine::MACHINE;
use crate::server::Server;
use crate::toolbox::Toolbox;

const WITNESS: Prepare = |tools| tools.cargo("rvagent", "rvagent-witness");
const WEBHOOKS: Prepare = |tools| tools.cargo("rvagent", "rvagent-webhooks");

/// A node in a home of its own.
struct Node {
    home: TempDir,
    server: Server,
}

impl Node {
    fn start(tools: &Toolbox, name: &str, settings: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary folder");
        let file = home.path().join("chancery.toml");
        std::fs::write(&file, settings).expect("the home takes files");
        let mut command = chancery(home.path());
        command.args(["serve", "--bind", "127.0.0.1:0", "--config"]).arg(&file);
        let server = Server::start(&mut command, &tools.log(name));
        Self { home, server }
    }

    fn run(&self, arguments: &[&str]) -> Value {
        let output = chancery(self.home.path()).args(arguments).arg("--json").output().expect("the command runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Three vectors in the tier, and a grant for the agent `recall` of this node.
    fn published(&self) -> (Value, String) {
        let file = self.home.path().join("notes.jsonl");
        let lines = ["[1.0, 0.0]", "[0.0, 1.0]", "[0.5, 0.5]"].iter().enumerate();
        let text: String = lines.map(|(id, vector)| format!("{{\"id\": {id}, \"vector\": {vector}}}\n")).collect();
        std::fs::write(&file, text).expect("the home takes files");
        let published = self.run(&["memory", "publish", file.to_str().expect("text")]);
        let keys = self.run(&["keys", "show"]);
        let of_recall = |key: &&Value| key["owner"] == "recall" && key["agent_id"].is_string();
        let key = keys["keys"].as_array().expect("keys").iter().find(of_recall).expect("a key of the agent");
        let witness = published["witness"].as_str().expect("a witness");
        let grant = self.run(&["memory", "grant", witness, "--to", key["agent_id"].as_str().expect("an id")]);
        (published, grant["id"].as_str().expect("an id").to_owned())
    }
}

fn chancery(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chancery"));
    for name in ["XDG_DATA_HOME", "CHANCERY_DATA", "CHANCERY_KEY", "RUST_LOG", "http_proxy", "HTTP_PROXY"] {
        command.env_remove(name);
    }
    command.env("HOME", home).current_dir(home).stdin(Stdio::null());
    command
}

fn recall(tier: &TempDir) -> String {
    format!("[agents.recall]\nrun = 'recall'\n[memory]\ntier = '{}'\n", tier.path().display())
}

fn handed_over(published: &Value, grant: &str) -> Value {
    json!({ "witness": published["witness"], "data_ref": published["data_ref"], "capabilities": ["read", "search"], "grant": grant })
}

#[test]
fn an_rvagent_client_has_recall_read_and_search_what_it_hands_over() {
    let _shared = MACHINE.blocking_read();
    let tools = Toolbox::new();
    let client = Implementation::ready(&tools, WITNESS);
    let tier = tempfile::tempdir().expect("a temporary folder");
    let node = Node::start(&tools, "rvagent-recall", &recall(&tier));
    let (published, grant) = node.published();
    let mut given = handed_over(&published, &grant);
    let answer = client.run(&["ask", &node.server.base], &given);
    assert_eq!(answer["state"], "completed", "{answer:#}");
    assert_eq!(answer["kinds"][0]["value"]["count"], 3, "{answer:#}");
    assert_eq!(answer["kinds"][0]["value"]["witness"], published["witness"], "{answer:#}");

    given["search"] = json!({ "queries": [[0.9, 0.0]], "k": 2 });
    let answer = client.run(&["ask", &node.server.base], &given);
    assert_eq!(answer["kinds"][0]["value"]["neighbours"][0][0]["id"], 0, "{answer:#}");

    let looks = node.run(&["explain"]);
    let looks = looks["decisions"].as_array().expect("decisions").iter().filter(|one| one["verdicts"][0]["rule"] == "memory");
    assert_eq!(looks.count(), 2, "each look is on record");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_rvagent_agent_reads_our_witness_hands_it_on_to_recall_and_hands_it_back() {
    let _shared = MACHINE.read().await;
    let tools = Toolbox::new();
    let mut agent = ready(&tools, WITNESS);
    let tier = tempfile::tempdir().expect("a temporary folder");
    let node = Node::start(&tools, "rvagent-memory", &recall(&tier));
    let (published, grant) = node.published();
    let agent = Server::start(agent.args(["agent", &node.server.base]), &tools.log("rvagent-relay"));
    let settings = format!("[agents.relay]\nurl = '{}'\n", agent.base);
    let gateway = Node::start(&tools, "rvagent-gateway", &settings);

    let text = |name: &str| published[name].as_str().expect("text").to_owned();
    let kind = ArtifactKind::RuLakeWitness {
        witness: text("witness"),
        data_ref: text("data_ref"),
        capabilities: vec!["read".into(), "search".into()],
    };
    let mut part = serde_json::to_value(&kind.to_parts()[0]).expect("JSON");
    part["metadata"]["ruvector"]["grant"] = json!(grant);
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [part] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let request = reqwest::Client::new().post(&gateway.server.base).header("A2A-Version", "1.0").json(&body);
    let answer: Value = request.send().await.expect("the gateway answers").json().await.expect("JSON");

    let artifacts = answer["result"]["task"]["artifacts"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
    let artifact = |place: usize| serde_json::from_value::<Artifact>(artifacts[place].clone()).expect("an artifact");
    assert_eq!(ArtifactKind::from_artifact(&artifact(0)).expect("a kind"), kind, "{answer:#}");
    assert_eq!(artifacts[0]["parts"][0]["data"]["kind"], "rulake_witness", "callers of 1.0 see one spelling");
    let report = ArtifactKind::from_artifact(&artifact(1)).expect("a kind");
    let ArtifactKind::StructuredJson { value, schema } = report else { panic!("{answer:#}") };
    assert_eq!((schema.as_deref(), &value["grant"]), (Some("urn:report"), &json!(grant)));
    assert_eq!(value["read"]["witness"], published["witness"], "{value:#}");
    assert_eq!(value["recalled"][0]["value"]["count"], 3, "{value:#}");
}

type Taken = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

#[tokio::test(flavor = "multi_thread")]
async fn the_rvagent_crate_verifies_both_signatures_of_a_webhook_of_the_original_protocol() {
    let _shared = MACHINE.read().await;
    let tools = Toolbox::new();
    let verifier = Implementation::ready(&tools, WEBHOOKS);
    let taken = Taken::default();
    let take = |State(taken): State<Taken>, headers: HeaderMap, body: Bytes| async move {
        taken.lock().expect("no panic").push((headers, body));
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let hook = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let router = Router::new().route("/hook", post(take)).with_state(Arc::clone(&taken));
    tokio::spawn(async move { axum::serve(listener, router).await });

    let settings = "[agents.conformance]\nrun = 'conformance'\n[push]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n";
    let node = Node::start(&tools, "rvagent-webhooks", settings);
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "complete done" }] });
    let params = json!({ "id": "mine", "message": message, "pushNotification": { "url": hook, "token": "the token" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": params });
    let answer = reqwest::Client::new().post(&node.server.base).json(&body).send().await.expect("the node answers");
    assert!(answer.status().is_success(), "{answer:?}");
    let card: Value =
        reqwest::get(format!("{}/.well-known/agent.json", node.server.base)).await.expect("a card").json().await.expect("JSON");
    let vendor = &card["metadata"]["ruvector"];
    assert_eq!(vendor["webhook_algos"], json!(["hmac-sha256", "ed25519"]));

    let arrived = async {
        loop {
            if let Some(one) = taken.lock().expect("no panic").first().cloned() {
                break one;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let bound = std::time::Duration::from_secs(60);
    let (headers, body) = tokio::time::timeout(bound, arrived).await.expect("the webhook is told");
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let body = String::from_utf8(body.to_vec()).expect("text");
    let mut given = json!({
        "body": body, "token": "the token", "pubkey": vendor["webhook_ed25519_pubkey"],
        "hmac": header("x-a2a-signature"), "ed25519": header("x-a2a-signature-ed25519"),
    });
    let verdict = verifier.run(&[], &given);
    assert_eq!(verdict, json!({ "hmac": "verified", "ed25519": "verified" }));
    given["body"] = json!(body.replacen("mine", "mint", 1));
    let verdict = verifier.run(&[], &given);
    assert!(verdict["hmac"] != "verified" && verdict["ed25519"] != "verified", "{verdict}");
}
