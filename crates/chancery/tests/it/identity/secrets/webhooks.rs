//! F17: a run with webhooks of every kind, and every secret that they can have. None is found in the log at its most talkative, in figures, in
//! what callers and operators are answered, or in any file but the vault's.
//!
//! The memory of the process is not searched: what is sent has to be there for a moment, as it is in the memory of whoever sends it.

use std::cell::RefCell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::files;
use super::search::{Secret, readable};
use crate::push::receiver::{Act, Got, Receiver};
use crate::push::{LOCAL, admin};
use crate::support::patience::{BOUND, soon};
use crate::support::server::{Home, Server, Setup};

const TOKEN: &str = "token-that-a-receiver-knows-us-by-1";
const OLD_TOKEN: &str = "token-that-the-original-signs-with-2";
const POST_TOKEN: &str = "token-that-neuralpost-signs-with-33";
const BEARER: &str = "credentials-for-the-bearer-scheme-4";
const BASIC: &str = "Y3JlZGVudGlhbHM6Zm9yLXRoZS1iYXNpYy1zY2hlbWU";
const SIGNING: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const OF_ORIGIN: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const MISTYPED: &str = "whsec_not-a-secret-that-can-be-used-!!!";
const UNSENDABLE: &str = "token-with-a-line-break-in-its-middle";

/// What the receivers do, by the path they are told at.
fn answer(got: &Got) -> Act {
    match got.path.split('/').nth(1).unwrap_or_default() {
        "rejects" => Act::Answer(422),
        "refuses" => Act::Answer(401),
        "fails" => Act::Answer(503),
        "leads-away" => Act::With(307, vec![("location", "http://127.0.0.1:9/".to_owned())]),
        "gone" => Act::Answer(410),
        "hangs" => Act::Hang,
        "breaks" => Act::BreakOff,
        _ => Act::Answer(200),
    }
}

const PATHS: [&str; 8] = ["takes", "rejects", "refuses", "fails", "leads-away", "gone", "hangs", "breaks"];

async fn call(server: &Server, version: Option<&str>, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut request = reqwest::Client::new().post(server.url()).json(&body);
    if let Some(version) = version {
        request = request.header("A2A-Version", version);
    }
    request.send().await.expect("an answer").json().await.expect("JSON")
}

fn decoded(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).expect("base64")
}

/// The answer says the registration back to whoever made it, with all that was in it: it is the one place where that belongs.
async fn register(server: &Server, method: &str, params: Value) {
    let answer = call(server, None, method, params).await;
    assert!(answer["result"].is_object(), "{answer}");
}

