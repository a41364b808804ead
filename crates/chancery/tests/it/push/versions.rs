//! One task, receivers of every version: each is told in its own form, whoever works on the task.

use serde_json::{Value, json};

use super::receiver::Receiver;
use super::server;

async fn rpc(server: &crate::support::server::Server, version: Option<&str>, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut request = reqwest::Client::new().post(server.url()).json(&body);
    if let Some(version) = version {
        request = request.header("A2A-Version", version);
    }
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_say_how_notifications_are_signed_where_each_version_looks() {
    for (lines, schemes, names) in [
        ("", json!(["v1", "v1a"]), json!(["hmac-sha256", "ed25519"])),
        ("ed25519 = false", json!(["v1"]), json!(["hmac-sha256"])),
    ] {
        let server = server(lines);
        let card = async |path: &str| -> Value {
            reqwest::get(format!("{}/.well-known/{path}", server.url())).await.unwrap().json().await.unwrap()
        };
        let vendor = card("agent.json").await["metadata"]["ruvector"].take();
        assert_eq!(vendor["webhook_algos"], names);
        assert_eq!(vendor["webhook_ed25519_pubkey"].is_string(), schemes.as_array().unwrap().len() == 2, "{vendor}");
        let extensions = card("agent-card.json").await["capabilities"]["extensions"].take();
        let all = extensions.as_array().unwrap();
        let own = all.iter().find(|one| one["uri"].as_str().unwrap().contains("/push-delivery/")).unwrap();
        assert_eq!(own["params"]["algs"], schemes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_of_0_3_is_sent_json_rpc_responses_if_it_asks_when_it_registers() {
    const ENVELOPE: &str = "https://chancery.dev/a2a/push-envelope/v1";
    let server = server("");
    let card: Value = reqwest::get(format!("{}/.well-known/agent-card.json", server.url())).await.unwrap().json().await.unwrap();
    assert!(card["capabilities"]["extensions"].as_array().unwrap().iter().any(|one| one["uri"] == ENVELOPE), "{card}");
    for (version, asks) in [("0.3", true), ("0.3", false), ("1.0", true)] {
        let receiver = Receiver::kind().await;
        let (method, role, config, part) = match version {
            "0.3" => ("message/send", "user", "pushNotificationConfig", json!({ "kind": "text", "text": "complete" })),
            _ => ("SendMessage", "ROLE_USER", "taskPushNotificationConfig", json!({ "text": "complete" })),
        };
        let message = json!({ "kind": "message", "messageId": "m", "role": role, "parts": [part] });
        let params = json!({ "message": message, "configuration": { config: { "url": receiver.url("/"), "token": "t" } } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = reqwest::Client::new().post(server.url()).header("A2A-Version", version).json(&body);
        if asks {
            request = request.header("X-A2A-Extensions", ENVELOPE);
        }
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        assert!(answer.get("error").is_none(), "{answer}");
        let told = crate::support::patience::soon("the webhook is told", async || receiver.taken().into_iter().next()).await;
        let body = told.json();
        let is_envelope = body["jsonrpc"] == "2.0" && body["result"]["kind"] == "task";
        assert_eq!(is_envelope, version == "0.3" && asks, "{version}, asks: {asks}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_task_is_told_to_receivers_of_every_version_in_their_own_form() {
    let (new, old, post) = (Receiver::kind().await, Receiver::kind().await, Receiver::kind().await);
    let origin = post.url("");
    let server = server(&format!("[push.origins.'{origin}']\nprofile = 'neuralpost'\n"));
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "ask which?" }] });
    let config = json!({ "url": new.url("/") });
    let params = json!({ "message": message, "configuration": { "taskPushNotificationConfig": config } });
    let task = server.call("SendMessage", params).await["result"]["task"]["id"].as_str().unwrap().to_owned();
    for (url, token) in [(old.url("/old"), "old-token"), (post.url("/post"), "post-token")] {
        let config = json!({ "taskId": task, "pushNotificationConfig": { "id": token, "url": url, "token": token } });
        let answer = rpc(&server, None, "tasks/pushNotificationConfig/set", config).await;
        assert_eq!(answer["result"]["pushNotificationConfig"]["url"], url, "{answer}");
    }
    let message = json!({ "messageId": "m2", "taskId": task, "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
    server.call("SendMessage", json!({ "message": message })).await;

    let has_ended = |body: &Value| body.to_string().contains("completed") || body.to_string().contains("COMPLETED");
    let last = async |receiver: &Receiver| {
        let look = async || receiver.taken().into_iter().find(|got| has_ended(&got.json()));
        crate::support::patience::soon("the end is told", look).await
    };
    let told = last(&new).await;
    assert_eq!(told.json()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!((told.header("a2a-version"), told.header("content-type")), ("1.0", "application/a2a+json"));

    let told = last(&old).await;
    let body = told.json();
    assert_eq!((&body["kind"], &body["id"], &body["status"]["state"]), (&json!("task"), &json!(task), &json!("completed")));
    assert_eq!((told.header("a2a-version"), told.header("content-type")), ("0.3", "application/json"));
    assert_eq!(told.header("x-a2a-notification-token"), "old-token");

    let told = last(&post).await;
    let body = told.json();
    assert_eq!((&body["jsonrpc"], &body["id"], &body["result"]["kind"]), (&json!("2.0"), &json!(task), &json!("task")));
    assert_eq!(told.header("x-neuralpost-resulttype"), "task");
    let seconds: i64 = told.header("x-neuralpost-timestamp").parse().unwrap();
    let signature = told.header("x-neuralpost-signature");
    assert!(chancery_identity::webhook::verify_neuralpost("post-token", seconds, &told.body, signature));
    // What its own documentation tells receivers to check has the nonce in it, and was never what was signed.
    let nonce = told.header("x-neuralpost-nonce");
    let documented = [format!("{nonce}.").as_bytes(), &told.body].concat();
    assert!(!chancery_identity::webhook::verify_neuralpost("post-token", seconds, &documented, signature));
}
