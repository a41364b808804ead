//! Input modes on an agent's card: advice where the agent is elsewhere, unless the config enforces them.

use serde_json::{Value, json};

use super::in_front_of;
use super::scripted::{Script, Scripted, card};
use crate::support::server::{Home, Server, Setup};

/// An agent whose card lists what frameworks fill in by default, and which takes everything.
async fn listing(modes: &'static [&'static str]) -> Scripted {
    Scripted::start(|url| {
        let mut card = card(url, json!({ "streaming": true }));
        card["defaultInputModes"] = json!(modes);
        let card = Script::json(&card);
        let done = json!({ "task": { "id": "theirs", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" } } });
        move |asked| match asked.path.contains(".well-known") {
            true => card.clone(),
            false if asked.kind() == "SendStreamingMessage" => Script::events(asked, [&done]).end(),
            false => Script::result(asked, &done),
        }
    })
    .await
}

async fn send(server: &Server, media_type: &str) -> Value {
    let part = json!({ "text": "{}", "mediaType": media_type });
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [part] });
    server.call("SendMessage", json!({ "message": message })).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_7_modes_of_an_agent_elsewhere_are_hints() {
    for modes in [&["application/json"][..], &["text"], &[]] {
        let agent = listing(modes).await;
        let server = in_front_of(&agent.url(), "");
        for media_type in ["text/plain", "application/json", "image/png"] {
            let answer = send(&server, media_type).await;
            assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{modes:?} {media_type}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modes_are_enforced_where_the_config_says_so() {
    let agent = listing(&["application/json"]).await;
    let enforcing = format!("[agents.front]\nurl = '{}'\nenforce_input_modes = true\n", agent.url());
    let server = Setup::in_home(&Home::new()).args(["--memory"]).config(&enforcing).start();
    assert_eq!(send(&server, "text/plain").await["error"]["code"], -32005);
    assert_eq!(send(&server, "application/json").await["error"], Value::Null);
}
