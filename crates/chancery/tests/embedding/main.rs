//! A program that embeds a node, whatever features the build has: a present feature works, a missing one is named in the refusal.

use axum::body::Body;
use axum::http::Request;
use chancery::{Artifact, Config, Finished, Node, Part, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait, new_card};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

struct Greeter;

#[async_trait]
impl TaskRunner for Greeter {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let greeting = format!("Hello, {}!", turn.message.first_text().unwrap_or("stranger"));
        updates.artifact(Artifact::new("greeting", vec![Part::text(greeting)])).await?;
        Ok(updates.complete(None))
    }
}

async fn embedded(folder: &std::path::Path, config: Config) -> Result<Node, chancery::BuildError> {
    let builder = Node::builder().agent("greeter", new_card("Greeter", "Greets you."), Greeter);
    builder.config(config).sqlite(folder).build().await
}

async fn ask(node: &Node, request: Request<Body>) -> (u16, Value) {
    let answer = node.router().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

fn call(method: &str, params: &Value) -> Request<Body> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let head = Request::post("/").header("host", "127.0.0.1:7420").header("a2a-version", "1.0");
    head.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()
}

#[tokio::test]
async fn an_agent_with_sqlite_answers_json_rpc_with_any_features() {
    let folder = tempfile::tempdir().unwrap();
    let node = embedded(folder.path(), Config::default()).await.unwrap();
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "Ada" }] });
    let (_, sent) = ask(&node, call("SendMessage", &json!({ "message": message }))).await;
    let task = &sent["result"]["task"];
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Hello, Ada!", "{sent}");
    node.shut_down(std::time::Duration::from_secs(5)).await.unwrap();
    drop(node);
    let again = embedded(folder.path(), Config::default()).await.unwrap();
    let (_, found) = ask(&again, call("GetTask", &json!({ "id": task["id"] }))).await;
    assert_eq!(found["result"]["status"]["state"], "TASK_STATE_COMPLETED", "{found}");
}

#[tokio::test]
async fn a_grpc_call_is_answered_or_refused_as_http_and_cards_say_which() {
    let folder = tempfile::tempdir().unwrap();
    let node = embedded(folder.path(), Config::default()).await.unwrap();
    let head = |request: axum::http::request::Builder| request.header("host", "127.0.0.1:7420");
    let card = head(Request::get("/.well-known/agent-card.json")).body(Body::empty()).unwrap();
    let (_, card) = ask(&node, card).await;
    let listed = card["supportedInterfaces"].as_array().unwrap();
    assert!(!listed.is_empty());
    assert_eq!(listed.iter().any(|one| one["protocolBinding"] == "GRPC"), cfg!(feature = "grpc"), "{card}");
    let call = head(Request::post("/lf.a2a.v1.A2AService/GetTask")).header("content-type", "application/grpc");
    let (status, refused) = ask(&node, call.body(Body::from(vec![0; 5])).unwrap()).await;
    let expected = if cfg!(feature = "grpc") { 200 } else { 415 };
    assert_eq!(status, expected, "{refused}");
}

/// A feature, whether the build has it, and a config that needs it.
fn needy() -> Vec<(&'static str, bool, &'static str)> {
    vec![
        ("grpc", cfg!(feature = "grpc"), "[card]\nbindings = [\"JSONRPC\", \"GRPC\"]\n"),
        ("grpc", cfg!(feature = "grpc"), "[agents.a]\nurl = \"http://127.0.0.1:1\"\nbinding = \"GRPC\"\n"),
        ("swp", cfg!(feature = "swp"), "[swp]\nlisten = \"127.0.0.1:7777\"\n"),
        ("swp", cfg!(feature = "swp"), "[agents.a]\nurl = \"swp://127.0.0.1:1\"\n"),
        ("memory-tier", cfg!(feature = "memory-tier"), "[memory]\ntier = \"/nowhere/at/all\"\n"),
        ("postgres", cfg!(feature = "postgres"), "[store]\nurl = \"postgres://h/db\"\n"),
        ("schemas", cfg!(feature = "schemas"), "[artifacts]\nschemas = \"/nowhere/at/all\"\n"),
        ("policy-cel", cfg!(feature = "policy-cel"), "[[policy.rules]]\nname = \"nobody\"\ndeny_when = \"depth > 3\"\n"),
    ]
}

#[test]
fn a_config_file_that_needs_a_missing_feature_is_refused_with_the_name_of_the_feature() {
    for (feature, is_there, text) in needy() {
        match Config::parse(text) {
            Ok(_) => assert!(is_there, "{feature} is missing and its config was accepted"),
            Err(faults) => {
                assert!(!is_there, "{feature}: {faults:?}");
                assert!(faults.iter().any(|fault| fault.to_string().contains(&format!("the feature `{feature}`"))), "{faults:?}");
                assert!(faults.iter().all(|fault| fault.line > 0), "{faults:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_config_of_a_program_that_needs_a_missing_feature_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.memory.tier = Some(folder.path().join("tier").display().to_string());
    let refused = embedded(folder.path(), config).await.err().map(|error| error.to_string());
    assert_eq!(refused.is_none(), cfg!(feature = "memory-tier"), "{refused:?}");
    assert!(refused.is_none_or(|refused| refused.contains("the feature `memory-tier`")));
}

#[tokio::test]
async fn a_bundle_of_evidence_is_made_or_refused_with_the_name_of_the_feature() {
    use chancery::secrecy::ExposeSecret as _;
    let folder = tempfile::tempdir().unwrap();
    let node = embedded(folder.path(), Config::default()).await.unwrap();
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "Ada" }] });
    let (_, sent) = ask(&node, call("SendMessage", &json!({ "message": message }))).await;
    let token = node.data_folder().unwrap().admin_token().unwrap();
    let task = sent["result"]["task"]["id"].as_str().unwrap();
    let bundle = Request::get(format!("/admin/v1/evidence/bundle?task={task}")).header("host", "127.0.0.1:7420");
    let bundle = bundle.header("authorization", format!("Bearer {}", token.expose_secret())).body(Body::empty()).unwrap();
    let (status, answer) = ask(&node, bundle).await;
    let expected = if cfg!(feature = "evidence-bundles") { 200 } else { 409 };
    assert_eq!(status, expected, "{answer}");
    assert!(status == 200 || answer.to_string().contains("the feature `evidence-bundles`"), "{answer}");
}
