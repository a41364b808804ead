//! Stopping an agent: what the caller is told is what became of the task at the agent.

use std::sync::Arc;

use chancery_protocol::TaskState::{Canceled, Completed, Submitted, Working};
use chancery_protocol::{CancelTask, Reply, Request, SendConfiguration, Sent, TaskId};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{Carried, GET, STREAM, UNARY, WORDS, client, gateway, gateway_with, get, message, task};
use crate::gateway::scripted::{Asked, Script, Scripted};
use crate::operating::cli::run;
use crate::support::patience::soon;
use crate::support::wire_client::{Conditions, Refusal, WireClient};

const CANCEL: &str = "CancelTask";
const LIST: &str = "ListTasks";

async fn begin(client: &WireClient) -> TaskId {
    let immediately = SendConfiguration { return_immediately: true, ..SendConfiguration::default() };
    match client.call(&Request::SendMessage(message(immediately)), &Conditions::default()).await {
        Ok(Reply::Sent(Sent::Task(shown))) => shown.task.id.clone(),
        other => panic!("{other:?}"),
    }
}

async fn cancel(client: &WireClient, id: &TaskId) -> Result<Carried, Refusal> {
    let cancel = Request::CancelTask(CancelTask { tenant: None, id: id.clone(), metadata: None });
    match client.call(&cancel, &Conditions::default()).await? {
        Reply::Task(shown) => Ok(Carried::of_task(&shown.task)),
        other => panic!("{other:?}"),
    }
}

