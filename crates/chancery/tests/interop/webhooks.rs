//! Webhooks across implementations, both ways: ours under the official Standard Webhooks libraries, theirs under ours, and what the
//! official SDKs send at our receiver; prints tables.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{FromRef, State};
use axum::{Router, routing::post};
use chancery_identity::keys::Push;
use chancery_identity::webhook::{
    Carries, HmacSecret, ID_HEADER, SIGNATURE_HEADER, SecretSet, TIMESTAMP_HEADER, Verifier, WebhookId, sign,
};
use chancery_identity::{Algorithm, SigningKey};
use chancery_protocol::{TaskEvent, TaskState, Timestamp};
use chancery_receiver::{AcceptedDelivery, Builder, NotificationForm, ReceivedDelivery, Receiver};
use http::HeaderMap;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::fronts::Prepare;
use crate::implementation::{Implementation, Table};
use crate::machine::MACHINE;
use crate::toolbox::Toolbox;

const PYTHON: Prepare = |tools| tools.python("webhooks_python", "webhooks.py");
const JS: Prepare = |tools| tools.node("webhooks_js", "webhooks.mjs");
const URL: &str = "https://agent.example.org/hook";

/// The libraries read the machine's clock, so what they are given must be of now.
#[expect(clippy::disallowed_methods, reason = "programs of others read the machine's clock")]
fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn bodies() -> [(&'static str, String); 3] {
    let text = |text: &str| {
        json!({ "statusUpdate": { "taskId": "t", "contextId": "c", "status": { "state": "TASK_STATE_WORKING", "message": {
        "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": text }] } } } })
    };
    let long = "x".repeat(200_000);
    [
        ("plain", text("hello").to_string()),
        ("worldly", text("écho \u{1f600} \"quoted\" \\ \u{2028} . 0").to_string()),
        ("long", text(&long).to_string()),
    ]
}

fn id() -> String {
    WebhookId::new(URL, 7, 42, Carries::Entry).to_string()
}

/// What a library is given to verify.
fn given(secret: &HmacSecret, seconds: i64, signature: &str, body: &str) -> Value {
    json!({
        "secret": secret.to_text().expose_secret(),
        "headers": { ID_HEADER: id(), TIMESTAMP_HEADER: seconds.to_string(), SIGNATURE_HEADER: signature },
        "body": body,
    })
}

fn verifies_here(secret: &HmacSecret, seconds: i64, signature: &str, body: &str) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert(ID_HEADER, id().parse().unwrap());
    headers.insert(TIMESTAMP_HEADER, seconds.into());
    headers.insert(SIGNATURE_HEADER, signature.parse().unwrap());
    let verifier = Verifier::default().secret(secret.clone()).url(URL);
    verifier.verify(&headers, body.as_bytes(), Timestamp::from_micros(seconds * 1_000_000)).is_ok()
}

#[test]
fn the_official_libraries_and_we_verify_each_others_webhooks() {
    let _shared = MACHINE.blocking_read();
    let tools = Toolbox::new();
    let mut table = Table::default();
    for (library, prepare) in [("python 1.1.0", PYTHON), ("js 1.1.1", JS)] {
        let other = Implementation::ready(&tools, prepare);
        for (kind, body) in bodies() {
            let column = |what: &str| format!("{library:<14} {kind:<8} {what}");
            ours_under(&other, &body, &mut table, &column);
            theirs_under_us(&other, &body, &mut table, &column);
        }
        changing_secrets(&other, &mut table, &|what| format!("{library:<14} {:<8} {what}", "rotation"));
    }
    // Two libraries; three bodies of eight rows, and four while a secret changes.
    table.settle(2 * (3 * 8 + 4));
}

