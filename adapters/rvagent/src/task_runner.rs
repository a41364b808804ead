//! Runs a `TaskRunner` of `rvagent-a2a`: gives it each turn as a `TaskSpec` and passes on the `Task` it answers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::{Finished, Passed, RunError, TaskUpdateSink, Turn};
use chancery_protocol::{
    Artifact, ArtifactChunk, NamedTask, Operation, Reply, Request, SendMessage, Sent, StatusChange, Task, TaskEvent, TaskState,
    TaskStatus, Unknown,
};
use chancery_wire::Codec as _;
use chancery_wire::json::original::Original;
use rvagent_a2a::error::A2aError;
use rvagent_a2a::executor::TaskRunner;
use rvagent_a2a::types::TaskSpec;
use serde_json::{Value, json};

/// A `TaskRunner` of `rvagent-a2a` as an agent of Chancery.
#[derive(Clone)]
pub struct RvagentRunner {
    runner: Arc<dyn TaskRunner>,
    /// What a task asks for that names no skill.
    skill: String,
}

impl RvagentRunner {
    /// `skill` is what tasks ask for that name none: the crate demands one.
    pub fn new(runner: impl TaskRunner + 'static, skill: impl Into<String>) -> Self {
        Self { runner: Arc::new(runner), skill: skill.into() }
    }
}

impl fmt::Debug for RvagentRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RvagentRunner").field("skill", &self.skill).finish_non_exhaustive()
    }
}

#[async_trait]
impl chancery_core::TaskRunner for RvagentRunner {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let spec = spec_of(&turn, &self.skill)?;
        let id = spec.id.clone();
        let mut work = self.runner.run(spec);
        let answered = tokio::select! {
            biased;
            () = turn.cancelled.cancelled() => {
                if let Err(error) = self.runner.cancel(&id).await {
                    tracing::warn!(task = %id, %error, "the runner rejected the cancel");
                }
                // A runner that does not stop is dropped when the grace period of the node is over.
                match work.await {
                    Ok(task) if task.status.state.is_terminal() => Ok(task),
                    _ => return Ok(updates.canceled()),
                }
            }
            answered = &mut work => answered,
        };
        told(updates, &turn, answered.map_err(failure)?).await
    }
}

/// The turn as the crate has it. The translation is that of the original protocol, which is the crate's own.
fn spec_of(turn: &Turn, skill: &str) -> Result<TaskSpec, RunError> {
    let send = SendMessage {
        tenant: None,
        message: Arc::clone(&turn.message),
        configuration: Default::default(),
        metadata: turn.metadata.clone(),
        client_task_id: Some(turn.task.id.as_str().into()),
        unknown: Unknown::none(),
    };
    let mut written = Vec::new();
    Original.encode_request(&mut written, &Request::SendMessage(send)).map_err(|error| RunError::new(error.message))?;
    let untranslated = |error: serde_json::Error| RunError::new(format!("the message cannot be put as a TaskSpec: {error}"));
    let mut spec: Value = serde_json::from_slice(&written).map_err(untranslated)?;
    if spec.get("skill").is_none() {
        spec["skill"] = json!(skill);
    }
    // What the node knows of the task's place counts more than what its caller claims.
    let context = match turn.delegation.context() {
        Some(context) => serde_json::to_value(context).map_err(untranslated)?,
        None => json!({ "trace_id": turn.trace.to_string(), "depth": 0, "root_agent_id": "" }),
    };
    spec["context"] = context;
    serde_json::from_value(spec).map_err(untranslated)
}

fn failure(error: A2aError) -> RunError {
    RunError::new(error.to_string())
}

/// Passes on what the runner answered: what it says that is new, its artifacts, then how the task stands.
async fn told(updates: TaskUpdateSink, turn: &Turn, task: rvagent_a2a::types::Task) -> Result<Finished, RunError> {
    if task.id != turn.task.id.as_str() {
        return Err(RunError::new(format!("the agent answered with task {} instead of its own", task.id)));
    }
    let task = translated(&task)?;
    let mut passed = Passed::Open(updates);
    for event in events(task) {
        let updates = match passed {
            Passed::Open(updates) => updates,
            Passed::Waiting(waiting) => waiting.go_on(),
            Passed::Ended(_) => break,
        };
        passed = updates.pass(event).await?;
    }
    match passed {
        Passed::Ended(finished) => Ok(finished),
        Passed::Waiting(waiting) => Ok(waiting.finish()),
        Passed::Open(_) => Err(RunError::new("the agent answered with a task that goes on, and a turn has to end it or ask")),
    }
}

fn translated(task: &rvagent_a2a::types::Task) -> Result<Task, RunError> {
    let unreadable = |why: String| RunError::new(format!("the agent's task cannot be read: {why}"));
    let text = serde_json::to_string(task).map_err(|error| unreadable(error.to_string()))?;
    match Original.decode_reply(Operation::SendMessage, &text).map_err(|error| unreadable(error.message.into_owned()))? {
        Reply::Sent(Sent::Task(NamedTask { task, .. })) => Ok(Arc::unwrap_or_clone(task)),
        _ => Err(unreadable("it is none".to_owned())),
    }
}

fn events(task: Task) -> Vec<TaskEvent> {
    let mut events = Vec::new();
    for (place, artifact) in task.artifacts.into_iter().enumerate() {
        // The crate gives every artifact the index 0 unless its runner says another, so its place is its name.
        let artifact = Artifact { artifact_id: place.to_string().into(), ..Arc::unwrap_or_clone(artifact) };
        events.push(TaskEvent::Artifact(ArtifactChunk {
            artifact: Arc::new(artifact),
            append: false,
            last_chunk: true,
            metadata: None,
            unknown: Unknown::none(),
        }));
    }
    let state = match task.status.state {
        // The task was submitted before the runner heard of it.
        TaskState::Submitted => TaskState::Working,
        state => state,
    };
    let status = TaskStatus { state, timestamp: None, ..task.status };
    events.push(TaskEvent::Status(StatusChange { status, metadata: task.metadata, unknown: Unknown::none() }));
    events
}