/// Names its task at once, works on it until the cue, and answers a cancel as the test says.
async fn working(cue: &Arc<Semaphore>, cancelled: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> Scripted {
    let cue = Arc::clone(cue);
    Scripted::agent(move |asked| match asked.kind().as_str() {
        UNARY => Script::result(asked, &json!({ "task": task(Submitted, &[]) })),
        CANCEL => cancelled(asked),
        GET if cue.available_permits() == 0 => Script::result(asked, &task(Working, &[])),
        _ => Script::result(asked, &task(Completed, &[WORDS])),
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_7_an_agent_that_refuses_a_cancel_works_on_and_its_error_is_the_answer() {
    let cue = Arc::new(Semaphore::new(0));
    let agent = working(&cue, |asked| Script::error(asked, -32004, "cancellation is not supported")).await;
    let gateway = gateway(&agent);
    let client = client(&gateway);
    let id = begin(&client).await;
    soon("the agent works", async || (get(&client, id.clone()).await.status.state == Working).then_some(())).await;
    for _ in 0..2 {
        let refused = cancel(&client, &id).await.expect_err("the agent refused");
        assert!(
            refused.message().contains("agent front refused to cancel the task: cancellation is not supported"),
            "{refused:?}"
        );
        assert_eq!(get(&client, id.clone()).await.status.state, Working, "it is not shown as canceled");
    }
    cue.add_permits(1);
    let ended = soon("the task ends", async || {
        let task = get(&client, id.clone()).await;
        task.status.state.is_terminal().then_some(task)
    });
    assert_eq!(Carried::of_task(&ended.await), Carried::completed(&[WORDS], &[]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_the_agent_has_only_accepted_is_shown_and_can_be_cancelled() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        STREAM => Script::events(asked, [&json!({ "task": task(Submitted, &[]) })]).hang(),
        UNARY => Script::result(asked, &json!({ "task": task(Submitted, &[]) })),
        CANCEL => Script::result(asked, &task(Canceled, &[])),
        _ => Script::result(asked, &task(Submitted, &[])),
    })
    .await;
    let gateway = gateway(&agent);
    let client = client(&gateway);

    let id = begin(&client).await;
    assert_eq!(get(&client, id.clone()).await.status.state, Submitted);
    assert_eq!(cancel(&client, &id).await.expect("a task").state, "canceled");

    let request = Request::StreamMessage(message(SendConfiguration::default()));
    let mut events = client.stream(&request, &Conditions::default()).await.expect("a stream");
    let first = events.next().await.expect("an event").expect("the task, while the agent is silent");
    let id = first.face.expect("the task's ids").task_id;
    assert_eq!(cancel(&client, &id).await.expect("a task").state, "canceled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_7_a_cancel_is_answered_with_the_state_the_agent_shows() {
    for state in [Canceled, Completed] {
        let cue = Arc::new(Semaphore::new(0));
        let agent = working(&cue, move |asked| Script::result(asked, &task(state, &[WORDS]))).await;
        let gateway = gateway(&agent);
        let client = client(&gateway);
        let id = begin(&client).await;
        let answer = cancel(&client, &id).await.expect("the agent answered with its task");
        assert_eq!(answer.artifacts, [WORDS]);
        assert_eq!(get(&client, id).await.status.state, state);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_6_a_cancel_that_is_answered_with_null_is_a_success() {
    let cue = Arc::new(Semaphore::new(0));
    let agent = Scripted::agent(|asked| match (asked.kind().as_str(), asked.before) {
        (UNARY, _) => Script::result(asked, &json!({ "task": task(Submitted, &[]) })),
        (CANCEL, _) => Script::result(asked, &json!(null)),
        (GET, 0..1) => Script::result(asked, &task(Working, &[])),
        _ => Script::result(asked, &task(Canceled, &[])),
    })
    .await;
    drop(cue);
    let gateway = gateway_with(&agent, "");
    let client = client(&gateway);
    let id = begin(&client).await;
    assert_eq!(cancel(&client, &id).await.expect("a success").state, "canceled");
}

/// Does not answer a blocking call, and lists its tasks if the test wants it to.
async fn silent(lists: bool) -> (Scripted, Arc<Semaphore>) {
    let cue = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&cue);
    let context = Arc::new(std::sync::Mutex::new(serde_json::Value::Null));
    let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
        UNARY => {
            *context.lock().expect("no test panics inside") = asked.params()["message"]["contextId"].clone();
            let mut ended = task(Working, &[]);
            ended["contextId"] = asked.params()["message"]["contextId"].clone();
            Script::default().wait(&waits).followed_by(Script::result(asked, &json!({ "task": ended })))
        }
        LIST if lists => {
            let mut listed = task(Working, &[]);
            listed["contextId"] = context.lock().expect("no test panics inside").clone();
            Script::result(asked, &json!({ "tasks": [listed], "nextPageToken": "", "pageSize": 50, "totalSize": 1 }))
        }
        CANCEL => {
            let mut ended = task(Canceled, &[]);
            ended["contextId"] = context.lock().expect("no test panics inside").clone();
            Script::result(asked, &ended)
        }
        _ => Script::error(asked, -32601, "Method not found"),
    })
    .await;
    (agent, cue)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_call_that_is_not_answered_is_cancelled_by_the_task_that_the_agent_lists() {
    let (agent, _cue) = silent(true).await;
    let gateway = gateway(&agent);
    let client = client(&gateway);
    let id = begin(&client).await;
    assert_eq!(cancel(&client, &id).await.expect("it was found").state, "canceled");
    let cancelled = agent.calls().into_iter().find(|asked| asked.kind() == CANCEL).expect("a cancel");
    assert_eq!(cancelled.task().as_deref(), Some("t"));
    assert_eq!(agent.count(UNARY), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_call_is_stopped_at_the_agent_by_its_deadline_and_by_the_operator() {
    let tells = |agent: &Scripted| agent.calls().into_iter().find(|asked| asked.kind() == CANCEL);
    for deadline in ["", "[policy.default]\nmax_duration_ms = 200\n"] {
        let (agent, _cue) = silent(true).await;
        let gateway = crate::gateway::in_front_of(&agent.url(), &format!("{}{deadline}", crate::gateway::QUICK));
        let client = client(&gateway);
        let id = begin(&client).await;
        if deadline.is_empty() {
            let ran = run(gateway.home(), ["tree", id.as_str(), "--cancel"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
        let told = soon("the agent is told to stop", async || tells(&agent)).await;
        assert_eq!(told.task().as_deref(), Some("t"), "the task that the agent listed");
        soon("the task ends", async || get(&client, id.clone()).await.status.state.is_terminal().then_some(())).await;
        assert_eq!(agent.count(UNARY), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_the_agent_does_not_name_ends_here_and_is_cancelled_there_once_it_is_named() {
    let (agent, cue) = silent(false).await;
    let gateway = gateway(&agent);
    let client = client(&gateway);
    let id = begin(&client).await;
    let ended = cancel(&client, &id).await.expect("it ends here");
    assert_eq!(ended.state, "canceled");
    assert!(ended.said[0].contains("the gateway stopped waiting"), "{ended:?}");
    assert_eq!(agent.count(CANCEL), 0);
    cue.add_permits(1);
    soon("the agent is told to stop", async || (agent.count(CANCEL) == 1).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_call_goes_on_after_a_restart_if_the_agent_lists_its_task() {
    use crate::support::server::{Home, Setup};
    let context = Arc::new(std::sync::Mutex::new(serde_json::Value::Null));
    let agent = Scripted::agent(move |asked| {
        let named = |state, parts: &[&str]| {
            let mut named = task(state, parts);
            named["contextId"] = context.lock().expect("no test panics inside").clone();
            named
        };
        match asked.kind().as_str() {
            UNARY => {
                *context.lock().expect("no test panics inside") = asked.params()["message"]["contextId"].clone();
                Script::default().hang()
            }
            LIST => Script::result(
                asked,
                &json!({ "tasks": [named(Working, &[])], "nextPageToken": "", "pageSize": 50, "totalSize": 1 }),
            ),
            GET => Script::result(asked, &named(Completed, &[WORDS])),
            _ => Script::result(asked, &named(Completed, &[WORDS])),
        }
    })
    .await;
    let home = Home::new();
    let start = || {
        let config = format!("{}[agents.front]\nurl = '{}'\nstream = 'never'\n", crate::gateway::QUICK, agent.url());
        Setup::in_home(&home).args(["--data"]).args([home.data()]).config(&config).start()
    };
    let gateway = start();
    let id = begin(&client(&gateway)).await;
    gateway.kill();
    let gateway = start();
    let client = client(&gateway);
    let ended = soon("the task ends", async || {
        let task = get(&client, id.clone()).await;
        task.status.state.is_terminal().then_some(task)
    });
    assert_eq!(Carried::of_task(&ended.await), Carried::completed(&[WORDS], &[]));
    assert_eq!(agent.count(UNARY), 1, "the message is not put twice");
}
