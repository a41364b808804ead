//! Runs an agent over the `AgentState` of `rvagent-core`: the conversation goes in, and what it adds is the answer.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::{Finished, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Artifact, Part, PartContent, Role};
use rvagent_core::{AgentGraph, AgentState, ChatModel, Message, RvAgentError, ToolExecutor};
use serde_json::json;

/// The media type of parts that show the use of a tool; see docs/tool-parts.md.
const TOOL_PART: &str = "application/vnd.chancery.tool+json";

/// What works on a state: an `AgentGraph`, or anything else that appends messages to it.
#[async_trait]
pub trait StateAgent: Send + Sync {
    async fn work(&self, state: AgentState) -> Result<AgentState, RvAgentError>;
}

#[async_trait]
impl<M: ChatModel, T: ToolExecutor + 'static> StateAgent for AgentGraph<M, T> {
    async fn work(&self, state: AgentState) -> Result<AgentState, RvAgentError> {
        self.run(state).await
    }
}

/// An agent over `AgentState` as an agent of Chancery.
#[derive(Clone)]
pub struct StateRunner {
    agent: Arc<dyn StateAgent>,
    /// What each conversation begins with.
    begin: AgentState,
}

impl StateRunner {
    /// `begin` is the state of a conversation before its first message: its system message, memory, files and skills.
    pub fn new(agent: impl StateAgent + 'static, begin: AgentState) -> Self {
        Self { agent: Arc::new(agent), begin }
    }
}

impl fmt::Debug for StateRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateRunner").field("begin", &self.begin).finish_non_exhaustive()
    }
}

#[async_trait]
impl TaskRunner for StateRunner {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let state = state_of(&self.begin, &turn);
        let before = state.message_count();
        let worked = tokio::select! {
            biased;
            () = turn.cancelled.cancelled() => return Ok(updates.canceled()),
            worked = self.agent.work(state) => worked.map_err(|error| RunError::new(error.to_string()))?,
        };
        let added = worked.messages.get(before..).unwrap_or_default();
        let (last, steps) = match added.split_last() {
            Some((Message::Ai(last), steps)) if last.tool_calls.is_empty() => (last, steps),
            _ => return Err(RunError::new("the agent stopped without an answer")),
        };
        for step in steps {
            let parts = parts_of(step);
            if !parts.is_empty() {
                let message = updates.message(parts);
                updates.working(Some(message)).await?;
            }
        }
        let id = updates.new_artifact_id();
        updates.artifact(Artifact::new(id, vec![Part::text(&last.content)])).await?;
        Ok(updates.complete(None))
    }
}

/// The conversation so far. A system message is the agent's own, so nothing a caller says becomes one.
fn state_of(begin: &AgentState, turn: &Turn) -> AgentState {
    let mut state = begin.clone();
    let said_now = &turn.message.message_id;
    for message in turn.task.history.iter().filter(|message| message.message_id != *said_now) {
        state.push_message(spoken(message));
    }
    state.push_message(spoken(&turn.message));
    state
}

fn spoken(message: &chancery_protocol::Message) -> Message {
    let text: Vec<String> = message.parts.iter().map(text_of).collect();
    match message.role {
        Role::User => Message::human(text.join("\n")),
        Role::Agent => Message::ai(text.join("\n")),
    }
}

/// A part in words: an `AgentState` has nothing but text.
fn text_of(part: &Part) -> String {
    match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Data(json) => json.text().to_owned(),
        PartContent::Url(url) => url.clone(),
        PartContent::Raw(bytes) => {
            format!("[{} bytes of {}]", bytes.len(), part.media_type.as_deref().unwrap_or("application/octet-stream"))
        }
    }
}

/// What a message between the question and the answer shows of the agent's work.
fn parts_of(message: &Message) -> Vec<Part> {
    let tool = |data: serde_json::Value| Part { media_type: Some(TOOL_PART.to_owned()), ..Part::data(&data) };
    match message {
        Message::Ai(said) => {
            let text = (!said.content.is_empty()).then(|| Part::text(&said.content));
            let calls = said.tool_calls.iter();
            let calls =
                calls.map(|call| tool(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.args })));
            text.into_iter().chain(calls).collect()
        }
        Message::Tool(result) => {
            let said = json!({ "type": "tool_result", "tool_use_id": result.tool_call_id, "content": result.content, "is_error": false });
            vec![tool(said)]
        }
        Message::System(_) | Message::Human(_) => Vec::new(),
    }
}
