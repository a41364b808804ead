//! What the built-in agents do when a node runs them.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::Answer;
use chancery_protocol::{
    Binding, CallContext, Caller, Metadata, PartContent, Reply, Request, Role, SendConfiguration, SendMessage, Sent, TraceId,
    Version,
};
use serde_json::json;

use super::*;
use crate::tool_parts::ToolPart;
use crate::{Message, Node, Part, Task, TaskState};

async fn node(agent: BuiltIn) -> Node {
    Node::builder().shared_agent(agent.name(), agent.card(), agent.runner()).memory().build().await.unwrap()
}

fn context() -> CallContext {
    CallContext {
        version: Version::V1_0,
        wrapped: false,
        binding: Binding::JsonRpc,
        caller: Caller::new("default", "test"),
        standing: Arc::default(),
        agent: None,
        extensions: Vec::new(),
        idempotency_key: None,
        last_event_id: None,
        trace: TraceId(1),
        span: None,
        tracestate: None,
        hop_token: None,
        within: None,
        via: None,
        unlisted_at: None,
    }
}

async fn send(node: &Node, message: Message) -> Sent {
    let configuration = SendConfiguration::default();
    let send = SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration,
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    };
    match node.chancery().call(&context(), Request::SendMessage(send)).await.unwrap() {
        Answer::Reply(Reply::Sent(sent)) => sent,
        other => panic!("{other:?}"),
    }
}

async fn task(node: &Node, message: Message) -> Arc<Task> {
    match send(node, message).await {
        Sent::Task(shown) => shown.task,
        Sent::Message(message) => panic!("{message:?}"),
    }
}

fn said(text: &str) -> Message {
    Message::text(Role::User, "m", text)
}

fn status_text(task: &Task) -> Option<&str> {
    task.status.message.as_ref().and_then(|message| message.first_text())
}

#[tokio::test]
async fn echo_completes_with_one_text_artifact_in_two_entries() {
    let node = node(BuiltIn::Echo).await;
    let task = task(&node, said("hello")).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(task.artifacts.len(), 1);
    assert_eq!(task.artifacts[0].parts[0].as_text(), Some("hello"));
    let entries = node.chancery().operator_entries(task.id.as_str(), 0, 100).await.unwrap();
    assert_eq!(entries.len(), 3, "made, artifact, completed");
}

#[tokio::test]
async fn each_directive_leads_to_its_state_and_reason() {
    let node = node(BuiltIn::Conformance).await;
    for (text, state, reason) in [
        ("complete", TaskState::Completed, None),
        ("fail no luck", TaskState::Failed, Some("no luck")),
        ("reject not today", TaskState::Rejected, Some("not today")),
        ("ask which?", TaskState::InputRequired, Some("which?")),
        ("auth log in first", TaskState::AuthRequired, Some("log in first")),
        ("steps 2", TaskState::Completed, None),
        ("sleep 1", TaskState::Completed, None),
        ("stubborn 1", TaskState::Completed, None),
        ("panic ouch", TaskState::Failed, Some("the agent panicked: ouch")),
        ("error gave up", TaskState::Failed, Some("gave up")),
    ] {
        let task = task(&node, said(text)).await;
        assert_eq!((task.status.state, status_text(&task)), (state, reason), "{text}");
        assert!(task.artifacts.is_empty(), "{text}");
    }
}

#[tokio::test]
async fn a_stream_is_one_artifact_in_pieces() {
    let node = node(BuiltIn::Conformance).await;
    let task = task(&node, said("stream 3")).await;
    assert_eq!(task.artifacts.len(), 1);
    let texts: Vec<_> = task.artifacts[0].parts.iter().filter_map(Part::as_text).collect();
    assert_eq!(texts, ["chunk-1 ", "chunk-2 ", "chunk-3 "]);
}