/// Registers in every way, and is told of every task: taken, rejected, refused, failed, led away.
async fn register_everything(server: &Server, receivers: &[Receiver], post: &Receiver) -> Vec<Value> {
    let mut heard = Vec::new();
    let kind = &receivers[0];
    let message = |text: &str| json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    let authentications = [
        Value::Null,
        json!({ "scheme": "Bearer", "credentials": BEARER }),
        json!({ "scheme": "Basic", "credentials": BASIC }),
        json!({ "scheme": "StandardWebhooks", "credentials": SIGNING }),
        json!({ "scheme": "HMAC-SHA256", "credentials": SIGNING }),
        json!({ "scheme": "Bearer" }),
    ];
    for (way, receiver) in PATHS.iter().zip(receivers) {
        for authentication in &authentications {
            let webhook =
                json!({ "id": "w", "url": receiver.url(&format!("/{way}")), "token": TOKEN, "authentication": authentication });
            let configuration = json!({ "taskPushNotificationConfig": webhook, "returnImmediately": true });
            let sent = call(
                server,
                Some("1.0"),
                "SendMessage",
                json!({ "message": message("stream 3"), "configuration": configuration }),
            );
            let sent = sent.await;
            let which = json!({ "taskId": sent["result"]["task"]["id"], "id": "w" });
            assert!(which["taskId"].is_string(), "{sent}");
            heard.push(sent);
            heard.push(call(server, Some("1.0"), "GetTaskPushNotificationConfig", which.clone()).await);
            heard.push(call(server, Some("1.0"), "ListTaskPushNotificationConfigs", which).await);
        }
    }
    // The other versions, with secrets that sign, and what is refused because it cannot be used or sent.
    let asked = call(server, Some("1.0"), "SendMessage", json!({ "message": message("ask which?") })).await;
    let task = asked["result"]["task"]["id"].clone();
    for (url, token) in [(kind.url("/takes"), OLD_TOKEN), (post.url("/takes"), POST_TOKEN)] {
        let config = json!({ "id": token.len().to_string(), "url": url, "token": token });
        let params = json!({ "taskId": task, "pushNotificationConfig": config });
        register(server, "tasks/pushNotificationConfig/set", params).await;
    }
    heard.push(call(server, None, "tasks/pushNotificationConfig/list", json!({ "id": task })).await);
    let old = json!({ "role": "user", "parts": [{ "type": "text", "text": "ask which?" }] });
    heard.push(call(server, None, "tasks/send", json!({ "id": "mine", "message": old })).await);
    let config = json!({ "url": kind.url("/takes"), "token": OLD_TOKEN });
    register(server, "tasks/pushNotification/set", json!({ "id": "mine", "pushNotificationConfig": config })).await;
    heard.push(call(server, None, "tasks/pushNotification/get", json!({ "id": "mine" })).await);
    for (token, scheme, credentials) in [
        (TOKEN, "StandardWebhooks", MISTYPED),
        (&*format!("{UNSENDABLE}\n{UNSENDABLE}"), "Bearer", BEARER),
        (TOKEN, "a b", BEARER),
    ] {
        let authentication = json!({ "scheme": scheme, "credentials": credentials });
        let config = json!({ "taskId": task, "url": kind.url("/takes"), "token": token, "authentication": authentication });
        let refused = call(server, Some("1.0"), "CreateTaskPushNotificationConfig", config).await;
        assert!(refused["error"].is_object(), "{refused}");
        heard.push(refused);
    }
    let end = json!({ "messageId": "m2", "taskId": task, "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
    heard.push(call(server, Some("1.0"), "SendMessage", json!({ "message": end })).await);
    heard
}

/// Everything an operator can see and do with webhooks.
async fn operate(server: &Server, home: &Home) -> Vec<Value> {
    let data = home.data();
    let mut heard = Vec::new();
    let dead = async || {
        Some(admin(server, &data, "/dead?limit=1000", None).await).filter(|dead| dead["letters"].as_array().unwrap().len() > 9)
    };
    let dead = soon("letters are there", dead).await;
    let lanes = admin(server, &data, "/lanes?limit=1000", None).await;
    for lane in lanes["lanes"].as_array().expect("lanes") {
        heard.push(admin(server, &data, &format!("/lanes/{}", lane["lane"]), None).await);
    }
    for letter in dead["letters"].as_array().expect("letters") {
        heard.push(admin(server, &data, &format!("/dead/{}", letter["id"]), None).await);
    }
    heard.push(admin(server, &data, "/test", Some(json!({ "lane": lanes["lanes"][0]["lane"] }))).await);
    heard.push(admin(server, &data, "/dead/replay", Some(json!({}))).await);
    let gone = json!({ "task": lanes["lanes"][0]["task"] });
    for verb in ["/pause", "/resume", "/disable", "/enable"] {
        heard.push(admin(server, &data, verb, Some(gone.clone())).await);
    }
    for page in ["/origins", "/receipts?limit=1000", "/metrics"] {
        heard.push(admin(server, &data, page, None).await);
    }
    heard.extend([dead, lanes]);
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_of_a_webhook_is_written_down_or_told() {
    // An origin for each, so that nobody waits for the breaker of another.
    let receivers = futures::future::join_all(PATHS.map(|_| Receiver::new(answer))).await;
    let post = Receiver::kind().await;
    let home = Home::new();
    let lines = "barrier_ms = 0\nhost_requests_per_second = 0\nbody_hmac = true\nexchange_ms = 1000\nschedule_s = [0, 1, 1]\n";
    let origins = format!(
        "[push.origins.'{}']\nsecret_env = ['WEBHOOK_SECRET']\n[push.origins.'{}']\nprofile = 'neuralpost'\n",
        receivers[0].url(""),
        post.url("")
    );
    let limits = "[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n";
    let setup = Setup::in_home(&home).args(["--agent", "conformance"]).config(&format!("{LOCAL}{lines}{origins}{limits}"));
    let server = setup.env("RUST_LOG", "trace").env("WEBHOOK_SECRET", OF_ORIGIN).start();
    let mut heard = register_everything(&server, &receivers, &post).await;
    let left_out = RefCell::new(String::new());
    let used = async || {
        let (got, posted) = (receivers.iter().flat_map(Receiver::got).collect::<Vec<_>>(), post.got());
        let has = |name: &str, value: &str| got.iter().any(|got| got.header(name) == value);
        let missing = [
            ("a token", has("x-a2a-notification-token", TOKEN)),
            ("Bearer", has("authorization", &format!("Bearer {BEARER}"))),
            ("Basic", has("authorization", &format!("Basic {BASIC}"))),
            ("a signed body", got.iter().any(|got| !got.header("x-a2a-signature").is_empty())),
            ("a shared secret", got.iter().any(|got| got.header("webhook-signature").contains("v1,"))),
            ("NeuralPost", posted.iter().any(|got| !got.header("x-neuralpost-signature").is_empty())),
        ];
        let mut missing: Vec<&str> = missing.into_iter().filter(|(_, used)| !used).map(|(what, _)| what).collect();
        missing.extend(PATHS.into_iter().filter(|way| !got.iter().any(|got| got.path == format!("/{way}"))));
        *left_out.borrow_mut() = missing.join(", ");
        missing.is_empty().then_some(())
    };
    let waited = tokio::time::timeout(BOUND / 2, soon("every secret was used and every answer given", used)).await;
    assert!(waited.is_ok(), "not used yet: {}", left_out.borrow());
    heard.extend(operate(&server, &home).await);

    // The write-ahead log is only there while it runs.
    let mut left = files(&home.data());
    let kept: Value = serde_json::from_slice(&std::fs::read(home.data().join("vault.json")).unwrap()).unwrap();
    let (status, rest) = server.terminate();
    assert!(status.success());
    left.extend(files(&home.data()));
    left.push(("stdout".to_owned(), rest.into_bytes()));
    left.push(("log".to_owned(), std::fs::read(home.path().join("log")).expect("a log")));
    let answers: Vec<String> = heard.iter().map(ToString::to_string).collect();
    left.push(("answers".to_owned(), answers.join("\n").into_bytes()));
    let left: Vec<(String, String)> = left.into_iter().map(|(name, bytes)| (name, readable(&bytes))).collect();
    for name in ["chancery.db", "chancery.db-wal", "vault.json", "log"] {
        assert!(left.iter().any(|(place, text)| place == name && !text.is_empty()), "{name} was looked at");
    }
    assert!(left.iter().any(|(name, text)| name == "log" && text.contains("TRACE")), "the log is as talkative as it can be");

    let mut secrets: Vec<Secret> = [TOKEN, OLD_TOKEN, POST_TOKEN, BEARER, BASIC, SIGNING, OF_ORIGIN, MISTYPED, UNSENDABLE]
        .map(|secret| Secret::new(secret, secret.as_bytes()))
        .into();
    for secret in [SIGNING, OF_ORIGIN] {
        secrets.push(Secret::new(format!("the bytes of {secret}"), &decoded(&secret["whsec_".len()..])));
    }
    let leaks: Vec<String> = secrets
        .iter()
        .flat_map(|secret| {
            left.iter().filter(|(_, text)| secret.is_in(text)).map(|(name, _)| format!("{} in {name}", secret.what))
        })
        .collect();
    println!(
        "{} secrets, {} places, {} requests, {} found",
        secrets.len(),
        left.len(),
        receivers.iter().map(|receiver| receiver.got().len()).sum::<usize>(),
        leaks.len()
    );
    assert!(leaks.is_empty(), "{leaks:#?}");
    // The key that opens them all is in the vault's own file and nowhere else.
    for key in kept["keys"].as_array().expect("keys") {
        let key = Secret::new("a key of the vault", &decoded(key["key"].as_str().expect("base64")));
        let found: Vec<&str> = left.iter().filter(|(_, text)| key.is_in(text)).map(|(name, _)| name.as_str()).collect();
        assert!(!found.is_empty() && found.iter().all(|name| *name == "vault.json"), "{found:?}");
    }
}