fn ours_under(other: &Implementation, body: &str, table: &mut Table, column: &dyn Fn(&str) -> String) {
    let (secret, key) = (HmacSecret::generate().unwrap(), SigningKey::<Push>::generate(Algorithm::EdDsa).unwrap());
    let now = now();
    let alone = sign(&id(), now, body.as_bytes(), [&secret], []).unwrap().unwrap();
    let both = sign(&id(), now, body.as_bytes(), [&secret], [&key]).unwrap().unwrap();
    let (v1, v1a) = both.split_once(' ').unwrap();
    let mut check = |what: &str, given: Value, expected: bool| {
        let answer = other.run(&["verify"], &given);
        table.row(column(what), answer["verified"] == expected, &answer);
    };
    check("ours verifies there", given(&secret, now, &alone, body), true);
    check("ours with both signatures verifies there", given(&secret, now, &both, body), true);
    check("ours with the other one first verifies there", given(&secret, now, &format!("{v1a} {v1}"), body), true);
    check("ours with only the other one is refused there", given(&secret, now, v1a, body), false);
    check("ours with another body is refused there", given(&secret, now, &both, &body.replace("\"t\"", "\"u\"")), false);
    let old = sign(&id(), now - 400, body.as_bytes(), [&secret], []).unwrap().unwrap();
    check("ours of six minutes ago is refused there", given(&secret, now - 400, &old, body), false);
}

fn theirs_under_us(other: &Implementation, body: &str, table: &mut Table, column: &dyn Fn(&str) -> String) {
    let (secret, now) = (HmacSecret::generate().unwrap(), now());
    let asked = json!({ "secret": secret.to_text().expose_secret(), "id": id(), "timestamp": now, "body": body });
    let answer = other.run(&["sign"], &asked);
    let signature = answer["signature"].as_str().unwrap_or_default();
    table.row(column("theirs verifies here"), verifies_here(&secret, now, signature, body), &answer);
    let same = sign(&id(), now, body.as_bytes(), [&secret], []).unwrap().unwrap() == signature;
    table.row(column("theirs is ours, byte for byte"), same, &answer);
}

/// A receiver with the old secret, and one with the new, while both sign and after.
fn changing_secrets(other: &Implementation, table: &mut Table, column: &dyn Fn(&str) -> String) {
    let (old, new) = (HmacSecret::generate().unwrap(), HmacSecret::generate().unwrap());
    let now = now();
    let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
    let mut set = SecretSet::new(old.clone());
    set.rotate(new.clone(), std::time::Duration::from_secs(60), at(now)).unwrap();
    let body = "{}";
    for (moment, signs_until, old_verifies) in [("while it changes", now + 59, true), ("after its grace", now + 60, false)] {
        let signature = sign(&id(), now, body.as_bytes(), set.signing(at(signs_until)), []).unwrap().unwrap();
        let of_old = other.run(&["verify"], &given(&old, now, &signature, body));
        table.row(column(&format!("the old secret, {moment}")), of_old["verified"] == old_verifies, &of_old);
        let of_new = other.run(&["verify"], &given(&new, now, &signature, body));
        table.row(column(&format!("the new secret, {moment}")), of_new["verified"] == true, &of_new);
    }
}

#[derive(Clone)]
struct Inbox {
    receiver: Receiver,
    seen: Arc<Mutex<Vec<String>>>,
}

impl FromRef<Inbox> for Receiver {
    fn from_ref(inbox: &Inbox) -> Self {
        inbox.receiver.clone()
    }
}

async fn hook(State(inbox): State<Inbox>, delivery: ReceivedDelivery) -> AcceptedDelivery {
    let said = match &delivery.notification.event {
        TaskEvent::Created(task) if task.status.state == TaskState::Working => "task working".to_owned(),
        TaskEvent::Created(task) => {
            let text = task.artifacts.first().and_then(|artifact| artifact.parts.first()?.as_text()).unwrap_or("nothing");
            format!("task {:?} with {text}", task.status.state)
        }
        TaskEvent::Artifact(chunk) => format!("artifact {}", chunk.artifact.parts[0].as_text().unwrap_or("nothing")),
        TaskEvent::Status(change) => format!("status {:?}", change.status.state),
        other => format!("{other:?}"),
    };
    let task = delivery.task().map(ToString::to_string).unwrap_or_default();
    inbox.seen.lock().unwrap().push(format!("{} {task} {said}", delivery.notification.form.as_str()));
    delivery.accept().await
}