#[tokio::test]
async fn artifacts_come_in_every_kind_of_part() {
    let node = node(BuiltIn::Conformance).await;
    let kind = |part: &Part| match part.content {
        PartContent::Text(_) => "text",
        PartContent::Raw(_) => "file",
        PartContent::Url(_) => "url",
        PartContent::Data(_) => "data",
    };
    for (name, kinds) in [
        ("text", &["text"][..]),
        ("file", &["file"]),
        ("url", &["url"]),
        ("data", &["data"]),
        ("many", &["text", "file", "url", "data", "text"]),
    ] {
        let task = task(&node, said(&format!("artifact {name}"))).await;
        let found: Vec<_> = task.artifacts.iter().flat_map(|artifact| &artifact.parts).map(kind).collect();
        assert_eq!(found, kinds, "{name}");
    }
}

#[tokio::test]
async fn a_tool_is_used_where_the_caller_can_see_it() {
    let node = node(BuiltIn::Conformance).await;
    let task = task(&node, said("tool abacus")).await;
    let tools: Vec<_> = task.history.iter().flat_map(|message| &message.parts).filter_map(ToolPart::of).collect();
    let [ToolPart::Use { id, name, .. }, ToolPart::Result { tool_use_id, is_error: false, .. }] = &tools[..] else {
        panic!("{tools:?}");
    };
    assert_eq!((name.as_str(), tool_use_id), ("abacus", id));
    assert_eq!(task.artifacts.len(), 1);
}

#[tokio::test]
async fn a_message_is_the_answer_until_there_is_a_task() {
    let node = node(BuiltIn::Conformance).await;
    let Sent::Message(reply) = send(&node, said("message good morning")).await else { panic!("a task") };
    assert_eq!((reply.first_text(), reply.role), (Some("good morning"), Role::Agent));

    let asked = task(&node, said("ask what?")).await;
    let answer = Message { task_id: Some(asked.id.clone()), ..said("message good evening") };
    let done = task(&node, answer).await;
    assert_eq!(
        (done.id.clone(), done.status.state, status_text(&done)),
        (asked.id.clone(), TaskState::Completed, Some("good evening"))
    );
}

#[tokio::test]
async fn metadata_directs_without_a_word() {
    let node = node(BuiltIn::Conformance).await;
    let serde_json::Value::Object(object) = json!({ "conformance": "reject by metadata" }) else { unreachable!() };
    let message = Message { metadata: Some(Metadata::from_object(object)), ..said("complete") };
    assert_eq!(task(&node, message).await.status.state, TaskState::Rejected);
}

#[tokio::test]
async fn a_sleeper_stops_when_cancelled_and_a_stubborn_one_is_stopped() {
    let mut config = crate::Config::default();
    config.limits.tasks.cancel_grace_ms = 1;
    let agent = BuiltIn::Conformance;
    let node = Node::builder().shared_agent("a", agent.card(), agent.runner()).config(config).build().await.unwrap();
    for text in ["sleep 600000", "stubborn 600000", "stream 5 600000"] {
        let configuration = SendConfiguration { return_immediately: true, ..SendConfiguration::default() };
        let message = Arc::new(said(text));
        let request = SendMessage {
            tenant: None,
            message,
            configuration,
            metadata: None,
            client_task_id: None,
            unknown: Default::default(),
        };
        let answer = node.chancery().call(&context(), Request::SendMessage(request)).await.unwrap();
        let Answer::Reply(Reply::Sent(Sent::Task(shown))) = answer else { panic!("{answer:?}") };
        let (cancelled, _) = node.chancery().operator_cancel(shown.task.id.as_str()).await.unwrap();
        assert_eq!(cancelled.task.status.state, TaskState::Canceled, "{text}");
    }
    node.shut_down(Duration::from_secs(60)).await.unwrap();
}

#[test]
fn a_built_in_agent_is_named_by_one_word_everywhere() {
    for agent in BuiltIn::ALL {
        assert_eq!(serde_json::to_value(agent).unwrap(), agent.name());
        let card = agent.card();
        assert_eq!(card.capabilities.streaming, Some(true));
        assert_eq!(card.capabilities.push_notifications, None, "the node says whether there are webhooks");
        assert_eq!(card.capabilities.extended_agent_card, None);
        assert!(!card.skills.is_empty());
    }
}
