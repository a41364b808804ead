//! An agent with the server of the `rvagent-a2a` crate: `rvagent-agent` serves the one binding it has and prints its URL.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rvagent_a2a::budget::{BudgetLedger, GlobalBudget};
use rvagent_a2a::error::A2aError;
use rvagent_a2a::executor::{Executor, TaskRunner};
use rvagent_a2a::server::{A2aServer, A2aServerConfig};
use rvagent_a2a::types::{
    AgentCapabilities, AgentCard, AgentProvider, AgentSkill, Artifact, AuthScheme, Message, Part, Role, Task, TaskSpec,
    TaskState, TaskStatus,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

type Failure = Box<dyn std::error::Error>;

/// Obeys the first word of a message. A runner of this crate gives one answer at the end, so chunks are parts of one artifact.
#[derive(Default)]
struct Obedient {
    /// Those who sleep, by task, to be woken when it is cancelled.
    asleep: Mutex<HashMap<String, Arc<Notify>>>,
}

#[async_trait::async_trait]
impl TaskRunner for Obedient {
    async fn run(&self, spec: TaskSpec) -> Result<Task, A2aError> {
        let text = text(&spec.message);
        let (verb, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let (state, artifact, said) = match (verb, rest.parse::<u64>()) {
            ("sleep", Ok(millis)) => (self.sleep(&spec.id, millis).await, vec![], None),
            ("stream", Ok(number)) => (TaskState::Completed, (0..number).map(|n| format!("chunk {n}")).collect(), None),
            ("ask", _) => (TaskState::InputRequired, vec![], Some(rest)),
            // There is no rejected state.
            ("fail" | "reject", _) => (TaskState::Failed, vec![], Some(rest)),
            ("complete", _) => (TaskState::Completed, vec![rest.to_owned()], None),
            _ => (TaskState::Completed, vec![text.clone()], None),
        };
        let message = said.map(|said| Message { role: Role::Agent, parts: parts(&[said.to_owned()]), metadata: Value::Null });
        let artifacts = if artifact.is_empty() { vec![] } else { vec![whole(&artifact)] };
        let status = TaskStatus { state, timestamp: chrono::Utc::now(), message };
        Ok(Task { id: spec.id, session_id: None, status, history: vec![spec.message], artifacts, metadata: spec.metadata })
    }

    async fn cancel(&self, task_id: &str) -> Result<(), A2aError> {
        let sleeper = self.asleep.lock().unwrap_or_else(PoisonError::into_inner).remove(task_id);
        sleeper.ok_or_else(|| A2aError::NotFound(task_id.into())).map(|sleeper| sleeper.notify_one())
    }
}

impl Obedient {
    async fn sleep(&self, task: &str, millis: u64) -> TaskState {
        let woken = Arc::new(Notify::new());
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner).insert(task.into(), woken.clone());
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(millis)) => TaskState::Completed,
            () = woken.notified() => TaskState::Canceled,
        }
    }
}

fn text(message: &Message) -> String {
    message.parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None }).collect()
}

fn parts(texts: &[String]) -> Vec<Part> {
    texts.iter().map(|text| Part::Text { text: text.clone() }).collect()
}

fn whole(texts: &[String]) -> Artifact {
    let parts = parts(texts);
    Artifact { name: None, description: None, parts, index: 0, append: false, last_chunk: true, metadata: Value::Null }
}

fn card(url: &str) -> AgentCard {
    AgentCard {
        name: "rvagent agent".into(),
        description: "Does what it is told.".into(),
        url: url.into(),
        provider: AgentProvider { organization: "interop".into(), url: None },
        version: "1".into(),
        // Its JSON-RPC answers a request to stream with one answer.
        capabilities: AgentCapabilities { streaming: false, push_notifications: false },
        skills: vec![AgentSkill {
            id: "obey".into(),
            name: "Obey".into(),
            description: "Obeys the first word.".into(),
            tags: vec!["interop".into()],
            input_modes: vec!["text".into()],
            output_modes: vec!["text".into()],
        }],
        authentication: AuthScheme { schemes: vec![] },
        metadata: json!({}),
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let card = card(&url);
    let bytes = serde_json::to_vec(&card)?;
    let budget = Arc::new(BudgetLedger::new(GlobalBudget::default()));
    let executor = Arc::new(Executor::Local(Arc::new(Obedient::default())));
    let server = A2aServer::new(card, bytes, executor, budget, A2aServerConfig::default());
    println!("{url}");
    axum::serve(listener, server.router()).await?;
    Ok(())
}
