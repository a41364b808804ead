//! Agents that fail in every way: each has its outcome, and every caller is told in its own shape.

use chancery_protocol::{Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, Task, Version};
use serde_json::{Value, json};

use super::in_front_of;
use super::scripted::{Asked, Script, Scripted};
use crate::scenarios::lines;
use crate::wire_client::{Combination, Conditions, WireClient};

/// An agent may be silent for a moment only, is looked for three times, and is asked however often it fails.
const FAST: &str = "[peers]\nread_ms = 400\nreconnects = 2\nreconnect_ms = 10\nreconnect_most_ms = 20\npoll_ms = 10\n\
    poll_most_ms = 20\nanswer_bytes = 65536\nevent_bytes = 65536\n\
    [health]\nfailures = 1000\nfailure_percent_of = 1000\n";

const SEND: &str = "SendStreamingMessage";

/// The name of a new task, or of the one that is asked about.
fn name(asked: &Asked) -> String {
    asked.task().unwrap_or_else(|| format!("task-{}", asked.before))
}

fn task(asked: &Asked, state: &str, artifacts: &[&str]) -> Value {
    let artifacts: Vec<Value> = (!artifacts.is_empty())
        .then(|| json!({ "artifactId": "a", "parts": artifacts.iter().map(|text| json!({ "text": text })).collect::<Vec<_>>() }))
        .into_iter()
        .collect();
    json!({ "id": name(asked), "contextId": "c", "status": { "state": format!("TASK_STATE_{state}") }, "artifacts": artifacts })
}

fn picture(asked: &Asked, state: &str, artifacts: &[&str]) -> Value {
    json!({ "task": task(asked, state, artifacts) })
}

fn status(asked: &Asked, state: &str, words: Option<&str>) -> Value {
    let mut status = json!({ "state": format!("TASK_STATE_{state}") });
    if let Some(words) = words {
        status["message"] = json!({ "messageId": words, "role": "ROLE_AGENT", "parts": [{ "text": words }] });
    }
    json!({ "statusUpdate": { "taskId": name(asked), "contextId": "c", "status": status } })
}

fn piece(asked: &Asked, text: &str, append: bool, last: bool) -> Value {
    let artifact = json!({ "artifactId": "a", "parts": [{ "text": text }] });
    json!({ "artifactUpdate":
        { "taskId": name(asked), "contextId": "c", "artifact": artifact, "append": append, "lastChunk": last } })
}

fn message(combination: Combination, own: &str) -> SendMessage {
    SendMessage {
        tenant: None,
        message: std::sync::Arc::new(Message::text(Role::User, "m", "do it")),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| own.into()),
    }
}

#[derive(Debug, PartialEq)]
struct Outcome {
    state: String,
    said: Option<String>,
    artifacts: Vec<String>,
}

impl Outcome {
    fn of(task: &Task) -> Self {
        Self {
            state: lines::state(task.status.state),
            said: task.status.message.as_ref().map(|message| lines::parts(&message.parts)),
            artifacts: lines::artifacts(task),
        }
    }

    fn failed(said: &str, artifacts: &[&str]) -> Self {
        Self { state: "failed".into(), said: Some(said.into()), artifacts: artifacts.iter().map(|&text| text.into()).collect() }
    }

    fn completed(artifacts: &[&str]) -> Self {
        Self { state: "completed".into(), said: None, artifacts: artifacts.iter().map(|&text| text.into()).collect() }
    }
}

/// Sends and watches over every front at once. Everybody gets this outcome, and the agent was asked once for each.
async fn everybody_gets(agent: &Scripted, expected: &Outcome) {
    let gateway = in_front_of(&agent.url(), FAST);
    let callers = Combination::ALL.map(|combination| {
        let client = WireClient::new(gateway.url(), combination);
        async move {
            let none = Conditions::default();
            let sent = client.call(&Request::SendMessage(message(combination, "sent")), &none).await;
            let Ok(Reply::Sent(Sent::Task(shown))) = sent else { panic!("{}: {sent:?}", combination.name()) };
            let request = Request::StreamMessage(message(combination, "streamed"));
            let mut events = client.stream(&request, &none).await.expect("a stream");
            let mut last = String::new();
            while let Some(seen) = events.next().await.expect("an event") {
                last = lines::event(&seen.event);
            }
            (combination, Outcome::of(&shown.task), last)
        }
    });
    let told = expected.said.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
    for (combination, outcome, last) in futures::future::join_all(callers).await {
        assert_eq!(outcome, *expected, "{}\n{}", combination.name(), gateway.log());
        assert_eq!(last, format!("status {}{told}", expected.state), "{}", combination.name());
    }
    let messages = agent.calls().iter().filter(|asked| asked.kind().starts_with("Send")).count();
    assert_eq!(messages, 2 * Combination::ALL.len(), "each message is put to the agent once");
}

