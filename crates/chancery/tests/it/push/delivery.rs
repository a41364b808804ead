//! What is sent: the headers of every attempt, credentials of every kind, and what happens to a hung receiver.

use serde_json::{Value, json};

use super::receiver::{Act, Receiver};
use super::{send, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_told_everything_in_order_before_the_answer_comes() {
    let receiver = Receiver::kind().await;
    let server = server("barrier_ms = 20000");
    let url = receiver.url("/hook?x=1");
    let config = json!({ "url": url, "token": "t-1", "authentication": { "scheme": "bearer", "credentials": "c-1" } });
    let task = send(&server, "stream 3", config, false).await;
    let got = receiver.got();
    assert!(got.len() >= 3, "{got:?}");
    let seqs: Vec<u64> = got.iter().map(super::receiver::Got::seq).collect();
    assert_eq!(seqs, (1..=got.len() as u64).collect::<Vec<_>>());
    assert_eq!(got[0].json()["task"]["id"], task["id"]);
    let last = got.last().unwrap().json();
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{last}");
    for (number, one) in got.iter().enumerate() {
        assert_eq!(one.path, "/hook?x=1");
        assert_eq!(one.header("content-type"), "application/a2a+json");
        assert_eq!(one.header("authorization"), "Bearer c-1");
        assert_eq!((one.header("x-a2a-notification-token"), one.header("a2a-notification-token")), ("t-1", "t-1"));
        assert_eq!((one.header("a2a-version"), one.header("a2a-event-attempt")), ("1.0", "1"));
        assert_eq!(one.header("accept-encoding"), "identity");
        assert!(one.header("user-agent").ends_with("(+a2a-push)"));
        assert!(one.header("traceparent").starts_with("00-"));
        assert!(one.header("tracestate").ends_with("@chancery=-"), "a call it leads to is no part of the tree");
        assert!(one.header("webhook-id").ends_with(&format!("_{}", number + 1)), "{}", one.header("webhook-id"));
        assert!(one.header("webhook-signature").starts_with("v1a,"));
        assert_eq!(one.header("a2a-event-compacted"), "");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bearer_without_credentials_gets_a_token_for_this_receiver_and_this_body() {
    let receiver = Receiver::kind().await;
    let server = server("");
    let config = json!({ "url": receiver.url("/hook?secret=1"), "authentication": { "scheme": "Bearer" } });
    let task = send(&server, "complete", config, true).await;
    let got = receiver.has_taken(1).await.remove(0);
    let token = got.header("authorization").strip_prefix("Bearer ").unwrap().to_owned();
    let keys = reqwest::get(format!("{}/.well-known/jwks.json", server.url())).await.unwrap();
    let keys: Value = keys.json().await.unwrap();
    let keys = chancery_identity::webhook::PushKeys::from_jwks(&serde_json::from_value(keys).unwrap());
    let now = chancery_core::Clock::now(&chancery_core::SystemClock);
    let audience = receiver.url("/hook");
    let expected = chancery_identity::webhook::TokenFor {
        audience: &audience,
        issuer: None,
        id: Some(got.header("webhook-id")),
        body: &got.body,
    };
    let claims = keys.verify_jwt(&token, &expected, now).unwrap();
    assert_eq!(claims.task.as_deref(), task["id"].as_str());
    assert!(claims.iss.starts_with(server.url()), "{claims:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_hangs_delays_no_event_and_no_other_receiver() {
    let (hung, kind) = (Receiver::new(|_| Act::Hang).await, Receiver::kind().await);
    let server = server("barrier_ms = 100\nexchange_ms = 600000");
    send(&server, "steps 3", json!({ "url": hung.url("/") }), true).await;
    hung.has_got(1).await;
    for _ in 0..20 {
        send(&server, "complete", json!({ "url": kind.url("/") }), false).await;
    }
    assert!(kind.got().len() >= 40, "{}", kind.got().len());
    assert_eq!(hung.got().len(), 1, "the exchange that hangs is still the first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_called_by_its_text_is_refused_when_it_is_registered() {
    let server = server("deny_hosts = ['denied.example']");
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
    for url in
        ["https://10.0.0.1/", "http://169.254.169.254/", "https://denied.example/", "https://u:p@example.com/", server.url()]
    {
        let configuration = json!({ "taskPushNotificationConfig": { "url": url } });
        let answer = server.call("SendMessage", json!({ "message": message, "configuration": configuration })).await;
        assert_eq!(answer["error"]["code"], -32602, "{url}: {answer}");
    }
}
