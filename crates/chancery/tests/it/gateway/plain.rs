//! Agents that answer at once are asked for one answer where nobody needs more, and for a stream wherever somebody might.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{CancelTask, ListTasks, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, TaskId};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::in_front_of;
use super::scripted::{Asked, Script, Scripted};
use crate::patience::soon;
use crate::scenarios::lines;
use crate::server::Server;
use crate::wire_client::{Combination, Conditions, Refusal, WireClient};

const AT_ONCE: &str = "SendMessage";
const STREAM: &str = "SendStreamingMessage";

/// Three turns make an agent quick that took less than no test ever does.
fn gateway(agent: &Scripted, more: &str) -> Server {
    gateway_within(60_000, agent, more)
}

fn gateway_within(within_ms: u64, agent: &Scripted, more: &str) -> Server {
    let config = format!(
        "[peers]\nplain_after = 3\nplain_within_ms = {within_ms}\nreconnect_ms = 10\nreconnect_most_ms = 20\n[limits]\ncancel_grace_ms = 20000\n{more}"
    );
    in_front_of(&agent.url(), &config)
}

fn task(asked: &Asked, state: &str) -> Value {
    let id = asked.task().unwrap_or_else(|| format!("{}-{}", asked.kind(), asked.before));
    let artifacts = json!([{ "artifactId": "a", "parts": [{ "text": "done" }] }]);
    json!({ "id": id, "contextId": "c", "status": { "state": format!("TASK_STATE_{state}") }, "artifacts": artifacts })
}

/// Done at once, whichever way it is asked.
fn done(asked: &Asked) -> Script {
    match asked.kind().as_str() {
        AT_ONCE => Script::result(asked, &json!({ "task": task(asked, "COMPLETED") })),
        STREAM => Script::events(asked, [&json!({ "task": task(asked, "COMPLETED") })]).end(),
        _ => Script::result(asked, &task(asked, "COMPLETED")),
    }
}

fn message(configuration: SendConfiguration) -> SendMessage {
    SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "m", "do it")),
        configuration,
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    }
}

fn client(gateway: &Server) -> WireClient {
    WireClient::new(gateway.url(), Combination::ALL[0])
}

/// Sends and waits for the end. Answers how the task ended.
async fn send(client: &WireClient) -> String {
    let sent = client.call(&Request::SendMessage(message(SendConfiguration::default())), &Conditions::default()).await;
    let Ok(Reply::Sent(Sent::Task(shown))) = sent else { panic!("{sent:?}") };
    format!("{} {}", lines::state(shown.task.status.state), lines::artifacts(&shown.task).join(","))
}

async fn sends(client: &WireClient, count: usize) {
    for _ in 0..count {
        assert_eq!(send(client).await, "completed done");
    }
}

/// Sends until the agent was asked for one answer so often. That the last turn was quick is noted a moment after its caller
/// has heard of its end, and on a busy machine some are not.
async fn until_asked_at_once(times: usize, client: &WireClient, agent: &Scripted) {
    soon("it is quick", async || {
        sends(client, 1).await;
        (agent.count(AT_ONCE) == times).then_some(())
    })
    .await;
}

async fn watch(client: &WireClient) {
    let request = Request::StreamMessage(message(SendConfiguration::default()));
    let mut events = client.stream(&request, &Conditions::default()).await.expect("a stream");
    while events.next().await.expect("an event").is_some() {}
}

