//! Limits on how often: one caller, one address.

use serde_json::{Value, json};

use super::{assert_refused, limited};
use crate::support::server::Server;

const RATE_LIMITED: i64 = -32040;
/// Far more than a bucket of three can hold, however slowly they are made.
const MANY: usize = 10_000;

/// Calls until it is told to wait. Answers how many calls passed before.
async fn until_told_to_wait(request: impl AsyncFn() -> reqwest::Response) -> (usize, reqwest::Response) {
    for passed in 0..MANY {
        let response = request().await;
        let status = response.headers().get("grpc-status").map(|status| status.as_bytes().to_vec());
        if response.status() == 429 || status.as_deref() == Some(b"8") {
            return (passed, response);
        }
    }
    panic!("{MANY} calls were let through");
}

async fn held_on_every_transport(server: &Server, limit: &str) {
    let client = reqwest::Client::new();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "nobody" } });
    let json_rpc = async || client.post(server.url()).header("A2A-Version", "1.0").json(&body).send().await.unwrap();
    let (passed, refused) = until_told_to_wait(json_rpc).await;
    assert!(passed >= 3, "a burst of three passes, but only {passed} did");
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_refused(&refused.json::<Value>().await.unwrap(), RATE_LIMITED, limit);

    let rest = async || client.get(format!("{}/tasks/nobody", server.url())).header("A2A-Version", "1.0").send().await.unwrap();
    let (_, refused) = until_told_to_wait(rest).await;
    assert_eq!(refused.headers()["retry-after"], "1");
    let answer: Value = refused.json().await.unwrap();
    assert_eq!(answer["error"]["status"], "RESOURCE_EXHAUSTED", "{answer}");
    assert!(answer.to_string().contains(limit), "{answer}");

    let http2 = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let grpc = async || {
        let request = http2.post(format!("{}/lf.a2a.v1.A2AService/ListTasks", server.url()));
        request.header("content-type", "application/grpc").body(vec![0; 5]).send().await.unwrap()
    };
    let (_, refused) = until_told_to_wait(grpc).await;
    assert!(refused.headers()["grpc-message"].to_str().unwrap().contains(limit), "{refused:?}");
}

#[tokio::test]
async fn a_caller_over_its_rate_is_told_to_wait_on_every_transport() {
    let rates = "calls_per_second_per_caller = 1\ncalls_burst_per_caller = 3\ncalls_per_second_per_address = 0";
    held_on_every_transport(&limited(rates), "limits.calls_per_second_per_caller").await;
}

#[tokio::test]
async fn an_address_over_its_rate_is_told_to_wait_on_every_transport() {
    let rates = "calls_per_second_per_address = 1\ncalls_burst_per_address = 3\ncalls_per_second_per_caller = 0";
    held_on_every_transport(&limited(rates), "limits.calls_per_second_per_address").await;
}

#[tokio::test]
async fn a_trusted_proxy_names_the_address_in_limits_and_logs() {
    let rates = "calls_per_second_per_address = 1\ncalls_burst_per_address = 3\ntrusted_proxies = ['127.0.0.0/8']";
    let server = limited(rates);
    let client = reqwest::Client::new();
    let call = async |forwarded_for: &str| {
        let request = client.get(format!("{}/tasks/none", server.url())).header("A2A-Version", "1.0");
        request.header("X-Forwarded-For", forwarded_for).send().await.unwrap()
    };
    until_told_to_wait(async || call("192.0.2.1").await).await;
    assert_eq!(call("192.0.2.2, 127.0.0.9").await.status(), 404, "another client behind two proxies");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("over the rate limit")).expect("a line about the limit");
    assert!(line.contains("192.0.2.1") && !line.contains("127.0.0.1"), "{line}");
}

#[tokio::test]
async fn the_first_call_over_a_rate_is_logged_with_its_setting_and_the_next_ones_are_not() {
    let server = limited("calls_per_second_per_address = 1\ncalls_burst_per_address = 3");
    let client = reqwest::Client::new();
    let call = async || client.get(format!("{}/tasks/none", server.url())).header("A2A-Version", "1.0").send().await.unwrap();
    for _ in 0..3 {
        until_told_to_wait(call).await;
    }
    let lines: Vec<String> =
        server.log().lines().filter(|line| line.contains("over the rate limit")).map(str::to_owned).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in ["WARN", "limits.calls_per_second_per_address", "127.0.0.1"] {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
}
