//! Hands ruLake witnesses over with the `rvagent-a2a` crate: `rvagent-witness ask URL` sends one, `rvagent-witness agent [URL]` takes one.

use std::io::Read;
use std::sync::Arc;

use rvagent_a2a::artifact_types::{ArtifactKind, from_a2a_artifact, to_a2a_artifact};
use rvagent_a2a::budget::{BudgetLedger, GlobalBudget};
use rvagent_a2a::client::A2aClient;
use rvagent_a2a::context::TaskContext;
use rvagent_a2a::error::A2aError;
use rvagent_a2a::executor::{Executor, TaskRunner};
use rvagent_a2a::identity::AgentID;
use rvagent_a2a::server::{A2aServer, A2aServerConfig};
use rvagent_a2a::types::{
    AgentCapabilities, AgentCard, AgentProvider, AgentSkill, Artifact, AuthScheme, Message, Part, Role, Task, TaskSpec,
    TaskState, TaskStatus,
};
use serde_json::{Value, json};
use uuid::Uuid;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [mode, url] if mode == "ask" => ask(url).await,
        [mode] if mode == "agent" => agent(None).await,
        [mode, url] if mode == "agent" => agent(Some(url.clone())).await,
        _ => Err("usage: rvagent-witness ask URL | agent [URL]".into()),
    }
}

/// Reads `{witness, data_ref, capabilities, grant, search}`, sends them as the crate spells them, and prints what it reads of the answer.
async fn ask(url: &str) -> Result<(), Failure> {
    let mut given = String::new();
    std::io::stdin().read_to_string(&mut given)?;
    let given: Value = serde_json::from_str(&given)?;
    let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
    let capabilities = serde_json::from_value(given["capabilities"].clone())?;
    let kind = ArtifactKind::RuLakeWitness { witness: text("witness"), data_ref: text("data_ref"), capabilities };
    let mut parts = to_a2a_artifact(&kind).parts;
    if given["search"].is_object() {
        parts.push(Part::Data { data: json!({ "search": given["search"] }) });
    }
    let tags = json!({ "artifact_kind": "rulake_witness", "artifact_kind_version": "1", "grant": given["grant"] });
    let message = Message { role: Role::User, parts, metadata: json!({ "ruvector": tags }) };
    let task = A2aClient::new()?.send_task(url, spec(message)).await?;
    let kinds: Vec<Value> = task.artifacts.iter().map(|artifact| shown(from_a2a_artifact(artifact))).collect();
    println!("{}", json!({ "state": task.status.state, "kinds": kinds }));
    Ok(())
}

fn spec(message: Message) -> TaskSpec {
    let context = TaskContext::new_root(AgentID("0".repeat(64)));
    let id = Uuid::new_v4().to_string();
    TaskSpec { id, skill: "recall".into(), message, policy: None, context, metadata: Value::Null }
}

/// What the crate made of an artifact.
fn shown(kind: Result<ArtifactKind, A2aError>) -> Value {
    match kind {
        Ok(ArtifactKind::RuLakeWitness { witness, data_ref, capabilities }) => {
            json!({ "witness": witness, "data_ref": data_ref, "capabilities": capabilities })
        }
        Ok(ArtifactKind::StructuredJson { value, schema }) => json!({ "value": value, "schema": schema }),
        Ok(other) => json!({ "other": format!("{other:?}") }),
        Err(refusal) => json!({ "refused": refusal.to_string() }),
    }
}

/// Reads the witness of a message, has the agent at the URL recall it if there is one, and hands it back.
struct Relay {
    onward: Option<String>,
    client: A2aClient,
}

#[async_trait::async_trait]
impl TaskRunner for Relay {
    async fn run(&self, spec: TaskSpec) -> Result<Task, A2aError> {
        let parts = vec![spec.message.parts[0].clone()];
        let kind = from_a2a_artifact(&artifact(parts, spec.message.metadata.clone()))?;
        let mut artifacts = vec![to_a2a_artifact(&kind)];
        let mut report = json!({ "read": shown(Ok(kind)), "grant": spec.message.metadata["ruvector"]["grant"] });
        if let Some(onward) = &self.onward {
            let context = spec.context.child(AgentID("1".repeat(64)));
            let message = spec.message.clone();
            let id = Uuid::new_v4().to_string();
            let recall = TaskSpec { id, skill: "recall".into(), message, policy: None, context, metadata: Value::Null };
            let task = self.client.send_task(onward, recall).await?;
            report["recalled"] = task.artifacts.iter().map(|artifact| shown(from_a2a_artifact(artifact))).collect();
        }
        let report = to_a2a_artifact(&ArtifactKind::StructuredJson { value: report, schema: Some("urn:report".into()) });
        artifacts.push(report);
        let status = TaskStatus { state: TaskState::Completed, timestamp: chrono::Utc::now(), message: None };
        Ok(Task { id: spec.id, session_id: None, status, history: vec![spec.message], artifacts, metadata: spec.metadata })
    }

    async fn cancel(&self, task_id: &str) -> Result<(), A2aError> {
        Err(A2aError::NotFound(task_id.into()))
    }
}

fn artifact(parts: Vec<Part>, metadata: Value) -> Artifact {
    Artifact { name: None, description: None, parts, index: 0, append: false, last_chunk: true, metadata }
}

async fn agent(onward: Option<String>) -> Result<(), Failure> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let card = AgentCard {
        name: "rvagent relay".into(),
        description: "Hands witnesses on.".into(),
        url: url.clone(),
        provider: AgentProvider { organization: "interop".into(), url: None },
        version: "1".into(),
        capabilities: AgentCapabilities { streaming: false, push_notifications: false },
        skills: vec![AgentSkill {
            id: "relay".into(),
            name: "Relay".into(),
            description: "Hands a witness on.".into(),
            tags: vec!["interop".into()],
            input_modes: vec!["data".into()],
            output_modes: vec!["data".into()],
        }],
        authentication: AuthScheme { schemes: vec![] },
        metadata: json!({}),
    };
    let bytes = serde_json::to_vec(&card)?;
    let budget = Arc::new(BudgetLedger::new(GlobalBudget::default()));
    let executor = Arc::new(Executor::Local(Arc::new(Relay { onward, client: A2aClient::new()? })));
    let server = A2aServer::new(card, bytes, executor, budget, A2aServerConfig::default());
    println!("{url}");
    axum::serve(listener, server.router()).await?;
    Ok(())
}
