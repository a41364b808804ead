//! What the door takes, how it answers, and what it closes a connection for.

use bytes::Bytes;
use chancery_wire::swp::codec::a2a::{self, SwpHandshake};
use chancery_wire::swp::codec::{FramePayload, Profile, agdisc, obs};
use chancery_wire::swp::{Convention, Given};
use serde_json::{Value, json};

use super::{Peer, node, task, text};
use crate::support::patience::soon;

#[tokio::test]
async fn a_task_is_a_message_and_its_events_and_result_are_the_answer() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    // Nobody has to greet, and whoever does changes nothing.
    peer.say(&a2a::A2aMessage::Handshake(SwpHandshake { agent_id: "somebody".into(), capabilities: vec!["x".into()] })).await;
    peer.give("t-1", "conformance", "stream 3 1", Some(Convention::Text)).await;
    let (words, result) = peer.outcome().await;
    assert_eq!((result.ok, text(&result.output)), (true, "chunk-1 chunk-2 chunk-3 ".to_owned()));
    assert!(words.iter().filter(|word| word.contains("chunk-")).count() >= 2, "{words:?}");
    let listed = node.call("ListTasks", json!({ "historyLength": 1 })).await;
    let found = &listed["result"]["tasks"][0];
    assert_eq!(found["history"][0]["parts"][0]["text"], "stream 3 1", "{listed}");

    // Another agent of the node, by its name, and a skill of it.
    let skill = skill_of(&node, "echo").await;
    peer.give("t-2", &format!("echo/{skill}"), "hello", Some(Convention::Text)).await;
    let (_, result) = peer.outcome().await;
    assert_eq!((result.ok, text(&result.output)), (true, "hello".to_owned()));
}

async fn skill_of(node: &crate::support::server::Server, agent: &str) -> String {
    let card = reqwest::get(format!("{}/agents/{agent}/.well-known/agent-card.json", node.url())).await.expect("a card");
    let card: Value = card.json().await.expect("JSON");
    card["skills"][0]["id"].as_str().expect("a skill").to_owned()
}

#[tokio::test]
async fn a_refusal_is_a_result_with_its_code_and_the_connection_goes_on() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    for (task_id, kind, convention, input, reason) in [
        ("1", "no-such-thing", None, "x", "UNSUPPORTED_OPERATION: unsupported capability: "),
        ("2", "echo/no-such-skill", None, "x", "UNSUPPORTED_OPERATION: unsupported capability: "),
        ("3", "conformance", Some(Convention::Json), "{", "INVALID_PARAMS: malformed task input: "),
        ("4", "conformance", Some(Convention::A2a), "no protobuf", "INVALID_PARAMS: malformed task input: "),
        ("6", "conformance", Some(Convention::Text), "fail no paper", "TASK_STATE_FAILED: execution failed: no paper"),
        ("7", "conformance", Some(Convention::Text), "ask which?", "TASK_STATE_INPUT_REQUIRED: execution failed: which?"),
    ] {
        peer.give(task_id, kind, input, convention).await;
        let (_, result) = peer.outcome().await;
        assert_eq!((text(&result.task_id).as_str(), result.ok), (task_id, false));
        assert!(result.error_message.starts_with(reason), "{task_id}: {}", result.error_message);
    }
    peer.give("8", "conformance", "complete still here", Some(Convention::Text)).await;
    assert_eq!(text(&peer.outcome().await.1.output), "still here");
}

#[tokio::test]
async fn the_input_is_read_as_it_is_declared() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    for (task_id, convention, part) in [
        ("text", Some(Convention::Text), json!({ "text": "[1]" })),
        ("json", Some(Convention::Json), json!({ "data": [1] })),
        ("opaque", Some(Convention::Opaque), json!({ "raw": "WzFd" })),
        // Nothing is said, so the agent's card says it: it takes text first.
        ("nothing", None, json!({ "text": "[1]" })),
    ] {
        peer.give(task_id, "echo", "[1]", convention).await;
        assert!(peer.outcome().await.1.ok, "{task_id}");
        let listed = node_tasks(&node).await;
        assert_eq!(listed[0]["history"][0]["parts"][0], part, "{task_id}");
    }
}

