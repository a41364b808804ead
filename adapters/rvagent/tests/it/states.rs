//! An agent over `AgentState` is given the conversation, and its tools and its answer are seen.

use async_trait::async_trait;
use chancery_protocol::{Part, PartContent, TaskState};
use chancery_rvagent::rvagent_core::models::ToolDefinition;
use chancery_rvagent::rvagent_core::{AgentGraph, AgentState, ChatModel, Message, Result, RvAgentError, ToolCall, ToolExecutor};
use chancery_rvagent::{StateAgent, StateRunner};
use serde_json::{Value, json};

use crate::node::{Node, reason};

/// Calls a tool once, then answers with everything it was told.
struct Model;

#[async_trait]
impl ChatModel for Model {
    async fn complete(&self, messages: &[Message], _: &[ToolDefinition]) -> Result<Message> {
        match messages.last() {
            Some(Message::Human(said)) if said.content == "look it up" => {
                let call = ToolCall { id: "call-1".into(), name: "search".into(), args: json!({ "query": "lighthouses" }) };
                Ok(Message::ai_with_tools("a moment", vec![call]))
            }
            Some(Message::Human(said)) if said.content == "break" => Err(RvAgentError::Model("out of order".into())),
            _ => {
                let told: Vec<&str> = messages.iter().map(Message::content).collect();
                Ok(Message::ai(told.join("|")))
            }
        }
    }

    async fn stream(&self, messages: &[Message], tools: &[ToolDefinition]) -> Result<Vec<Message>> {
        Ok(vec![self.complete(messages, tools).await?])
    }
}

struct Search;

#[async_trait]
impl ToolExecutor for Search {
    async fn execute(&self, call: &ToolCall, _: &AgentState) -> Result<String> {
        Ok(format!("{} found Pharos", call.name))
    }
}

fn node() -> Node {
    Node::new(StateRunner::new(AgentGraph::new(Model, Search), AgentState::with_system_message("be brief")))
}

fn data(part: &Part) -> Value {
    let PartContent::Data(data) = &part.content else { panic!("{part:?}") };
    data.to_value()
}

#[tokio::test]
async fn a_graph_answers_with_what_its_model_says() {
    let task = node().say("hello").await;
    assert_eq!(task.status.state, TaskState::Completed, "{}", reason(&task));
    assert_eq!(task.artifacts[0].parts[0].as_text(), Some("be brief|hello"));
}

#[tokio::test]
async fn tools_are_seen_as_tool_parts_before_the_answer() {
    let task = node().say("look it up").await;
    assert_eq!(task.status.state, TaskState::Completed, "{}", reason(&task));
    let shown: Vec<&Part> = task.history.iter().skip(1).flat_map(|message| &message.parts).collect();
    assert_eq!(shown[0].as_text(), Some("a moment"));
    assert_eq!(
        data(shown[1]),
        json!({ "type": "tool_use", "id": "call-1", "name": "search", "input": { "query": "lighthouses" } })
    );
    let result = json!({ "type": "tool_result", "tool_use_id": "call-1", "content": "search found Pharos", "is_error": false });
    assert_eq!(data(shown[2]), result);
    assert!(task.artifacts[0].parts[0].as_text().is_some_and(|text| text.ends_with("search found Pharos")));
}

#[tokio::test]
async fn an_error_of_the_agent_is_the_reason_of_the_failure() {
    let task = node().say("break").await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert!(reason(&task).contains("out of order"), "{}", reason(&task));
}

/// Adds nothing.
struct Silent;

#[async_trait]
impl StateAgent for Silent {
    async fn work(&self, state: AgentState) -> std::result::Result<AgentState, RvAgentError> {
        if state.messages.iter().any(|message| message.content() == "wait") {
            std::future::pending::<()>().await;
        }
        Ok(state)
    }
}

#[tokio::test]
async fn an_agent_that_adds_nothing_has_failed_and_one_that_waits_can_be_canceled() {
    let node = Node::new(StateRunner::new(Silent, AgentState::new()));
    let task = node.say("hello").await;
    assert_eq!((task.status.state, reason(&task)), (TaskState::Failed, "the agent stopped without an answer"));
    let id = node.send(vec![Part::text("wait")], None, false).await.id.clone();
    assert_eq!(node.cancel(&id).await.status.state, TaskState::Canceled);
}
