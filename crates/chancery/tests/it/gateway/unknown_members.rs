//! What no version of the protocol has passes a gateway byte for byte between JSON faces: both ways, in one answer, in a
//! stream, and in the replay of one from the disk. gRPC has no place for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use chancery::{Finished, Message, Node, Part, RunError, TaskRunner, TaskState, TaskUpdateSink, Turn, async_trait, new_card};
use chancery_core::Passed;
use chancery_protocol::{
    Artifact, ArtifactChunk, Binding, Json, OpenObject, Request, Role, SendConfiguration, SendMessage, StatusChange,
    SubscribeToTask, TaskEvent, TaskStatus, Unknown, Version,
};
use serde_json::Value;

use super::one_way::{cards_of, path};
use super::{ANYWHERE_HERE, QUICK};
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, Conditions, RawCall, RawClient, WireClient};

const UP: [&str; 3] = ["params", "message", "part"];
const DOWN: [&str; 6] = ["artifact", "artifact part", "artifact update", "status", "words", "status update"];

/// Spellings that are gone once somebody has taken them for what they mean.
fn spelled(place: &str) -> String {
    format!(r#"{{"at":"{place}","n":[1.0e5, 0.10,12345678901234567890,-0],"t":"\u0041\/"}}"#)
}

fn unknown<T: OpenObject>(place: &str) -> Unknown<T> {
    let mut unknown = Unknown::none();
    assert!(unknown.insert(&format!("x {place}"), Json::parse(spelled(place)).expect("JSON")));
    unknown
}

/// As it stands on the wire, name and value.
fn written(place: &str) -> String {
    format!(r#""x {place}":{}"#, spelled(place))
}

/// Tells what it heard as text, and has something unknown in every place of its answer.
struct Parrot;

#[async_trait]
impl TaskRunner for Parrot {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let (message, part) = (&turn.message.unknown, &turn.message.parts[0].unknown);
        let heard = serde_json::to_string(&(&turn.unknown, message, part)).map_err(|fault| RunError::new(fault.to_string()))?;
        let parts = vec![Part::text(format!("heard {heard}")), Part { unknown: unknown("artifact part"), ..Part::text("more") }];
        let chunk = ArtifactChunk {
            artifact: Arc::new(Artifact { unknown: unknown("artifact"), ..Artifact::new("a", parts) }),
            append: false,
            last_chunk: true,
            metadata: None,
            unknown: unknown("artifact update"),
        };
        let Passed::Open(updates) = updates.pass(TaskEvent::Artifact(chunk)).await? else {
            return Err(RunError::new("an artifact ends nothing"));
        };
        let words = Message { unknown: unknown("words"), ..updates.text("done") };
        let status = TaskStatus {
            state: TaskState::Completed,
            message: Some(Arc::new(words)),
            timestamp: None,
            unknown: unknown("status"),
        };
        let change = StatusChange { status, metadata: None, unknown: unknown("status update") };
        match updates.pass(TaskEvent::Status(change)).await? {
            Passed::Ended(finished) => Ok(finished),
            _ => Err(RunError::new("it was the end")),
        }
    }
}

async fn parrot() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let node = Node::builder().agent("parrot", new_card("Parrot", "Says it again."), Parrot).memory();
    let node = node.public_url(url.as_str()).build().await.expect("a node");
    tokio::spawn(async move { axum::serve(listener, node.router()).await.expect("a server") });
    url
}

/// A gateway that keeps its tasks on disk.
fn gateway(home: &Home, url: &str) -> Server {
    Setup::in_home(home).config(&format!("{QUICK}{ANYWHERE_HERE}[agents.front]\nurl = '{url}'\n")).start()
}

fn sending(front: Combination, name: &str) -> SendMessage {
    let part = Part { unknown: unknown("part"), ..Part::text("hello") };
    let message = Message { unknown: unknown("message"), ..Message::of_parts(Role::User, name, vec![part]) };
    SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (front.version == Version::Original).then(|| name.into()),
        unknown: unknown("params"),
    }
}

/// What a caller got, as text: over gRPC the messages, which have no bytes to hold against others.
struct Got {
    one_answer: String,
    stream: String,
    replay: String,
}

async fn asked(front: Combination, gateway: &Server) -> Got {
    let (one, other) = (sending(front, "one"), sending(front, "other"));
    if front.binding == Binding::Grpc {
        let (client, none) = (WireClient::new(gateway.url(), front), Conditions::default());
        let one_answer = format!("{:?}", client.call(&Request::SendMessage(one), &none).await.expect("an answer"));
        let mut events = client.stream(&Request::StreamMessage(other), &none).await.expect("a stream");
        let mut stream = String::new();
        while let Some(seen) = events.next().await.expect("an event") {
            stream += &format!("{:?}\n", seen.event);
        }
        return Got { one_answer, stream, replay: String::new() };
    }
    let client = RawClient::new(gateway.url());
    let text = async |request: &Request, after: Option<&str>| {
        let call = RawCall::of(front, request).expect("every version has it");
        let call = after.into_iter().fold(call, |call, id| call.with("Last-Event-ID", id));
        client.try_ask(&call).await.expect("an answer").text().await.expect("to its end")
    };
    let one_answer = text(&Request::SendMessage(one), None).await;
    let stream = text(&Request::StreamMessage(other), None).await;
    let lines = |name: &'static str| stream.lines().find_map(move |line| line.strip_prefix(name)).expect("one");
    let first: Value = serde_json::from_str(lines("data: ")).expect("JSON");
    let id = ["/result/task/id", "/task/id", "/result/id"].iter().find_map(|at| first.pointer(at)?.as_str()).expect("an id");
    let subscribe = Request::SubscribeToTask(SubscribeToTask { tenant: None, id: id.into() });
    let replay = text(&subscribe, Some(lines("id: "))).await;
    Got { one_answer, stream, replay }
}