/// What somebody who watches is shown.
async fn shown(agent: &Scripted) -> (Vec<String>, Outcome) {
    let gateway = in_front_of(&agent.url(), FAST);
    let client = WireClient::new(gateway.url(), Combination::ALL[0]);
    let request = Request::StreamMessage(message(Combination::ALL[0], ""));
    let mut events = client.stream(&request, &Conditions::default()).await.expect("a stream");
    let (mut lines, mut id) = (Vec::new(), None);
    while let Some(seen) = events.next().await.expect("an event") {
        lines.push(lines::event(&seen.event));
        id = seen.face.map(|face| face.task_id).or(id);
    }
    let get = chancery_protocol::GetTask { tenant: None, id: id.expect("a task"), history_length: None };
    match client.call(&Request::GetTask(get), &Conditions::default()).await {
        Ok(Reply::Task(shown)) => (lines, Outcome::of(&shown.task)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_in_the_middle_and_stays_away_fails_the_task() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => Script::events(asked, [&picture(asked, "WORKING", &[]), &piece(asked, "one", false, true)]),
        _ => Script::default(),
    })
    .await;
    everybody_gets(&agent, &Outcome::failed("the address could not be reached", &["one"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_never_answers_fails_the_task() {
    let agent = Scripted::agent(|_| Script::default().hang()).await;
    everybody_gets(&agent, &Outcome::failed("the agent did not answer in time", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_falls_silent_is_listened_to_anew() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => Script::events(asked, [&picture(asked, "WORKING", &[])]).hang(),
        _ => Script::events(asked, [&picture(asked, "COMPLETED", &["done"])]).end(),
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["done"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_answered_with_503_is_not_sent_again() {
    let agent = Scripted::agent(|_| Script::page(503, "text/plain", "later")).await;
    everybody_gets(&agent, &Outcome::failed("the agent answered with HTTP status 503", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_flaps_while_it_works_is_looked_for_until_it_is_back() {
    let agent = Scripted::agent(|asked| match (asked.kind().as_str(), asked.before) {
        (SEND, _) => Script::events(asked, [&picture(asked, "WORKING", &[])]),
        ("SubscribeToTask", 0) => Script::page(503, "text/plain", "later"),
        ("SubscribeToTask", 1) => Script::events(asked, [&picture(asked, "WORKING", &["one"])]),
        ("SubscribeToTask", 2) => Script::page(503, "text/plain", "later"),
        ("SubscribeToTask", _) => Script::events(asked, [&picture(asked, "COMPLETED", &["one"])]).end(),
        _ => Script::page(503, "text/plain", "later"),
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["one"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_answers_a_byte_at_a_time_runs_out_of_time() {
    let head = "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n".to_owned() + &" ".repeat(4000);
    let agent = Scripted::agent(move |_| Script::default().drip(head.clone())).await;
    everybody_gets(&agent, &Outcome::failed("the agent did not answer in time", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_another_type_is_none() {
    let agent = Scripted::agent(|_| Script::page(200, "text/html", "<p>welcome</p>")).await;
    everybody_gets(&agent, &Outcome::failed("the agent's answer was not understood", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_that_breaks_off_is_no_answer() {
    let agent = Scripted::agent(|_| Script::page(200, "application/json", r#"{"jsonrpc":"2.0","id":1,"result":{"ta"#)).await;
    everybody_gets(&agent, &Outcome::failed("the agent's answer was not understood", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_breaks_off_is_a_cut_and_the_task_is_looked_at() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => Script::events(asked, [&picture(asked, "WORKING", &[])]).chunk("data: {\"jsonrpc\":\"2.0\",\"res\n\n"),
        _ => Script::events(asked, [&picture(asked, "COMPLETED", &["whole"])]).end(),
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["whole"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_an_end_is_cut_off() {
    let head = "HTTP/1.1 200 X\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n";
    let agent = Scripted::agent(move |_| Script::default().write(head).forever(vec![b' '; 8192])).await;
    everybody_gets(&agent, &Outcome::failed("the agent's answer was not understood", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_without_an_end_is_cut_off_and_the_task_is_looked_at() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => {
            let stream = Script::events(asked, [&picture(asked, "WORKING", &[])]);
            stream.chunk("data: ").forever(format!("400\r\n{}\r\n", "x".repeat(1024)))
        }
        _ => Script::events(asked, [&picture(asked, "COMPLETED", &[])]).end(),
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_speaks_of_another_task_is_not_believed() {
    let agent = Scripted::agent(|asked| {
        let mut other = status(asked, "COMPLETED", Some("somebody else's"));
        other["statusUpdate"]["taskId"] = json!("another");
        Script::events(asked, [&picture(asked, "WORKING", &[]), &other]).end()
    })
    .await;
    everybody_gets(&agent, &Outcome::failed("the agent spoke of another task", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_comes_after_the_end() {
    let agent = Scripted::agent(|asked| {
        let late =
            [piece(asked, "late", false, true), status(asked, "FAILED", Some("after all")), picture(asked, "WORKING", &[])];
        let early = [picture(asked, "WORKING", &[]), piece(asked, "one", false, true), status(asked, "COMPLETED", None)];
        Script::events(asked, early.iter().chain(&late)).end()
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["one"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_twice_is_passed_on_once() {
    let agent = Scripted::agent(|asked| {
        let said = [
            picture(asked, "SUBMITTED", &[]),
            status(asked, "WORKING", Some("on it")),
            piece(asked, "one", false, true),
            status(asked, "COMPLETED", Some("done")),
        ];
        Script::events(asked, said.iter().flat_map(|event| [event, event])).end()
    })
    .await;
    let (lines, outcome) = shown(&agent).await;
    assert_eq!(lines, ["task submitted", "status working: on it", "artifact one (last)", "status completed: done"]);
    assert_eq!(outcome, Outcome { said: Some("done".into()), ..Outcome::completed(&["one"]) });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_cut_what_was_missed_is_passed_on_and_nothing_else() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => {
            let said = [picture(asked, "WORKING", &[]), piece(asked, "1", false, false), piece(asked, "2", true, false)];
            Script::events(asked, &said)
        }
        _ => {
            let said = [
                picture(asked, "WORKING", &["1", "2", "3", "4"]),
                piece(asked, "5", true, true),
                status(asked, "COMPLETED", None),
            ];
            Script::events(asked, &said).end()
        }
    })
    .await;
    let (lines, outcome) = shown(&agent).await;
    assert_eq!(
        lines,
        [
            "task submitted",
            "status working",
            "artifact 1",
            "artifact+ 2",
            "artifact+ 3|4",
            "artifact+ 5 (last)",
            "status completed"
        ]
    );
    assert_eq!(outcome, Outcome::completed(&["1|2|3|4|5"]));
}

/// As agents of 0.3 do it: the new stream begins with whatever comes next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_cut_a_stream_that_shows_no_picture_makes_us_look() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => {
            let said = [picture(asked, "WORKING", &[]), piece(asked, "1", false, false), piece(asked, "2", true, false)];
            Script::events(asked, &said)
        }
        "SubscribeToTask" => Script::events(asked, [&piece(asked, "5", true, true), &status(asked, "COMPLETED", None)]).end(),
        _ => Script::result(asked, &task(asked, "COMPLETED", &["1", "2", "3", "4", "5"])),
    })
    .await;
    let (lines, outcome) = shown(&agent).await;
    assert_eq!(
        lines,
        ["task submitted", "status working", "artifact 1", "artifact+ 2", "artifact+ 3|4|5 (last)", "status completed"]
    );
    assert_eq!(outcome, Outcome::completed(&["1|2|3|4|5"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_streams_is_asked_how_far_it_is() {
    let agent = Scripted::with_card(json!({}), |asked| match (asked.kind().as_str(), asked.before) {
        ("SendMessage", _) => Script::result(asked, &picture(asked, "SUBMITTED", &[])),
        ("GetTask", 0) => Script::result(asked, &task(asked, "WORKING", &["1"])),
        ("GetTask", 1) => Script::page(503, "text/plain", "later"),
        ("GetTask", 2) => Script::result(asked, &task(asked, "WORKING", &["1", "2"])),
        _ => Script::result(asked, &task(asked, "COMPLETED", &["1", "2"])),
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["1|2"])).await;
    let (lines, _) = shown(&agent).await;
    assert_eq!(lines, ["task submitted", "status working", "artifact 1", "artifact+ 2", "status completed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_no_longer_knows_the_task_fails_it() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => Script::events(asked, [&picture(asked, "WORKING", &[])]),
        _ => Script::error(asked, -32001, "never heard of it"),
    })
    .await;
    everybody_gets(&agent, &Outcome::failed("the agent no longer knows the task", &[])).await;
}
