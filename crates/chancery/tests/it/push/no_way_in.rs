//! Webhooks that lead inside: by the text of their URL, by a redirect, by a proxy. Nobody ever knocks at the canary.

use serde_json::{Value, json};

use super::raw::Raw;
use super::receiver::{Act, Receiver};
use super::{LOCAL, admin, lasting, send, server};
use crate::support::patience::soon;
use crate::support::server::{Home, Setup};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_spelling_of_this_machine_reaches_it() {
    let canary = Raw::canary().await;
    let port = canary.address.port();
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--agent", "conformance"]).config("[push]\nschedule_s = [0, 1]\n").start();
    let places = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "①②⑦.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "127.0.0.1.",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "user:password@127.0.0.1",
        "user@localhost",
        "example.com@127.0.0.1",
    ];
    for url in places.iter().flat_map(|place| [format!("https://{place}:{port}/"), format!("http://{place}:{port}/")]) {
        let message = json!({ "messageId": url, "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
        let configuration = json!({ "taskPushNotificationConfig": { "url": url } });
        let answer = server.call("SendMessage", json!({ "message": message, "configuration": configuration })).await;
        assert_eq!(answer["error"]["code"], -32602, "{url}: {answer}");
    }
    let lanes = admin(&server, &home.data(), "/lanes", None).await;
    assert_eq!(lanes["lanes"], json!([]));
    assert_eq!(canary.came(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_a_dead_letter_wherever_it_points() {
    let canary = Raw::canary().await;
    let metadata = "http://169.254.169.254/latest/meta-data/".to_owned();
    for (status, place) in
        [301, 302, 303, 307, 308].into_iter().flat_map(|status| [(status, canary.url()), (status, metadata.clone())])
    {
        let home = Home::new();
        // The canary could be called if anybody registered it: it is the redirect that is not followed.
        let server = lasting(&home, "schedule_s = [0, 1]");
        let receiver = Receiver::new(move |_| Act::With(status, vec![("location", place.clone())])).await;
        send(&server, "complete", json!({ "url": receiver.url("/") }), true).await;
        let dead = async || {
            let letters = admin(&server, &home.data(), "/dead", None).await["letters"].take();
            letters.as_array().cloned().filter(|letters| letters.len() == 2)
        };
        let letters = soon("both events are given up", dead).await;
        let told = |letter: &Value| letter["reason"] == "redirect" && letter["http"] == status;
        assert!(letters.iter().all(told), "{letters:?}");
        assert_eq!(receiver.got().len(), 2, "{status}: each was sent once");
    }
    assert_eq!(canary.came(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_of_the_environment_see_no_notification() {
    let canary = Raw::canary().await;
    let home = Home::new();
    let mut setup = Setup::in_home(&home).args(["--agent", "conformance"]).config(LOCAL);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        setup = setup.env(name, &canary.url());
    }
    let server = setup.start();
    let receiver = Receiver::kind().await;
    send(&server, "complete", json!({ "url": receiver.url("/") }), true).await;
    receiver.has_taken(2).await;
    // A public name: with the proxy it would be asked for there.
    send(&server, "complete", json!({ "url": "https://hooks.invalid/" }), true).await;
    let tried = async || {
        let lanes = admin(&server, &home.data(), "/lanes", None).await;
        let lanes = lanes["lanes"].as_array().unwrap();
        lanes.iter().any(|lane| lane["attempt"].as_u64() > Some(0)).then_some(())
    };
    soon("the name was looked for", tried).await;
    assert_eq!(canary.came(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_is_the_node_itself_is_refused_by_every_name() {
    let server = server("");
    let port = server.url().rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    for place in ["127.0.0.1", "127.1", "127.0.0.1.", "[::ffff:127.0.0.1]"] {
        let message = json!({ "messageId": place, "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
        let config = json!({ "url": format!("http://{place}:{port}/") });
        let params = json!({ "message": message, "configuration": { "taskPushNotificationConfig": config } });
        let answer = server.call("SendMessage", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{place}: {answer}");
    }
}
