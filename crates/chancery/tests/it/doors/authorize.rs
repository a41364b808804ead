//! An agent that asks for authorisation and goes on by itself: streams stay open over every binding and version, for agents inside
//! the node and behind the gateway, and a message that the caller sends meanwhile reaches the agent.

use std::sync::Arc;

use chancery_protocol::{
    Binding, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, TaskEvent, TaskId, TaskState, Version,
};
use serde_json::json;
use tokio::time::timeout;

use crate::gateway::one_way::{cards_of, path};
use crate::support::patience::BOUND;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, Conditions, EventStream, Seen, WireClient};

const LOCAL: &str = "[outbound]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n";
const SLIM: &str = "[swp]\nlisten = '127.0.0.1:0'\n";
/// It ends only when it is cancelled, or when a message comes.
const FOREVER: &str = "authorize 3600000";

fn every_way() -> impl Iterator<Item = Combination> {
    Combination::ALL.into_iter().chain([Combination::SWP])
}

fn node() -> Server {
    Setup::conformance().config(SLIM).start()
}

fn front(url: &str) -> Server {
    let home = Home::new();
    let data = home.data();
    let config = format!("{LOCAL}[agents.front]\nurl = '{url}'\n{SLIM}");
    Setup::in_home(&home).args(["--memory", "--data"]).args([data]).config(&config).start()
}

fn message(combination: Combination, text: &str, task: Option<&TaskId>) -> SendMessage {
    let message = Message { task_id: task.cloned(), ..Message::text(Role::User, "m", text) };
    SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| format!("own {text}").as_str().into()),
        unknown: Default::default(),
    }
}

async fn stream(server: &Server, combination: Combination, text: &str) -> EventStream {
    let client = WireClient::new(server.url(), combination);
    let request = Request::StreamMessage(message(combination, text, None));
    client.stream(&request, &Conditions::default()).await.unwrap_or_else(|why| panic!("{}: {why:?}", combination.name()))
}

async fn next(stream: &mut EventStream) -> Option<Seen> {
    let next = timeout(BOUND, stream.next()).await.expect("the stream does not stand still");
    next.expect("the stream is whole")
}

/// The statuses of a stream in order, and what each says of the end, until one has this state or the stream is over.
async fn statuses(stream: &mut EventStream, wanted: Option<TaskState>) -> (Vec<(TaskState, Option<bool>)>, Option<TaskId>) {
    let (mut seen, mut task) = (Vec::new(), None);
    while let Some(Seen { event, is_final, face, .. }) = next(stream).await {
        task = face.map(|face| face.task_id).or(task);
        let TaskEvent::Status(change) = event else { continue };
        seen.push((change.status.state, is_final));
        if Some(change.status.state) == wanted {
            break;
        }
    }
    (seen, task)
}

/// The original has no word of its own for it.
fn asks(combination: Combination) -> TaskState {
    if combination.version == Version::Original { TaskState::InputRequired } else { TaskState::AuthRequired }
}

