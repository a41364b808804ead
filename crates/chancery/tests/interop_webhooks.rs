//! Webhooks across implementations, both ways: ours under the official Standard Webhooks libraries, theirs under ours; prints one table.

#[path = "interop/implementation.rs"]
mod implementation;
#[path = "interop/toolbox.rs"]
#[expect(dead_code, reason = "no server runs here, so there is no log of one")]
mod toolbox;

use std::time::{SystemTime, UNIX_EPOCH};

use chancery_identity::keys::Push;
use chancery_identity::webhook::{
    Carries, HmacSecret, ID_HEADER, SIGNATURE_HEADER, SecretSet, TIMESTAMP_HEADER, Verifier, WebhookId, sign,
};
use chancery_identity::{Algorithm, SigningKey};
use chancery_protocol::Timestamp;
use http::HeaderMap;
use implementation::{Implementation, Prepare, Table};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use toolbox::Toolbox;

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
    let tools = Toolbox::new();
    let mut table = Table::default();
    for (library, prepare) in [("python 1.1.0", PYTHON), ("js 1.1.1", JS)] {
        let Some(other) = Implementation::ready(&tools, prepare) else { return };
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
