//! A webhook of the original protocol sees an HMAC over the body with the registration's token; and everybody else's scheme verifies too.

use serde_json::json;

use crate::push::receiver::Receiver;
use crate::push::server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn push_signing() {
    let receiver = Receiver::kind().await;
    let server = server("");
    let rpc = async |method: &str, params: serde_json::Value| -> serde_json::Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        reqwest::Client::new().post(server.url()).json(&body).send().await.unwrap().json().await.unwrap()
    };
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "ask which?" }] });
    rpc("tasks/send", json!({ "id": "mine", "message": message })).await;
    let config = json!({ "url": receiver.url("/hook"), "token": "shared secret" });
    let set = rpc("tasks/pushNotification/set", json!({ "id": "mine", "pushNotificationConfig": config })).await;
    assert!(set["error"].is_null(), "{set}");
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "complete" }] });
    rpc("tasks/send", json!({ "id": "mine", "message": message })).await;

    let look = async || receiver.taken().into_iter().find(|got| got.json()["status"]["state"] == "completed");
    let got = crate::support::patience::soon("the end is told", look).await;
    assert_eq!(got.json()["id"], "mine", "under the name the caller gave it");
    let signature = got.header("x-a2a-signature");
    assert!(chancery_identity::webhook::verify_body_signature(b"shared secret", &got.body, signature), "{signature}");
    assert!(!chancery_identity::webhook::verify_body_signature(b"shared secret", b"{}", signature));

    // With a secret of its own, a receiver verifies as Standard Webhooks has it.
    let secret = chancery_identity::webhook::HmacSecret::parse("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
    let authentication = json!({ "scheme": "StandardWebhooks", "credentials": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" });
    let signed = Receiver::kind().await;
    let config = json!({ "url": signed.url("/hook"), "authentication": authentication });
    crate::push::send(&server, "complete", config, true).await;
    let got = signed.has_taken(1).await.remove(0);
    assert_eq!(got.header("authorization"), "", "a secret to sign with is never sent");
    let (id, seconds) = (got.header("webhook-id"), got.header("webhook-timestamp").parse().unwrap());
    let expected = chancery_identity::webhook::sign(id, seconds, &got.body, [&secret], []).unwrap().unwrap();
    assert!(got.header("webhook-signature").split(' ').any(|one| one == expected), "{}", got.header("webhook-signature"));
}
