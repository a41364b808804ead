//! An agent on a socket of its own that calls the next agent through the node for each task it is given.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::scripted::{Asked, Script, Scripted};

/// How often a call is tried while the node is down, with a pause between.
const TRIES: usize = 600;
const PAUSE: Duration = Duration::from_millis(50);
/// Between the answer and the call of an agent that answers first.
const AFTER_ANSWER: Duration = Duration::from_millis(100);

/// What a relay makes of a task it was given: the headers and the metadata of the call that it makes for it.
pub(super) type PassOn = dyn Fn(&Asked) -> (Vec<(String, String)>, Value) + Send + Sync;

/// How a relay behaves.
#[derive(Clone)]
pub(super) struct Route {
    /// Where it calls the next agent.
    pub(super) next: String,
    /// What it passes on of the call it was given.
    pub(super) pass_on: Arc<PassOn>,
    /// It calls when there is a permit.
    pub(super) gate: Arc<Semaphore>,
    /// It makes so many calls and no more, so that a loop that nobody stops ends by itself.
    pub(super) most: usize,
    /// It answers first and calls afterwards.
    pub(super) answers_first: bool,
}

impl Route {
    pub(super) fn to(next: impl Into<String>) -> Self {
        let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        Self { next: next.into(), pass_on: Arc::new(|_| (Vec::new(), Value::Null)), gate, most: 12, answers_first: false }
    }

    pub(super) fn passing_on(self, pass_on: impl Fn(&Asked) -> (Vec<(String, String)>, Value) + Send + Sync + 'static) -> Self {
        Self { pass_on: Arc::new(pass_on), ..self }
    }

    pub(super) fn with_key(self, key: &'static str) -> Self {
        let pass_on = Arc::clone(&self.pass_on);
        self.passing_on(move |asked| {
            let (mut headers, metadata) = pass_on(asked);
            headers.push(("x-api-key".to_owned(), key.to_owned()));
            (headers, metadata)
        })
    }
}

#[derive(Default)]
struct Work {
    /// By the name the relay gave the task; it is done when its semaphore has permits.
    tasks: Mutex<HashMap<String, Arc<Semaphore>>>,
    answers: Mutex<Vec<Value>>,
}

pub(super) struct Relay {
    pub(super) agent: Scripted,
    work: Arc<Work>,
}

impl Relay {
    /// Starts it before anybody knows where the node is: the route is asked for with each call.
    pub(super) async fn start(route: impl Fn() -> Route + Send + Sync + 'static) -> Self {
        let work = Arc::<Work>::default();
        let of_agent = Arc::clone(&work);
        let agent = Scripted::agent(move |asked: &Asked| match asked.kind().as_str() {
            "SendStreamingMessage" => take(&of_agent, asked, &route()),
            "SubscribeToTask" | "GetTask" => {
                let tasks = of_agent.tasks.lock().expect("no test panics inside");
                let Some(done) = asked.task().and_then(|id| tasks.get(&id).cloned()) else {
                    return Script::error(asked, -32001, "Task not found");
                };
                let id = asked.task().unwrap_or_default();
                match asked.kind() == "GetTask" {
                    true if done.available_permits() > 0 => Script::result(asked, &task(&id, "COMPLETED")),
                    true => Script::result(asked, &task(&id, "WORKING")),
                    false => following(asked, &id, &done),
                }
            }
            _ => Script::error(asked, -32001, "Task not found"),
        })
        .await;
        Self { agent, work }
    }

    /// How often it was given a task.
    pub(super) fn runs(&self) -> usize {
        self.agent.count("SendStreamingMessage")
    }

    /// What its own calls were answered.
    pub(super) fn answers(&self) -> Vec<Value> {
        self.work.answers.lock().expect("no test panics inside").clone()
    }

    /// The refusals among them.
    pub(super) fn refusals(&self) -> Vec<String> {
        let message = |answer: &Value| answer["error"]["message"].as_str().map(str::to_owned);
        self.answers().iter().filter_map(message).collect()
    }
}

fn task(id: &str, state: &str) -> Value {
    json!({ "id": id, "contextId": format!("context-of-{id}"), "status": { "state": format!("TASK_STATE_{state}") } })
}

fn following(asked: &Asked, id: &str, done: &Arc<Semaphore>) -> Script {
    let completed =
        json!({ "taskId": id, "contextId": format!("context-of-{id}"), "status": { "state": "TASK_STATE_COMPLETED" } });
    let working = Script::stream().event(asked, &json!({ "task": task(id, "WORKING") }));
    working.wait(done).event(asked, &json!({ "statusUpdate": completed })).end()
}

fn take(work: &Arc<Work>, asked: &Asked, route: &Route) -> Script {
    let number = asked.before;
    let id = format!("t{number}");
    let done = Arc::new(Semaphore::new(0));
    work.tasks.lock().expect("no test panics inside").insert(id.clone(), Arc::clone(&done));
    if route.answers_first {
        done.add_permits(1_000);
    }
    if number < route.most {
        tokio::spawn(call(Arc::clone(work), asked.clone(), route.clone(), Arc::clone(&done)));
    } else {
        done.add_permits(1_000);
    }
    following(asked, &id, &done)
}

/// One call of the next agent. The same key goes with every try, so that the node makes one task of them.
async fn call(work: Arc<Work>, asked: Asked, route: Route, done: Arc<Semaphore>) {
    route.gate.acquire().await.expect("no gate is closed").forget();
    if route.answers_first {
        // Long enough, most of the time, for the node to have heard the answer.
        tokio::time::sleep(AFTER_ANSWER).await;
    }
    let key = format!("{}-{:032x}", asked.before, rand::random::<u128>());
    let (headers, metadata) = (route.pass_on)(&asked);
    let mut message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "on" }] });
    if !metadata.is_null() {
        message["metadata"] = metadata;
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let client = reqwest::Client::new();
    for _ in 0..TRIES {
        let request = client.post(&route.next).header("A2A-Version", "1.0").header("Idempotency-Key", &key).json(&body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let answer = async { request.send().await?.json::<Value>().await };
        if let Ok(answer) = answer.await {
            work.answers.lock().expect("no test panics inside").push(answer);
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    done.add_permits(1_000);
}