/// A stream whose agent asks, goes on and completes.
async fn stays_open(server: &Server, combination: Combination, what: &str) {
    let mut stream = stream(server, combination, "authorize 300").await;
    let (seen, _) = statuses(&mut stream, None).await;
    let said = |is_final: bool| (combination.version != Version::V1_0).then_some(is_final);
    let at = seen.iter().position(|status| *status == (asks(combination), said(false)));
    let at = at.unwrap_or_else(|| panic!("{what} {}: {seen:?}\n{}", combination.name(), server.log()));
    assert_eq!(seen.last(), Some(&(TaskState::Completed, said(true))), "{what} {}: {seen:?}", combination.name());
    assert_eq!(at + 2, seen.len(), "{what} {}: nothing is said twice: {seen:?}", combination.name());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_every_binding_and_version_stays_open_while_the_agent_goes_on_after_auth_required() {
    let server = node();
    for combination in every_way() {
        stays_open(&server, combination, "inside").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stays_open_behind_the_gateway_over_every_front() {
    let back = node();
    let gateway = front(back.url());
    for combination in every_way() {
        stays_open(&gateway, combination, "front").await;
    }
}

/// The original says input-required there, which ends a turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stays_open_behind_the_gateway_over_every_back_that_has_a_word_for_it() {
    let back = node();
    let cards = cards_of(back.url()).await;
    for combination in Combination::ALL.into_iter().filter(|one| one.version != Version::Original) {
        let gateway = front(&format!("{}{}", cards.url(), path(combination)));
        stays_open(&gateway, Combination::ALL[0], &format!("back {}", combination.name())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_else_sees_auth_required_meanwhile_and_a_cancel_reaches_the_open_stream() {
    let server = node();
    for combination in every_way() {
        let mut stream = stream(&server, combination, FOREVER).await;
        let (_, task) = statuses(&mut stream, Some(asks(combination))).await;
        let id = match combination.version {
            Version::Original => newest(&server).await,
            _ => task.expect("the stream names its task").to_string(),
        };
        let task = server.call("GetTask", json!({ "id": id })).await;
        assert_eq!(task["result"]["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{task}");
        server.call("CancelTask", json!({ "id": id })).await;
        let (rest, _) = statuses(&mut stream, None).await;
        let ended: Vec<_> = rest.iter().map(|(state, _)| *state).collect();
        assert_eq!(ended, [TaskState::Canceled], "{}: the stream was open until then", combination.name());
    }
    let blocking = server.send(FOREVER).await;
    assert_eq!(blocking["task"]["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "a blocking caller does not wait: {blocking}");
}

/// The id here of the task that was made last.
async fn newest(server: &Server) -> String {
    let listed = server.call("ListTasks", json!({ "pageSize": 1, "status": "TASK_STATE_AUTH_REQUIRED" })).await;
    listed["result"]["tasks"][0]["id"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_where_the_agent_ended_its_turn_and_older_versions_say_final_there_once() {
    let back = node();
    let gateway = front(back.url());
    for combination in every_way().filter(|one| one.binding != Binding::Swp) {
        let said = |is_final: bool| (combination.version != Version::V1_0).then_some(is_final);
        let mut inside = stream(&back, combination, "auth please").await;
        let (seen, _) = statuses(&mut inside, None).await;
        assert_eq!(seen.last(), Some(&(asks(combination), said(true))), "{}", combination.name());
        let finals = seen.iter().filter(|(_, is_final)| *is_final == Some(true)).count();
        assert_eq!(finals, usize::from(combination.version != Version::V1_0), "{}: {seen:?}", combination.name());
        // The gateway learns that the turn is over when the agent closes its stream.
        let mut through = stream(&gateway, combination, "auth please").await;
        let (seen, _) = statuses(&mut through, None).await;
        assert_eq!(seen.last(), Some(&(asks(combination), said(true))), "gateway {}: {seen:?}", combination.name());
    }
}

/// The agent waits for that very message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_the_caller_sends_meanwhile_reaches_the_agent_inside_and_behind_the_gateway() {
    let back = node();
    let gateway = front(back.url());
    let newer = Combination::ALL.into_iter().filter(|one| one.version != Version::Original);
    for (server, combination) in newer.flat_map(|combination| [(&back, combination), (&gateway, combination)]) {
        let mut open = stream(server, combination, FOREVER).await;
        let (_, task) = statuses(&mut open, Some(TaskState::AuthRequired)).await;
        let task = task.expect("the stream names its task");
        let client = WireClient::new(server.url(), combination);
        let request = Request::SendMessage(message(combination, "complete done", Some(&task)));
        let answer = timeout(BOUND, client.call(&request, &Conditions::default())).await.expect("the message has its turn");
        let Ok(Reply::Sent(Sent::Task(shown))) = answer else { panic!("{}: {answer:?}", combination.name()) };
        assert_eq!(shown.task.status.state, TaskState::Completed, "{}", combination.name());
        let (rest, _) = statuses(&mut open, None).await;
        assert_eq!(rest.last().map(|(state, _)| *state), Some(TaskState::Completed), "{}: {rest:?}", combination.name());
    }
}