/// The places of which something is in the text, byte for byte.
fn kept<'a>(places: &[&'a str], text: &str) -> BTreeSet<&'a str> {
    places.iter().copied().filter(|place| text.contains(&written(place))).collect()
}

/// The same for what the agent heard, which it says in a text.
fn heard(text: &str) -> BTreeSet<&'static str> {
    let said = UP.into_iter().filter(|place| {
        let once = serde_json::to_string(&written(place)).expect("JSON");
        let debug = format!("{:?}", written(place));
        [once, debug].iter().any(|quoted| text.contains(quoted.trim_matches('"')))
    });
    said.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_members_pass_between_all_json_faces_and_no_others() {
    let back_url = parrot().await;
    let cards = cards_of(&back_url).await;
    let mut table = format!("{:<20}", "front \\ back");
    let mut rows = Combination::ALL.map(|front| format!("{:<20}", front.name()));
    for back in Combination::ALL {
        table += &format!("{:<16}", back.name());
        let home = Home::new();
        let gateway = gateway(&home, &format!("{}{}", cards.url(), path(back)));
        for (front, row) in Combination::ALL.into_iter().zip(&mut rows) {
            let got = asked(front, &gateway).await;
            let told = format!("{} to {}: {}\n{}\n{}", front.name(), back.name(), got.one_answer, got.stream, got.replay);
            let both_json = front.binding != Binding::Grpc && back.binding != Binding::Grpc;
            let all =
                |places: &[&'static str]| -> BTreeSet<&'static str> { places.iter().copied().filter(|_| both_json).collect() };
            assert!(got.one_answer.contains("heard ") && got.stream.contains("heard "), "{told}");
            assert_eq!(heard(&got.one_answer), all(&UP), "{told}");
            assert_eq!(heard(&got.stream), all(&UP), "{told}");
            // A task is not made of updates: what came beside its status is the task's own from then on, and what came beside
            // a piece of an artifact is told in streams alone.
            let of_task: Vec<_> = DOWN.into_iter().filter(|place| *place != "artifact update").collect();
            assert_eq!(kept(&DOWN, &got.one_answer), all(&of_task), "{told}");
            assert_eq!(kept(&DOWN, &got.stream), all(&DOWN), "{told}");
            if front.binding != Binding::Grpc {
                assert_eq!(kept(&DOWN, &got.replay), all(&DOWN), "{told}");
            }
            *row += &format!("{:<16}", if both_json { "all 9 places" } else { "none" });
        }
    }
    println!("{table}\n{}", rows.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_on_the_task_after_a_restart_too() {
    let front = Combination::ALL[0];
    let back_url = parrot().await;
    let home = Home::new();
    let before = gateway(&home, &back_url);
    let got = asked(front, &before).await;
    let answer: Value = serde_json::from_str(&got.one_answer).expect("JSON");
    let id = answer["result"]["task"]["id"].as_str().expect("an id").to_owned();
    before.terminate();
    let after = gateway(&home, &back_url);
    let get = Request::GetTask(chancery_protocol::GetTask { tenant: None, id: id.into(), history_length: None });
    let call = RawCall::of(front, &get).expect("1.0 has it");
    let again = RawClient::new(after.url()).ask(&call).await.text();
    for place in ["artifact", "artifact part", "status", "words", "status update", "message", "part"] {
        assert!(again.contains(&written(place)), "{place}: {again}");
    }
    let (task, now) = (answer["result"]["task"].to_string(), serde_json::from_str::<Value>(&again).expect("JSON"));
    assert_eq!(now["result"].to_string(), task, "the same as it was");
}

/// A key in the query is for the gateway; a member of another version's has no business in this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_an_unknown_member_of_the_call_does_not_become_one() {
    let back_url = parrot().await;
    let home = Home::new();
    let gateway = gateway(&home, &back_url);
    let body = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]},"skill":"root","tracing":true}"#;
    let request = reqwest::Client::new().post(format!("{}/message:send?api_key=secret&debug=1", gateway.url()));
    let request = request.header("A2A-Version", "1.0").header("Content-Type", "application/json").body(body);
    let answer: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    let said = answer["task"]["artifacts"][0]["parts"][0]["text"].as_str();
    assert_eq!(said, Some(r#"heard [{"tracing":true},{},{}]"#), "{answer}");
}