#[tokio::test]
async fn a_task_with_empty_input_is_taken_by_every_convention() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    for (task_id, convention, part) in [
        ("text", Some(Convention::Text), json!({ "text": "" })),
        ("json", Some(Convention::Json), json!({ "data": null })),
        ("opaque", Some(Convention::Opaque), json!({ "raw": "" })),
        ("a2a", Some(Convention::A2a), json!({ "text": "" })),
        ("nothing", None, json!({ "text": "" })),
    ] {
        for (kind, listed_at) in [("echo", Some("echo")), ("conformance", None)] {
            peer.give(&format!("{task_id}-{kind}"), kind, "", convention).await;
            let result = peer.outcome().await.1;
            assert!(result.ok, "{task_id} of {kind}: {}", result.error_message);
            if listed_at.is_some() {
                assert_eq!(node_tasks(&node).await[0]["history"][0]["parts"], json!([part]), "{task_id}");
            }
        }
    }
}

async fn node_tasks(node: &crate::support::server::Server) -> Value {
    let url = format!("{}/agents/echo", node.url());
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": { "historyLength": 5 } });
    let answer = reqwest::Client::new().post(url).header("A2A-Version", "1.0").json(&body).send().await.expect("an answer");
    answer.json::<Value>().await.expect("JSON")["result"]["tasks"].take()
}

#[tokio::test]
async fn the_same_task_again_is_the_same_task_and_another_under_its_id_is_refused() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    peer.give("same", "conformance", "complete once", Some(Convention::Text)).await;
    assert_eq!(text(&peer.outcome().await.1.output), "once");
    // On the same connection the end is told again, and nothing else.
    peer.give("same", "conformance", "complete once", Some(Convention::Text)).await;
    let (words, result) = peer.outcome().await;
    assert_eq!((words.len(), result.ok, text(&result.output)), (0, true, "once".to_owned()));
    // On another one it is told as if for the first time.
    let mut other = Peer::of(&node).await;
    other.give("same", "conformance", "complete once", Some(Convention::Text)).await;
    assert_eq!(text(&other.outcome().await.1.output), "once");
    let tasks = node.call("ListTasks", json!({})).await["result"]["tasks"].as_array().expect("a list").len();
    assert_eq!(tasks, 1, "it was done once");

    // Something else under that id is refused: as a result where that can be no other task's, and by closing where it could be.
    let mut stranger = Peer::of(&node).await;
    stranger.give("same", "conformance", "complete twice", Some(Convention::Text)).await;
    let refused = stranger.outcome().await.1;
    assert!(refused.error_message.starts_with("IDEMPOTENCY_CONFLICT: "), "{}", refused.error_message);
    peer.give("same", "conformance", "complete twice", Some(Convention::Text)).await;
    assert!(peer.is_closed().await);
}

#[tokio::test]
async fn a_task_outlives_its_connection_and_is_found_again_by_its_id() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    peer.give("long", "conformance", "stream 5 20", Some(Convention::Text)).await;
    peer.report().await;
    drop(peer);
    let mut again = Peer::of(&node).await;
    again.give("long", "conformance", "stream 5 20", Some(Convention::Text)).await;
    let (_, result) = again.outcome().await;
    assert_eq!(text(&result.output), "chunk-1 chunk-2 chunk-3 chunk-4 chunk-5 ");
    let tasks = node.call("ListTasks", json!({})).await["result"]["tasks"].as_array().expect("a list").len();
    assert_eq!(tasks, 1);
}

#[tokio::test]
async fn nobody_reports_on_a_task_but_whoever_was_given_it() {
    let node = node("");
    let event = |task_id: &'static str| {
        a2a::A2aMessage::Event(a2a::SwpEventMessage {
            task_id: task_id.into(),
            message: "done".into(),
            event_payload: Bytes::new(),
        })
    };
    let result = |task_id: &'static str| a2a::A2aMessage::Result(a2a::TaskResult::success(task_id.into(), "x".into()));
    // Of a task that is its own.
    for report in [event("mine"), result("mine")] {
        let mut peer = Peer::of(&node).await;
        peer.say(&task("mine", "conformance", "sleep 600000")).await;
        soon("it is worked on", async || {
            let listed = node.call("ListTasks", json!({ "status": "TASK_STATE_WORKING" })).await;
            listed["result"]["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()).then_some(())
        })
        .await;
        peer.say(&report).await;
        while let Some(received) = peer.hear().await {
            assert!(
                matches!(received.payload, FramePayload::A2a(a2a::A2aMessage::Event(_))),
                "no result was made up: {received:?}"
            );
        }
    }
    let listed = node.call("ListTasks", json!({ "status": "TASK_STATE_WORKING" })).await;
    assert_eq!(listed["result"]["tasks"].as_array().map(Vec::len), Some(1), "the task is not touched by it");
    // Of a task that nobody knows: that is said, and then the connection closes.
    for report in [event("unknown"), result("unknown")] {
        let mut peer = Peer::of(&node).await;
        peer.say(&report).await;
        let (_, told) = peer.outcome().await;
        assert!(told.error_message.starts_with("TASK_NOT_FOUND: unknown task reference"), "{}", told.error_message);
        assert!(peer.is_closed().await);
    }
}

