//! What passes through a gateway untouched: what the model does not know, the trace, and extensions.

use serde_json::{Value, json};

use super::in_front_of;
use super::scripted::{Asked, Script, Scripted, card};
use crate::support::server::Server;

/// Numbers that no float holds, members in no order, text that could be written otherwise.
const METADATA: &str =
    r#"{"z":1.0,"a":12345678901234567890123,"tiny":1e-400,"ü":"\u00e9\/x","nested":{"b":[1.50,-0.0],"a":null}}"#;
const DATA: &str = r#"{"sum":0.10,"of":[100000000000000000001,1E2],"why":"because\u0020so"}"#;

async fn post(gateway: &Server, body: &str, headers: &[(&str, &str)]) -> String {
    let request =
        reqwest::Client::new().post(gateway.url()).header("A2A-Version", "1.0").header("Content-Type", "application/json");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(body.to_owned()).send().await.expect("an answer").text().await.expect("text")
}

fn sending() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"metadata":{METADATA},"message":{{"messageId":"m","role":"ROLE_USER","metadata":{METADATA},"extensions":["https://example.org/e"],"referenceTaskIds":[],"parts":[{{"data":{DATA},"mediaType":"text/plain","metadata":{METADATA}}}]}}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_and_data_arrive_byte_for_byte_both_ways() {
    let agent = Scripted::agent(|asked| {
        let call: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let said = format!(
            r#"{{"taskId":"t","contextId":"c","metadata":{METADATA},"status":{{"state":"TASK_STATE_COMPLETED","message":{{"messageId":"w","role":"ROLE_AGENT","metadata":{METADATA},"parts":[{{"data":{DATA}}}]}}}}}}"#
        );
        let made = format!(
            r#"{{"taskId":"t","contextId":"c","artifact":{{"artifactId":"a","metadata":{METADATA},"parts":[{{"data":{DATA},"metadata":{METADATA}}}]}},"lastChunk":true}}"#
        );
        let wrap = |member: &str, event: &str| {
            format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"{member}\":{event}}}}}\n\n", call["id"])
        };
        let task = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}"#;
        Script::stream().chunk(&wrap("task", task)).chunk(&wrap("artifactUpdate", &made)).chunk(&wrap("statusUpdate", &said)).end()
    })
    .await;
    let gateway = in_front_of(&agent.url(), "");
    let answer = post(&gateway, &sending(), &[]).await;

    let arrived = agent.calls().remove(0).body;
    assert_eq!(arrived.matches(METADATA).count(), 3, "beside the message, in it and in its part: {arrived}");
    assert_eq!(arrived.matches(DATA).count(), 1, "{arrived}");
    assert!(arrived.contains("https://example.org/e"), "{arrived}");
    // The task's own, its words', its artifact's and that one's part's, and what the caller had said with its two.
    assert_eq!(answer.matches(METADATA).count(), 6, "{answer}");
    assert_eq!(answer.matches(DATA).count(), 3, "words, artifact, and what the caller had said: {answer}");
}

fn done(asked: &Asked) -> Script {
    Script::result(asked, &json!({ "task": { "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" } } }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_is_called_in_the_trace_of_the_caller() {
    let agent = Scripted::with_card(json!({}), done).await;
    let gateway = in_front_of(&agent.url(), "");
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    post(&gateway, &sending(), &[("traceparent", &format!("00-{trace}-{span}-01"))]).await;
    let passed = agent.calls()[0].headers["traceparent"].clone();
    assert!(passed.starts_with(&format!("00-{trace}-")), "{passed}");
    assert!(!passed.contains(span), "a span of our own: {passed}");

    // What other systems keep beside the trace goes with it, behind our own member, up to what everybody has to take; and never
    // without it.
    let parent = format!("00-{trace}-{span}-01");
    let own = agent.calls()[0].headers["tracestate"].clone();
    assert!(own.contains("@chancery=") && !own.contains(','), "{own}");
    let room = 512 - own.len() - ",a=".len();
    let (most, more) = (format!("a={}", "x".repeat(room)), format!("a={}", "x".repeat(room + 1)));
    for (state, given, expected) in
        [("congo=t61rcWkgMzE,rojo=1", true, true), (&most, true, true), (&more, true, false), ("congo=t61rcWkgMzE", false, false)]
    {
        let headers = [("tracestate", state), ("traceparent", parent.as_str())];
        post(&gateway, &sending(), &headers[..1 + usize::from(given)]).await;
        let passed = agent.calls().last().and_then(|call| call.headers.get("tracestate").cloned()).expect("our own at least");
        let (key, _) = own.split_once('=').expect("a member");
        assert!(passed.starts_with(key), "{passed}");
        assert_eq!(passed.split_once(',').map(|(_, rest)| rest), expected.then_some(state));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_are_asked_for_that_the_agent_has_and_no_others() {
    const REQUIRED: &str = "https://example.org/extensions/required/v1";
    let agent = Scripted::start(|url| {
        let extensions = json!([{ "uri": REQUIRED, "required": true, "params": { "at": format!("{url}/x") } }]);
        let page = Script::json(&card(url, json!({ "extensions": extensions })));
        move |asked: &Asked| if asked.path.contains(".well-known") { page.clone() } else { done(asked) }
    })
    .await;
    let gateway = in_front_of(&agent.url(), "");
    let refused = post(&gateway, &sending(), &[]).await;
    assert!(refused.contains(REQUIRED) && refused.contains("error"), "{refused}");
    let asked_for = format!("https://example.org/other, {REQUIRED}, urn:chancery:identity:v1");
    let answer = post(&gateway, &sending(), &[("A2A-Extensions", &asked_for)]).await;
    assert!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
    let calls: Vec<_> = agent.calls().into_iter().filter(|asked| asked.kind().starts_with("Send")).collect();
    assert_eq!(calls.len(), 1, "who does not ask for what is required is not let through");
    assert_eq!(calls[0].headers["a2a-extensions"], REQUIRED);
}