/// How often the agent was asked either way.
fn asked(agent: &Scripted) -> (usize, usize) {
    (agent.count(STREAM), agent.count(AT_ONCE))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_was_quick_often_enough_is_asked_for_one_answer_where_that_will_do() {
    let agent = Scripted::agent(done).await;
    let gateway = gateway(&agent, "");
    let client = client(&gateway);
    until_asked_at_once(1, &client, &agent).await;
    let (streams, _) = asked(&agent);
    assert!(streams >= 3, "{streams}");
    sends(&client, 2).await;
    assert_eq!(asked(&agent), (streams, 3));
    watch(&client).await;
    let immediately = SendConfiguration { return_immediately: true, ..SendConfiguration::default() };
    client.call(&Request::SendMessage(message(immediately)), &Conditions::default()).await.expect("taken");
    soon("both were asked for as streams", async || (asked(&agent) == (streams + 2, 3)).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_may_have_to_be_stopped_is_always_listened_to() {
    for bound in
        ["[policy.default]\nmax_duration_ms = 60000\n", "[policy.default]\nmax_tokens = 5\n", "[budget.tree]\nmax_usd = 1\n"]
    {
        let agent = Scripted::agent(done).await;
        let gateway = gateway(&agent, bound);
        sends(&client(&gateway), 5).await;
        assert_eq!(asked(&agent), (5, 0), "{bound}");
    }
    let agent = Scripted::agent(done).await;
    let never = in_front_of(&agent.url(), "[peers]\nplain_after = 0\n");
    sends(&client(&never), 5).await;
    assert_eq!(asked(&agent), (5, 0), "0 is never");
}

/// The one answer of an agent that is not done by then is only the first word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_answers_before_it_is_done_is_followed_as_any_other() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        AT_ONCE => Script::result(
            asked,
            &json!({ "task": { "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_WORKING" } } }),
        ),
        "SubscribeToTask" => Script::events(asked, [&json!({ "task": task(asked, "COMPLETED") })]).end(),
        _ => done(asked),
    })
    .await;
    let gateway = gateway(&agent, "");
    let client = client(&gateway);
    until_asked_at_once(1, &client, &agent).await;
    assert_eq!(agent.count("SubscribeToTask"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_took_long_is_listened_to_again_until_it_was_quick_twice_as_often() {
    let cue = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&cue);
    let agent = Scripted::agent(move |asked| match (asked.kind().as_str(), asked.before) {
        (AT_ONCE, 0) => Script::default().wait(&held).followed_by(done(asked)),
        _ => done(asked),
    })
    .await;
    let gateway = gateway_within(1_000, &agent, "");
    let client = client(&gateway);
    let slow = async {
        soon("it is asked", async || (agent.count(AT_ONCE) == 1).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        cue.add_permits(1);
    };
    tokio::join!(until_asked_at_once(1, &client, &agent), slow);
    let streams = agent.count(STREAM);
    assert!(streams >= 3, "{streams}");
    until_asked_at_once(2, &client, &agent).await;
    let between = agent.count(STREAM) - streams;
    assert!(between >= 6, "{between}");
}

/// Whatever is wrong with the one answer, its caller is told as it would be of a stream, and the message is not put again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_fails_with_its_one_answer_has_the_outcome_of_any_other() {
    let agent = Scripted::agent(|asked| match (asked.kind().as_str(), asked.before) {
        (AT_ONCE, 0) => Script::page(503, "text/plain", "later"),
        (AT_ONCE, 1) => Script::page(200, "application/json", r#"{"jsonrpc":"2.0","id":"1","result":{"task":"#),
        (AT_ONCE, 2) => Script::default(),
        (AT_ONCE, 3) => Script::default().hang(),
        (AT_ONCE, 4) => Script::error(asked, -32602, "not this"),
        _ => done(asked),
    })
    .await;
    let config = "[peers]\nplain_after = 2\nplain_within_ms = 60000\nread_ms = 3000\n[health]\nfailures = 1000\nfailure_percent_of = 1000\n";
    let gateway = in_front_of(&agent.url(), config);
    let client = client(&gateway);
    let mut streams = 0;
    for (times, words) in [
        (1, "the agent answered with HTTP status 503"),
        (2, "the agent's answer was not understood"),
        (3, "the address could not be reached"),
        (4, "the agent did not answer in time"),
    ] {
        let sent = until_asked(times, &client, &agent).await;
        let Ok(Reply::Sent(Sent::Task(shown))) = sent else { panic!("{sent:?}") };
        let said = shown.task.status.message.as_ref().map(|message| lines::parts(&message.parts));
        assert_eq!((&*lines::state(shown.task.status.state), said.as_deref()), ("failed", Some(words)));
        // Each time it takes twice as many turns before it is asked so again.
        let between = agent.count(STREAM) - std::mem::replace(&mut streams, agent.count(STREAM));
        assert!(between >= 1 << times, "{between} before {words}");
    }
    let refusal = until_asked(5, &client, &agent).await.expect_err("the agent's own refusal");
    assert!(format!("{refusal:?}").contains("not this"), "{refusal:?}");
    sends(&client, 1).await;
    assert_eq!(agent.count(AT_ONCE), 6, "each message is put to the agent once, and a refusal is no failure of the agent");
}

/// Sends until the agent was asked for one answer so often. Answers what came of the last.
async fn until_asked(times: usize, client: &WireClient, agent: &Scripted) -> Result<Reply, Refusal> {
    soon("it is quick", async || {
        let sent = client.call(&Request::SendMessage(message(SendConfiguration::default())), &Conditions::default()).await;
        (agent.count(AT_ONCE) == times).then_some(sent)
    })
    .await
}

/// Nobody knows its name before it answers; the cancel is told as soon as it is known, also to one that asks back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_an_agent_that_was_asked_for_one_answer() {
    for state in ["WORKING", "INPUT_REQUIRED"] {
        let cue = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&cue);
        let agent = Scripted::agent(move |asked| match (asked.kind().as_str(), asked.before) {
            (AT_ONCE, 1) => {
                Script::default().wait(&held).followed_by(Script::result(asked, &json!({ "task": task(asked, state) })))
            }
            ("CancelTask", _) => Script::result(asked, &task(asked, "CANCELED")),
            ("SubscribeToTask", _) => Script::events(asked, [&json!({ "task": task(asked, state) })]).hang(),
            ("GetTask", _) => Script::result(asked, &task(asked, state)),
            _ => done(asked),
        })
        .await;
        let gateway = gateway(&agent, "");
        let client = client(&gateway);
        until_asked_at_once(1, &client, &agent).await;
        let cancels = async {
            soon("the agent was asked", async || (agent.count(AT_ONCE) == 2).then_some(())).await;
            let id = soon("the task is there", async || open_task(&client).await).await;
            let cancel = Request::CancelTask(CancelTask { tenant: None, id, metadata: None });
            let answers = async {
                // Mostly the node has heard of the cancel by then. If not, it is told while it follows the task.
                tokio::time::sleep(Duration::from_millis(100)).await;
                cue.add_permits(1);
            };
            let none = Conditions::default();
            let (cancelled, ()) = tokio::join!(client.call(&cancel, &none), answers);
            let Ok(Reply::Task(shown)) = cancelled else { panic!("{cancelled:?}") };
            assert_eq!(lines::state(shown.task.status.state), "canceled", "{state}");
        };
        tokio::join!(send(&client), cancels);
        assert_eq!(agent.count("CancelTask"), 1, "{state}");
    }
}

async fn open_task(client: &WireClient) -> Option<TaskId> {
    let list = Request::ListTasks(ListTasks::default());
    let Ok(Reply::Tasks(page)) = client.call(&list, &Conditions::default()).await else { return None };
    page.tasks.iter().map(|shown| &shown.task).find(|task| !task.status.state.is_terminal()).map(|task| task.id.clone())
}
