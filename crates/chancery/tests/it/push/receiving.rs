//! `chancery push listen` and `chancery push verify`: what a receiver is told of what arrives, and what it refuses.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use chancery_identity::keys::Push;
use chancery_identity::webhook::{Carries, HmacSecret, WebhookId, public_key_to_whpk, sign};
use chancery_identity::{Jwk, Jwks, SigningKey};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::operating::cli::run;
use crate::support::patience::exit_of;
use crate::support::server::Home;

const URL: &str = "https://agent.example.org/hook";

fn secret() -> HmacSecret {
    HmacSecret::from_bytes(vec![7; 32]).unwrap()
}

fn key() -> SigningKey<Push> {
    SigningKey::from_seed(&"07".repeat(32)).unwrap()
}

/// The receiver reads the machine's clock, so its sender must.
#[expect(clippy::disallowed_methods, reason = "a process of its own reads the machine's clock")]
fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn body(task: &str) -> String {
    json!({ "statusUpdate": { "taskId": task, "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" } } }).to_string()
}

fn headers(seq: u64, seconds: i64, body: &str) -> [(&'static str, String); 3] {
    let id = WebhookId::new(URL, 3, seq, Carries::Entry).to_string();
    let signature = sign(&id, seconds, body.as_bytes(), [&secret()], [&key()]).unwrap().unwrap();
    [("webhook-id", id), ("webhook-timestamp", seconds.to_string()), ("webhook-signature", signature)]
}

struct Listener {
    process: Child,
    url: String,
    lines: BufReader<ChildStdout>,
}

impl Listener {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command();
        command.args(["push", "listen", "--listen", "127.0.0.1:0", "--json"]).args(arguments);
        command.env("HOOK_SECRET", secret().to_text().expose_secret()).env("HOOK_TOKEN", "s3cret");
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut remarks = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = remarks.find_map(|line| line.unwrap().strip_prefix("listening on ").map(str::to_owned));
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { url: url.expect("it says where it listens"), process, lines }
    }

    async fn post(&self, headers: &[(&'static str, String)], body: &str) -> u16 {
        let mut request = reqwest::Client::new().post(format!("{}/any/path", self.url)).body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        request.send().await.expect("it answers").status().as_u16()
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|fault| panic!("{fault}: {line}"))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_prints_what_is_genuine_refuses_the_rest_and_stops_when_it_has_enough() {
    let home = Home::new();
    let arguments = ["--secret-env", "HOOK_SECRET", "--token-env", "HOOK_TOKEN", "--url", URL, "--count", "2"];
    let mut listener = Listener::start(&home, &arguments);
    let (text, token) = (body("task-1"), ("x-a2a-notification-token", "s3cret".to_owned()));
    let with_token = |headers: [(&'static str, String); 3]| [headers.as_slice(), std::slice::from_ref(&token)].concat();
    let good = with_token(headers(1, now(), &text));

    assert_eq!(listener.post(&good, &text).await, 204);
    let line = listener.line();
    assert_eq!(
        (&line["task"], &line["event"], &line["state"], &line["seq"]),
        (&json!("task-1"), &json!("status"), &json!("completed"), &json!(1))
    );
    assert_eq!((&line["proofs"], &line["body"]["statusUpdate"]["taskId"]), (&json!(["token", "v1"]), &json!("task-1")));

    assert_eq!(listener.post(&good, &text).await, 200, "a copy is no news, and no fault of its sender");
    assert_eq!(listener.line()["refused"], "duplicate");
    assert_eq!(listener.post(&headers(2, now(), &text), &text).await, 401);
    assert_eq!(listener.line()["refused"], "token");
    assert_eq!(listener.post(&with_token(headers(2, now() - 400, &text)), &text).await, 401);
    assert_eq!(listener.line()["refused"], "too_old");
    assert_eq!(listener.post(&with_token(headers(2, now(), &text)), "{}").await, 401);
    assert_eq!(listener.line()["refused"], "signature_wrong");

    assert_eq!(listener.post(&with_token(headers(2, now(), &text)), &text).await, 204);
    assert_eq!(listener.line()["seq"], 2);
    assert!(exit_of(&mut listener.process).success(), "two were wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_fails_on_purpose_takes_nothing_and_one_that_asks_for_nothing_says_so() {
    let home = Home::new();
    let text = body("task-1");
    let mut failing = Listener::start(&home, &["--secret-env", "HOOK_SECRET", "--answer", "503"]);
    let message = headers(1, now(), &text);
    for _ in 0..2 {
        assert_eq!(failing.post(&message, &text).await, 503);
        assert_eq!(failing.line()["seq"], 1, "the next attempt is heard like the first");
    }
    let mut open = Listener::start(&home, &[]);
    assert_eq!(open.post(&[], &text).await, 204);
    assert_eq!(open.line()["proofs"], json!([]));
    assert_eq!(open.post(&[], "hello").await, 400);
    assert_eq!(open.line()["refused"], "not_a_notification");
    let answer = reqwest::get(format!("{}/hook?validationToken=a%20b", open.url)).await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "a b", "whoever owns the URL can say so");
}

#[test]
fn a_notification_that_was_kept_is_verified_as_of_the_time_it_arrived() {
    let home = Home::new();
    let (text, seconds) = (body("task-1"), 1_800_000_000);
    let file = |name: &str, content: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let head: String = headers(7, seconds, &text).iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let (head, message) = (file("head.txt", &head), file("body.json", &text));
    let secret_file = file("hook.secret", &format!("{}\n", secret().to_text().expose_secret()));
    let verify = |arguments: &[&str]| run(&home, [&["push", "verify", "--headers", &head, &message], arguments].concat());
    let then = "2027-01-15T08:02:00Z";

    let shown = verify(&["--secret-file", &secret_file, "--at", then]);
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), "task-1  status completed  #7  [v1]\n"), "{}", shown.stderr);
    let whpk = public_key_to_whpk(key().public()).unwrap();
    let shown = verify(&["--public-key", &whpk, "--url", URL, "--at", then, "--json"]).json();
    assert_eq!((&shown["proofs"], &shown["lane"]), (&json!(["v1a"]), &json!(3)));
    let jwks = Jwks { keys: vec![Jwk::of(key().public(), None)] };
    let jwks = file("keys.json", &serde_json::to_string(&jwks).unwrap());
    assert_eq!(verify(&["--keys", &jwks, "--url", URL, "--at", then]).code, Some(0));

    let late = verify(&["--secret-file", &secret_file]);
    assert!(late.code == Some(1) && late.stderr.contains("too_"), "{}", late.stderr);
    let elsewhere = verify(&["--secret-file", &secret_file, "--url", "https://other.example.org/hook", "--at", then]);
    assert!(elsewhere.code == Some(1) && elsewhere.stderr.contains("other_audience"), "{}", elsewhere.stderr);
    let altered = file("altered.json", &text.replace("task-1", "task-2"));
    let altered = run(&home, ["push", "verify", "--headers", &head, &altered, "--secret-file", &secret_file, "--at", then]);
    assert!(altered.code == Some(1) && altered.stderr.contains("signature_wrong"), "{}", altered.stderr);

    for (arguments, fault) in [
        (&[][..], "say what to verify with"),
        (&["--secret-file", &message], "whsec_"),
        (&["--public-key", &whpk], "the URL of this receiver"),
        (&["--secret-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
    ] {
        let refused = verify(arguments);
        assert!(refused.code == Some(2) && refused.stderr.contains(fault), "{}", refused.stderr);
    }
}
