//! Whose rights count when one agent calls another: those of the agent that makes the call, and never those of the caller before it.

use serde_json::{Value, json};

use super::relay::{Relay, Route};
use super::{ANYWHERE_HERE, QUICK};
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};

const OF_USER: &str = "key-of-the-user-0001";
const OF_DEPUTY: &str = "key-of-the-deputy-0001";

/// A node with the agent `deputy` elsewhere, which asks `vault` inside the node for each task, as the caller `of_deputy`.
async fn node(of_user: &str, of_deputy: &str, shown: &'static str) -> (Home, Server, Relay) {
    let (home, listen) = (Home::new(), lasting_address());
    let route = Route::to(format!("http://{listen}/agents/vault"))
        .passing_on(|asked| {
            let token = asked.headers.get("chancery-hop-token");
            (token.map(|token| ("chancery-hop-token".to_owned(), token.clone())).into_iter().collect(), Value::Null)
        })
        .with_key(shown);
    let deputy = Relay::start(move || route.clone()).await;
    let agents = format!("[agents.deputy]\nurl = '{}'\nstream = 'always'\n[agents.vault]\nrun = 'echo'\n", deputy.agent.url());
    let callers = format!(
        "[callers.user]\nkey_env = 'KEY_USER'\nmay_call = {of_user}\n\
         [callers.of_deputy]\nkey_env = 'KEY_DEPUTY'\nagent = 'deputy'\nmay_call = {of_deputy}\n"
    );
    let setup = Setup::at(&home, listen).config(&format!("{QUICK}{ANYWHERE_HERE}{agents}{callers}"));
    let server = setup.env("KEY_USER", OF_USER).env("KEY_DEPUTY", OF_DEPUTY).start();
    (home, server, deputy)
}

async fn ask(node: &Server, agent: &str) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let request = reqwest::Client::new().post(format!("{}/agents/{agent}", node.url())).header("A2A-Version", "1.0");
    request.header("x-api-key", OF_USER).json(&body).send().await.expect("an answer").json().await.expect("JSON")
}

fn is_denied(answer: &Value) -> bool {
    answer["error"].to_string().contains("PERMISSION_DENIED")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_may_not_call_what_only_its_caller_may() {
    let (_home, node, deputy) = node("['deputy', 'vault']", "['deputy']", OF_DEPUTY).await;
    assert!(ask(&node, "vault").await["result"]["task"].is_object(), "the user itself may");
    ask(&node, "deputy").await;
    let answers = deputy.answers();
    assert!(answers.len() == 1 && is_denied(&answers[0]), "the token of the user's task lends no rights: {answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_reaches_through_an_agent_what_that_agent_may_call_and_is_named_as_its_root() {
    let (home, node, deputy) = node("['deputy']", "['vault']", OF_DEPUTY).await;
    assert!(is_denied(&ask(&node, "vault").await), "the user itself may not");
    let sent = ask(&node, "deputy").await;
    let answers = deputy.answers();
    assert!(answers.len() == 1 && answers[0]["result"]["task"].is_object(), "{answers:?}");
    let (root, inner) = (sent["result"]["task"]["id"].as_str(), answers[0]["result"]["task"]["id"].as_str());
    let tree = crate::operating::cli::run(&home, ["tree", inner.expect("a task"), "--json"]);
    assert!(tree.stdout.contains(root.expect("a task")), "who began it can be looked up: {}{}", tree.stdout, tree.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stolen_token_lends_a_stranger_neither_the_agents_rights_nor_its_name() {
    let (_home, node, deputy) = node("['deputy']", "['vault']", "no-key-of-anybody-here").await;
    ask(&node, "deputy").await;
    let answers = deputy.answers();
    assert_eq!(answers.len(), 1);
    assert!(answers[0]["error"].to_string().contains("UNAUTHENTICATED"), "a hop token is no credential: {answers:?}");
}
