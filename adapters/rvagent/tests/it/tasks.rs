//! A runner of `rvagent-a2a` is given each turn as it expects it, and what it answers is the task.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chancery_protocol::{ArtifactKind, Part, TaskState};
use chancery_rvagent::RvagentRunner;
use chancery_rvagent::rvagent_a2a::artifact_types::{self, from_a2a_artifact, to_a2a_artifact};
use chancery_rvagent::rvagent_a2a::error::A2aError;
use chancery_rvagent::rvagent_a2a::executor::{InMemoryRunner, TaskRunner};
use chancery_rvagent::rvagent_a2a::types::TaskState as State;
use chancery_rvagent::rvagent_a2a::types::{Artifact, Message, Part as Theirs, Role, Task, TaskSpec, TaskStatus};
use serde_json::Value;
use tokio::sync::Notify;

use crate::node::{Node, reason};

#[derive(Clone, Default)]
struct Scripted {
    heard: Arc<Mutex<Vec<TaskSpec>>>,
    stopped: Arc<Notify>,
}

impl Scripted {
    fn heard(&self) -> Vec<TaskSpec> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl TaskRunner for Scripted {
    async fn run(&self, spec: TaskSpec) -> Result<Task, A2aError> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(spec.clone());
        let said = match &spec.message.parts[0] {
            Theirs::Text { text } => text.clone(),
            _ => "typed".to_owned(),
        };
        let mut artifacts = Vec::new();
        let state = match said.as_str() {
            "ask" => State::InputRequired,
            "fail" => State::Failed,
            "go on" => State::Working,
            "break" => return Err(A2aError::Internal("out of paper".into())),
            "sleep" => {
                self.stopped.notified().await;
                State::Canceled
            }
            "typed" => {
                let (parts, metadata) = (spec.message.parts.clone(), spec.message.metadata.clone());
                let whole =
                    Artifact { name: None, description: None, parts, index: 0, append: false, last_chunk: true, metadata };
                let kind = from_a2a_artifact(&whole)?;
                artifacts.push(to_a2a_artifact(&kind));
                let value = serde_json::json!({ "n": 1 });
                artifacts.push(to_a2a_artifact(&artifact_types::ArtifactKind::StructuredJson { value, schema: None }));
                State::Completed
            }
            _ => State::Completed,
        };
        let id = if said == "elsewhere" { "another".to_owned() } else { spec.id };
        let message =
            Message { role: Role::Agent, parts: vec![Theirs::Text { text: format!("{said}!") }], metadata: Value::Null };
        let status = TaskStatus { state, timestamp: chrono::Utc::now(), message: Some(message) };
        Ok(Task { id, session_id: None, status, history: vec![], artifacts, metadata: Value::Null })
    }

    async fn cancel(&self, _: &str) -> Result<(), A2aError> {
        self.stopped.notify_one();
        Ok(())
    }
}

fn node() -> (Node, Scripted) {
    let runner = Scripted::default();
    (Node::new(RvagentRunner::new(runner.clone(), "obey")), runner)
}

#[tokio::test]
async fn a_turn_is_a_spec_with_the_skill_and_the_place_the_node_knows() {
    let (node, runner) = node();
    let task = node.say("hello").await;
    assert_eq!((task.status.state, reason(&task)), (TaskState::Completed, "hello!"));
    let [spec] = &runner.heard()[..] else { panic!("one turn") };
    assert_eq!((spec.id.as_str(), spec.skill.as_str()), (task.id.as_str(), "obey"));
    assert_eq!(spec.message.parts, [Theirs::Text { text: "hello".into() }]);
    // As agents elsewhere are told it: whoever works for the root is one below it.
    assert_eq!((spec.context.trace_id.as_str(), spec.context.depth), ("000000000000000000000000000000ab", 1));
}

#[tokio::test]
async fn the_runner_of_the_crate_itself_echoes() {
    let node = Node::new(RvagentRunner::new(InMemoryRunner::new(), "echo"));
    let task = node.say("again").await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(task.artifacts[0].parts[0].as_text(), Some("again"));
}

#[tokio::test]
async fn typed_artifacts_go_in_and_come_out_typed() {
    let (node, _) = node();
    let witness = "ab".repeat(32);
    let kind = ArtifactKind::RuLakeWitness { witness, data_ref: "file:///notes".into(), capabilities: vec!["read".into()] };
    let task = node.send(kind.to_parts(), None, true).await;
    assert_eq!(task.status.state, TaskState::Completed, "{}", reason(&task));
    let kinds: Vec<_> = task.artifacts.iter().map(|artifact| ArtifactKind::from_artifact(artifact).unwrap()).collect();
    let value = ArtifactKind::StructuredJson { value: serde_json::json!({ "n": 1 }), schema: None };
    assert_eq!(kinds, [kind, value], "two artifacts of one index are two");
}

#[tokio::test]
async fn a_question_is_answered_on_the_same_task() {
    let (node, runner) = node();
    let asked = node.say("ask").await;
    assert_eq!((asked.status.state, reason(&asked)), (TaskState::InputRequired, "ask!"));
    let done = node.send(vec![Part::text("blue")], Some(&asked.id), true).await;
    assert_eq!((done.status.state, &done.id), (TaskState::Completed, &asked.id));
    assert!(runner.heard().iter().all(|spec| spec.id == asked.id.as_str()));
}

#[tokio::test]
async fn however_a_runner_ends_its_task_ends_with_a_reason() {
    let (node, _) = node();
    for (script, words) in [
        ("fail", "fail!"),
        ("break", "out of paper"),
        ("go on", "a task that goes on"),
        ("elsewhere", "task another instead of its own"),
    ] {
        let task = node.say(script).await;
        assert_eq!(task.status.state, TaskState::Failed, "{script}");
        assert!(reason(&task).contains(words), "{script}: {}", reason(&task));
    }
}

#[tokio::test]
async fn a_cancel_reaches_the_runner_and_its_task_is_canceled() {
    let (node, runner) = node();
    let id = node.send(vec![Part::text("sleep")], None, false).await.id.clone();
    while runner.heard().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(node.cancel(&id).await.status.state, TaskState::Canceled);
    assert_eq!(node.get(&id).await.status.state, TaskState::Canceled);
}