#[tokio::test]
async fn cards_are_given_once_and_profiles_that_are_not_served_close_the_connection() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    let mut ask = async |agent: &str, etag: &str| {
        let get = agdisc::AgdiscMessage::Get(agdisc::GetCard { agent_id: agent.into(), if_none_match: etag.into() });
        let envelope = peer.envelope(Profile::Agdisc, get.msg_type(), get.to_payload());
        peer.put(&envelope).await;
        match peer.hear().await.expect("an answer").payload {
            FramePayload::Agdisc(message) => message,
            other => panic!("{other:?}"),
        }
    };
    let agdisc::AgdiscMessage::Doc(doc) = ask("", "").await else { panic!("no card") };
    let card: Value = serde_json::from_slice(&doc.card_payload).expect("JSON");
    let slim = card["supportedInterfaces"].as_array().expect("interfaces").last().expect("one").clone();
    assert_eq!((&slim["protocolBinding"], &slim["protocolVersion"]), (&json!(chancery_wire::swp::BINDING), &json!("1.0")));
    assert!(slim["url"].as_str().expect("a URL").ends_with("/conformance"), "{slim}");
    assert!(!card["signatures"].as_array().expect("signatures").is_empty());
    assert!(matches!(ask("", &doc.etag).await, agdisc::AgdiscMessage::NotModified(same) if same.etag == doc.etag));
    assert!(matches!(ask("", "another").await, agdisc::AgdiscMessage::Doc(_)));
    assert!(matches!(ask("echo", &doc.etag).await, agdisc::AgdiscMessage::Doc(echo) if echo.etag != doc.etag));
    assert!(matches!(ask("nobody", "").await, agdisc::AgdiscMessage::Failure(failure) if failure.code == "NOT_FOUND"));

    for profile in Profile::ALL {
        if matches!(profile, Profile::A2a | Profile::Agdisc | Profile::Obs) {
            continue;
        }
        let mut peer = Peer::of(&node).await;
        let envelope = peer.envelope(profile, 1, Bytes::from_static(b"{}"));
        peer.put(&envelope).await;
        assert!(peer.is_closed().await, "{profile:?}");
    }
    assert!(node.log().contains("UNKNOWN_PROFILE"), "{}", node.log());
}

#[tokio::test]
async fn the_trace_of_a_task_is_the_one_it_was_announced_with() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let set = obs::ObsMessage::Set(obs::TraceContext {
        traceparent: format!("00-{trace}-b7ad6b7169203331-01"),
        task_id: "traced".into(),
        ..obs::TraceContext::default()
    });
    let envelope = peer.envelope(Profile::Obs, set.msg_type(), set.to_payload());
    peer.put(&envelope).await;
    peer.give("traced", "conformance", "sleep 600000", Some(Convention::Text)).await;
    let ran = soon("the tree is there", async || {
        let ran = crate::operating::cli::Ran::of(node.home().command().args(["--json", "tree", trace]));
        (ran.code == Some(0)).then_some(ran)
    })
    .await;
    assert_eq!(ran.json()["trees"][0]["trace"], trace);
    assert_eq!(ran.json()["trees"][0]["tasks"][0]["agent"], "conformance");
}

#[tokio::test]
async fn a_hop_token_comes_with_a_task_and_has_to_hold() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    let message = task("t", "conformance", "x");
    let mut envelope = peer.envelope(Profile::A2a, message.msg_type(), message.to_payload());
    let given = Given { hop_token: Some("not a token".into()), convention: Some(Convention::Text), ..Given::default() };
    envelope.extensions = given.to_extensions();
    peer.put(&envelope).await;
    let (_, result) = peer.outcome().await;
    assert!(result.error_message.starts_with("LINEAGE_INVALID: authorization denied"), "{}", result.error_message);
}