/// What got through to somebody who demands that much.
async fn received(other: &Implementation, arguments: &[&str], given: &Value, demands: fn(Builder) -> Builder) -> Vec<String> {
    let inbox = Inbox { receiver: demands(Receiver::builder()).build().unwrap(), seen: Arc::default() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut given = given.clone();
    given["url"] = format!("http://{}/hook", listener.local_addr().unwrap()).into();
    let router = Router::new().route("/hook", post(hook)).with_state(inbox.clone());
    let served = tokio::spawn(async move { axum::serve(listener, router).await });
    tokio::task::block_in_place(|| other.run(arguments, &given));
    served.abort();
    inbox.seen.lock().unwrap().clone()
}

/// How an SDK's sender is started, what it is asked, and what a receiver can demand of it.
struct Sender {
    name: &'static str,
    prepare: Prepare,
    arguments: &'static [&'static str],
    form: NotificationForm,
    demands: fn(Builder) -> Builder,
    said: &'static [&'static str],
}

const WHOLE_TASKS: &[&str] = &["task working", "task Completed with héllo"];
const EVENTS: &[&str] = &["task working", "artifact héllo", "status Completed"];

fn senders() -> [Sender; 5] {
    let token: fn(Builder) -> Builder = |builder| builder.token("s3cret".to_owned());
    let credentials: fn(Builder) -> Builder = |builder| builder.credentials("Bearer", "cred".to_owned());
    let both: fn(Builder) -> Builder = |builder| builder.token("s3cret".to_owned()).credentials("Bearer", "cred".to_owned());
    let (v1_0, v0_3) = (NotificationForm::V1_0, NotificationForm::V0_3);
    [
        Sender {
            name: "python 1.3.0",
            prepare: |tools| tools.python("python_1_3", "pushes.py"),
            arguments: &[],
            form: v1_0,
            demands: both,
            said: EVENTS,
        },
        Sender {
            name: "python 0.3.26",
            prepare: |tools| tools.python("python_0_3", "pushes.py"),
            arguments: &[],
            form: v0_3,
            demands: token,
            said: WHOLE_TASKS,
        },
        // With credentials it leaves the token out.
        Sender {
            name: "js 1.3.0",
            prepare: |tools| tools.node("js_1_3", "pushes.mjs"),
            arguments: &["1.0"],
            form: v1_0,
            demands: credentials,
            said: EVENTS,
        },
        // It tells 0.3 the task as it knows it, whatever the event.
        Sender {
            name: "js 1.3.0 as 0.3",
            prepare: |tools| tools.node("js_1_3", "pushes.mjs"),
            arguments: &["0.3"],
            form: v0_3,
            demands: credentials,
            said: &["task working", "task working", "task working"],
        },
        Sender {
            name: "js 0.3.14",
            prepare: |tools| tools.node("js_0_3", "pushes.mjs"),
            arguments: &[],
            form: v0_3,
            demands: token,
            said: WHOLE_TASKS,
        },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_push_senders_of_official_sdks_send_reaches_our_receiver() {
    let _shared = MACHINE.read().await;
    let tools = Toolbox::new();
    let mut table = Table::default();
    for sender in senders() {
        let other = Implementation::ready(&tools, sender.prepare);
        let column = |what: &str| format!("{:<16} {what}", sender.name);
        let given = json!({ "token": "s3cret", "credentials": "cred" });
        let seen = received(&other, sender.arguments, &given, sender.demands).await;
        let expected: Vec<_> = sender.said.iter().map(|said| format!("{} task-1 {said}", sender.form.as_str())).collect();
        table.row(column("arrives, in order and in its form"), seen == expected, &format!("{seen:?}"));
        let wrong = json!({ "token": "other", "credentials": "other" });
        let seen = received(&other, sender.arguments, &wrong, sender.demands).await;
        table.row(column("is refused if it shows something else"), seen.is_empty(), &format!("{seen:?}"));
    }
    table.settle(2 * 5);
}
