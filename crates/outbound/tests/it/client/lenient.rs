//! Agents that deviate from the text of their version: what can be read is, and what cannot is skipped and counted.

use std::sync::Arc;

use chancery_outbound::remote::AgentNotes;
use chancery_outbound::{AgentClient, ClientError, ClientLimits, EventStream};
use chancery_protocol::{Binding, ErrorKind, Operation, Reply, Sent, Task, TaskEvent, TaskState, Version};
use chancery_wire::tolerant::Leniency;

use super::agent::{client, conditions};
use super::raw::{EVENTS, RawAgent, Then, http, json};
use super::samples::request;

const RPC: (Version, Binding) = (Version::V1_0, Binding::JsonRpc);

/// A client and what it notes.
fn noted(agent: &RawAgent, speaks: (Version, Binding), strict: bool) -> (AgentClient, Arc<AgentNotes>) {
    let notes = Arc::new(AgentNotes::default());
    let client = client(&agent.url(), speaks, ClientLimits::default()).reading_by(Arc::clone(&notes), strict);
    (client, notes)
}

fn counted(notes: &AgentNotes, leniency: Leniency) -> u64 {
    notes.facts().leniencies.get(&leniency).copied().unwrap_or_default()
}

fn enveloped(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"1","result":{result}}}"#)
}

fn events(payloads: &[&str]) -> String {
    let frames: String = payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect();
    format!("{EVENTS}{frames}")
}

const TASK: &str = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;
const CHUNK: &str =
    r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"alpha"}]}}}"#;
const DONE: &str = r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;

async fn heard(stream: &mut EventStream) -> Vec<TaskEvent> {
    let mut all = Vec::new();
    while let Some(heard) = stream.next().await.unwrap() {
        all.push(heard.event);
    }
    all
}

