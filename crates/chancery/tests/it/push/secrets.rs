//! What is kept secret changes while notifications go out: the secrets of origins, and the key everything is sealed with.

use std::process::Output;

use chancery_identity::webhook::{HmacSecret, Verifier};
use serde_json::{Value, json};

use super::receiver::{Act, Got, Receiver};
use super::{admin, lasting, send};
use crate::support::server::{Home, Server};

fn cli(home: &Home, arguments: &[&str]) -> Output {
    home.command().arg("push").args(arguments).output().unwrap()
}

fn said(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether a receiver that has only this secret takes the notification.
fn verifies(got: &Got, secret: &str) -> bool {
    let now = chancery_core::Clock::now(&chancery_core::SystemClock);
    Verifier::default().secret(HmacSecret::parse(secret).unwrap()).verify(&got.headers, &got.body, now).is_ok()
}

async fn told(server: &Server, receiver: &Receiver) -> Got {
    let before = receiver.taken().len();
    send(server, "complete", json!({ "url": receiver.url("/") }), true).await;
    receiver.has_taken(before + 2).await.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_for_an_origin_is_set_changed_with_overlap_and_taken_away() {
    let home = Home::new();
    let receiver = Receiver::kind().await;
    let server = lasting(&home, "");
    let origin = receiver.url("");
    assert!(!told(&server, &receiver).await.header("webhook-signature").contains("v1,"));

    let first = said(cli(&home, &["secrets", "set", &origin]));
    assert!(first.starts_with("whsec_"), "{first}");
    let got = told(&server, &receiver).await;
    assert!(verifies(&got, &first));

    let own = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let mut set = home.command();
    set.args(["push", "secrets", "set", &origin, "--secret-env", "OWN", "--grace", "1h"]).env("OWN", own);
    assert_eq!(said(set.output().unwrap()), "", "what somebody else made is not repeated");
    let got = told(&server, &receiver).await;
    assert!(verifies(&got, own) && verifies(&got, &first), "both sign while the grace lasts");

    drop(server);
    let server = lasting(&home, "");
    let got = told(&server, &receiver).await;
    assert!(verifies(&got, own) && verifies(&got, &first), "and after a restart");
    let shown = admin(&server, &home.data(), "/secrets", None).await;
    assert_eq!(shown["secrets"][0]["signing"], 2, "{shown}");
    assert!(!shown.to_string().contains("whsec_"), "{shown}");

    let third = said(cli(&home, &["secrets", "set", &origin, "--grace", "0s"]));
    let got = told(&server, &receiver).await;
    assert!(verifies(&got, &third) && !verifies(&got, own));
    assert!(!cli(&home, &["secrets", "set", &origin, "--grace", "8d"]).status.success(), "seven days at most");
    said(cli(&home, &["secrets", "rm", &origin]));
    assert!(!told(&server, &receiver).await.header("webhook-signature").contains("v1,"));
    assert!(!cli(&home, &["secrets", "rm", &origin]).status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_vault_gets_a_new_key_while_notifications_wait_and_forgets_the_old_one() {
    let home = Home::new();
    let receiver = Receiver::new(|_| Act::Answer(503)).await;
    let server = lasting(&home, "schedule_s = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]");
    let config =
        json!({ "url": receiver.url("/"), "token": "t-0", "authentication": { "scheme": "Bearer", "credentials": "c-0" } });
    send(&server, "complete", config, true).await;
    receiver.has_got(1).await;
    let origin = receiver.url("");
    let secret = said(cli(&home, &["secrets", "set", &origin]));

    let keys = |answer: &Value| answer["keys"].as_array().unwrap().clone();
    let before = keys(&admin(&server, &home.data(), "/vault", None).await);
    assert_eq!((before.len(), &before[0]["registrations"]), (1, &json!(1)));
    let old = before[0]["id"].as_str().unwrap().to_owned();
    assert!(!cli(&home, &["vault", "retire", &old]).status.success(), "it seals");
    let rotated: Value = serde_json::from_str(&said(cli(&home, &["vault", "rotate", "--json"]))).unwrap();
    assert_eq!((&rotated["moved"], &rotated["lost"]), (&json!(1), &json!(0)), "{rotated}");
    let after = keys(&rotated);
    assert_eq!(
        after.iter().map(|key| (key["seals"] == true, key["registrations"].as_u64())).collect::<Vec<_>>(),
        [(false, Some(0)), (true, Some(1))]
    );
    assert!(said(cli(&home, &["vault", "ls"])).contains(&old));
    said(cli(&home, &["vault", "retire", &old]));
    let file = std::fs::read_to_string(home.data().join("vault.json")).unwrap();
    assert!(!file.contains(&old));

    drop(server);
    receiver.now_does(|_| Act::Answer(200));
    let server = lasting(&home, "");
    let got = receiver.has_taken(2).await.pop().unwrap();
    assert_eq!((got.header("authorization"), got.header("a2a-notification-token")), ("Bearer c-0", "t-0"));
    assert!(verifies(&got, &secret), "the origin's secret came along");
    drop(server);
}