fn sent_task(reply: Reply) -> Arc<Task> {
    match reply {
        Reply::Sent(Sent::Task(shown)) | Reply::Task(shown) => shown.task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn law_1_1_4_calls_say_what_they_accept_and_in_which_version() {
    let agent = RawAgent::saying(json(&enveloped(TASK)), Then::Close).await;
    let client = client(&agent.url(), RPC, ClientLimits::default());
    client.call(&request(Version::V1_0, Operation::SendMessage), &conditions()).await.unwrap();
    client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
    let heads = agent.heads();
    assert!(heads[0].contains("accept: application/json\r\n"), "{}", heads[0]);
    assert!(heads[1].contains("accept: text/event-stream\r\n"), "{}", heads[1]);
    assert!(heads.iter().all(|head| head.contains("a2a-version: 1.0\r\n")));
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_skipped_and_the_stream_goes_on() {
    let odd = [enveloped(r#"{"wat":"secret"}"#), enveloped(r#"{"a":1,"a":2}"#), "{".to_owned(), "7".to_owned()];
    let good = [TASK, CHUNK, DONE].map(enveloped);
    let payloads = [&good[0], &odd[0], &odd[1], &good[1], &odd[2], &odd[3], &good[2]].map(String::as_str);
    let agent = RawAgent::saying(events(&payloads), Then::Close).await;
    let (client, notes) = noted(&agent, RPC, false);
    let mut stream = client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
    assert_eq!(heard(&mut stream).await.len(), 3);
    let first = stream.unreadable().unwrap();
    assert_eq!((first.number, stream.skipped()), (2, 4));
    assert_eq!(first.to_string(), "event 2: neither a task nor a message nor an update; its members are wat");
    assert_eq!(first.fault.shape, r#"{"wat":"6"}"#);
    assert_eq!(counted(&notes, Leniency::SkippedEvent), 4);

    let (strict, notes) = noted(&agent, RPC, true);
    let mut stream = strict.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    let fault = stream.next().await.unwrap_err();
    assert!(matches!(fault, ClientError::NotUnderstood(_)), "{fault:?}");
    assert!(notes.facts().leniencies.is_empty(), "what is rejected is not forgiven");
}

#[tokio::test]
async fn law_1_2_6_events_are_read_bare_in_params_and_beside_a_null_error() {
    let notified = format!(r#"{{"jsonrpc":"2.0","method":"update","params":{CHUNK}}}"#);
    let null_error = format!(r#"{{"jsonrpc":"2.0","id":1,"error":null,"result":{DONE}}}"#);
    let agent = RawAgent::saying(events(&[TASK, &notified, "{}", "[DONE]", &null_error]), Then::Close).await;
    let (client, notes) = noted(&agent, RPC, false);
    let mut stream = client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
    assert_eq!(heard(&mut stream).await.len(), 3);
    assert_eq!(stream.skipped(), 0);
    assert_eq!((counted(&notes, Leniency::NoEnvelope), counted(&notes, Leniency::NullError)), (2, 1));
}

#[tokio::test]
async fn law_1_2_6_a_cancel_without_a_task_in_its_answer_is_a_success_and_the_task_is_fetched() {
    let task = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_CANCELED"}}"#;
    for answer in ["null", "{}", "true"] {
        let answers = vec![(json(&enveloped(answer)).into(), Then::Close), (json(&enveloped(task)).into(), Then::Close)];
        let agent = RawAgent::saying_in_turn(answers).await;
        let (client, notes) = noted(&agent, RPC, false);
        let reply = client.call(&request(Version::V1_0, Operation::CancelTask), &conditions()).await.unwrap();
        assert_eq!(sent_task(reply).status.state, TaskState::Canceled, "{answer}");
        assert_eq!((agent.requests(), counted(&notes, Leniency::NoTaskInAnswer)), (2, 1));
    }
}

#[tokio::test]
async fn law_1_2_7_json_where_a_stream_was_asked_for_is_a_stream_of_one_event() {
    let body = enveloped(r#"{"kind":"task","id":"t","status":{"state":"completed"}}"#);
    let typed = |kind: &str| http("200 OK", &format!("content-type: {kind}\r\n"), &body);
    for kind in ["application/json", "text/plain", "text/event-stream", ""] {
        let agent = RawAgent::saying(typed(kind), Then::Close).await;
        let (client, notes) = noted(&agent, RPC, false);
        let mut stream = client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
        let all = heard(&mut stream).await;
        assert!(matches!(&all[..], [TaskEvent::Created(task)] if task.status.state == TaskState::Completed), "{kind}: {all:?}");
        assert_eq!(counted(&notes, Leniency::JsonForStream), 1, "{kind}");
        assert_eq!(counted(&notes, Leniency::WrongContentType), u64::from(kind.starts_with("text")), "{kind}");
    }
}

#[tokio::test]
async fn law_1_2_7_an_agent_that_does_not_stream_says_so_and_is_told_from_others() {
    for (code, text, says_so) in [
        (-32004, "Streaming is not supported by the agent", true),
        (-32601, "Method not found", true),
        (-32603, "Streaming is not supported", true),
        (-32603, "model down", false),
        (-32602, "bad parts", false),
    ] {
        let error = format!(r#"{{"jsonrpc":"2.0","id":"1","error":{{"code":{code},"message":"{text}"}}}}"#);
        for status in ["200 OK", "400 Bad Request"] {
            let agent = RawAgent::saying(http(status, "content-type: application/json\r\n", &error), Then::Close).await;
            let client = client(&agent.url(), RPC, ClientLimits::default());
            let fault = client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap_err();
            assert_eq!(fault.is_no_streaming(), says_so, "{code} {text}: {fault:?}");
            assert_eq!(fault.public().message, text);
        }
    }
}

#[tokio::test]
async fn law_1_2_7_a_stream_where_json_was_asked_for_is_read_to_its_end() {
    let wat = enveloped(r#"{"wat":1}"#);
    let good = [TASK, CHUNK, DONE].map(enveloped);
    let stream = events(&[&good[0], &wat, &good[1], &good[2]]);
    let mislabelled = stream.replace("text/event-stream", "application/json");
    for answer in [&stream, &mislabelled, &stream.trim_end().to_owned()] {
        let agent = RawAgent::saying(answer.as_str(), Then::Close).await;
        let (client, notes) = noted(&agent, RPC, false);
        let task = sent_task(client.call(&request(Version::V1_0, Operation::SendMessage), &conditions()).await.unwrap());
        assert_eq!((task.status.state, task.artifacts[0].parts[0].as_text()), (TaskState::Completed, Some("alpha")));
        assert_eq!((counted(&notes, Leniency::StreamForJson), counted(&notes, Leniency::SkippedEvent)), (1, 1));
        let (strict, _) = noted(&agent, RPC, true);
        strict.call(&request(Version::V1_0, Operation::SendMessage), &conditions()).await.unwrap_err();
    }
    let agent = RawAgent::saying(events(&[&wat]), Then::Close).await;
    let (client, _) = noted(&agent, RPC, false);
    let fault = client.call(&request(Version::V1_0, Operation::SendMessage), &conditions()).await.unwrap_err();
    assert!(fault.public().message.contains("not A2A 1.0: event 1: neither a task"), "{fault}");
    let failing = r#"{"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"model down"}}"#;
    let agent = RawAgent::saying(events(&[&good[0], failing]), Then::Close).await;
    let (client, _) = noted(&agent, RPC, false);
    let fault = client.call(&request(Version::V1_0, Operation::SendMessage), &conditions()).await.unwrap_err();
    assert_eq!(fault.public().message, "model down");
}

#[tokio::test]
async fn law_1_2_5_the_last_event_counts_without_the_blank_line_after_it() {
    let good = [TASK, DONE].map(enveloped);
    let whole = events(&[&good[0], &good[1]]);
    for answer in [whole.trim_end().to_owned(), whole.trim_end().to_owned() + "\n"] {
        let agent = RawAgent::saying(answer, Then::Close).await;
        let (client, notes) = noted(&agent, RPC, false);
        let mut stream = client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
        assert_eq!(heard(&mut stream).await.len(), 2);
        assert_eq!(counted(&notes, Leniency::UnfinishedStream), 1);
    }
    let agent = RawAgent::saying(whole.trim_end().trim_end_matches('}'), Then::Close).await;
    let (client, _) = noted(&agent, RPC, false);
    let mut stream = client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    assert!(stream.next().await.unwrap_err().is_cut(), "half an event is a cut");
}

#[tokio::test]
async fn law_1_2_5_an_event_named_error_holds_an_error() {
    for (data, message) in [
        (r#"{"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"model down"}}"#, "model down"),
        (r#"{"code":-32603,"message":"model down"}"#, "model down"),
        ("model down", "model down"),
    ] {
        let agent = RawAgent::saying(format!("{EVENTS}event: error\ndata: {data}\n\n"), Then::Close).await;
        let (client, _) = noted(&agent, RPC, false);
        let mut stream = client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
        let fault = stream.next().await.unwrap_err();
        assert!(matches!(&fault, ClientError::Refused(error) if error.message == message), "{data}: {fault:?}");
    }
}

#[tokio::test]
async fn law_1_2_8_an_error_names_its_status_and_its_words() {
    let rpc_error = r#"{"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"Task not found: t"}}"#;
    let typed = "content-type: application/json\r\n";
    for (answer, operation, kind, message) in [
        (
            http("500 X", "content-type: text/plain\r\n", "Internal Server Error"),
            Operation::SendMessage,
            ErrorKind::Internal,
            "HTTP 500: Internal Server Error",
        ),
        (
            http("400 X", typed, r#"{"error":"Accept header must include application/json"}"#),
            Operation::SendMessage,
            ErrorKind::InvalidRequest,
            "HTTP 400: Accept header must include application/json",
        ),
        (http("404 X", "", "nothing here"), Operation::GetTask, ErrorKind::TaskNotFound, "HTTP 404: nothing here"),
        (http("404 X", "", "nothing here"), Operation::SendMessage, ErrorKind::MethodNotFound, "HTTP 404: nothing here"),
        (http("200 OK", typed, rpc_error), Operation::GetTask, ErrorKind::TaskNotFound, "Task not found: t"),
        (http("400 X", typed, rpc_error), Operation::CancelTask, ErrorKind::TaskNotFound, "Task not found: t"),
        (http("200 OK", typed, rpc_error), Operation::SendMessage, ErrorKind::Internal, "Task not found: t"),
    ] {
        let agent = RawAgent::saying(answer, Then::Close).await;
        let client = client(&agent.url(), RPC, ClientLimits::default());
        let fault = client.call(&request(Version::V1_0, operation), &conditions()).await.unwrap_err();
        let error = fault.public();
        assert_eq!((error.kind, &*error.message), (kind, message), "{operation:?}");
    }
}

#[tokio::test]
async fn a_deviating_answer_is_read_and_counted_and_rejected_where_strictness_is_asked_for() {
    let body = json(
        r#"{"jsonrpc":"2.0","id":7,"result":{"task":{"id":"t","status":{"state":"submitted","timestamp":"2026-11-16T15:34:05"}}}}"#,
    );
    for version in [Version::V1_0, Version::V0_3] {
        let agent = RawAgent::saying(body.as_str(), Then::Close).await;
        let (client, notes) = noted(&agent, (version, Binding::JsonRpc), false);
        let task = sent_task(client.call(&request(version, Operation::SendMessage), &conditions()).await.unwrap());
        assert_eq!((task.id.as_str(), task.status.state), ("t", TaskState::Submitted));
        let seen: Vec<Leniency> = notes.facts().leniencies.into_keys().collect();
        for leniency in [Leniency::TimeWithoutZone, Leniency::MissingId, Leniency::OtherCallId] {
            assert!(seen.contains(&leniency), "{version}: {seen:?}");
        }
        let (strict, notes) = noted(&agent, (version, Binding::JsonRpc), true);
        let fault = strict.call(&request(version, Operation::SendMessage), &conditions()).await.unwrap_err();
        assert!(matches!(fault, ClientError::NotUnderstood(_)) && notes.facts().leniencies.is_empty(), "{fault:?}");
    }
}
