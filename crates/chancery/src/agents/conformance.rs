//! The conformance agent: does what the message says, so that every state can be seen without a model.

mod directive;
mod sample;

use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{Finished, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{AgentCard, Artifact, Part, TaskState};
use serde_json::json;

use self::directive::Directive;
use super::card::new_card;
use crate::tool_parts::{tool_result, tool_use};

/// An agent that does what the message says, so that a test can see every state of a task.
#[derive(Clone, Copy, Debug)]
pub struct Conformance;

#[async_trait]
impl TaskRunner for Conformance {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        match Directive::of(&turn.message) {
            Directive::Complete(None) => Ok(updates.complete(None)),
            Directive::Complete(Some(text)) | Directive::Echo(text) => complete(updates, vec![Part::text(text)]).await,
            Directive::Fail(reason) => Ok(updates.fail(reason)),
            Directive::Reject(reason) => Ok(updates.reject(reason)),
            Directive::Ask(question) => {
                let question = updates.text(question);
                Ok(updates.input_required(question))
            }
            Directive::Auth(reason) => {
                let reason = updates.text(reason);
                Ok(updates.auth_required(reason))
            }
            Directive::Authorize(time) => {
                let reason = updates.text("please authorise this");
                let waiting = updates.await_authorization(reason).await?;
                let is_authorised = tokio::select! {
                    is_authorised = rest(&turn, time) => is_authorised,
                    () = waiting.message_waits() => return Ok(waiting.finish()),
                };
                let updates = waiting.go_on();
                if is_authorised { complete(updates, vec![Part::text("authorised")]).await } else { Ok(updates.canceled()) }
            }
            Directive::Stream { chunks, pause, bytes } => stream(&turn, updates, chunks, pause, bytes).await,
            Directive::Steps { count, pause } => step_by_step(&turn, updates, count, pause).await,
            Directive::Sleep(time) => {
                updates.working(None).await?;
                if rest(&turn, time).await { Ok(updates.complete(None)) } else { Ok(updates.canceled()) }
            }
            Directive::Stubborn(time) => {
                updates.working(None).await?;
                tokio::time::sleep(time).await;
                Ok(updates.complete(None))
            }
            Directive::Message(text) => {
                let message = updates.text(text);
                // Once there is a task to see, the answer has to be part of it.
                let unseen = turn.task.status.state == TaskState::Submitted;
                Ok(if unseen { updates.reply(message) } else { updates.complete(Some(message)) })
            }
            Directive::Artifact(sample) => complete(updates, sample::parts(sample)).await,
            Directive::Tool(name) => use_tool(updates, &name).await,
            Directive::Panic(reason) => panic!("{reason}"),
            Directive::Error(reason) => Err(RunError::new(reason)),
        }
    }

    fn may_reply_with_message(&self) -> bool {
        true
    }
}

async fn complete(mut updates: TaskUpdateSink, parts: Vec<Part>) -> Result<Finished, RunError> {
    let id = updates.new_artifact_id();
    updates.artifact(Artifact::new(id, parts)).await?;
    Ok(updates.complete(None))
}

async fn stream(
    turn: &Turn,
    mut updates: TaskUpdateSink,
    chunks: u64,
    pause: Duration,
    bytes: usize,
) -> Result<Finished, RunError> {
    let id = updates.new_artifact_id();
    for chunk in 1..=chunks {
        // The first one comes at once: callers wait for it to see whether they get a task or a message.
        let pause = if chunk > 1 { pause } else { Duration::ZERO };
        if !rest(turn, pause).await {
            return Ok(updates.canceled());
        }
        let mut text = format!("chunk-{chunk} ");
        text.extend(std::iter::repeat_n(' ', bytes.saturating_sub(text.len())));
        let piece = Artifact::new(id.clone(), vec![Part::text(text)]);
        updates.chunk(piece, chunk > 1, chunk == chunks).await?;
    }
    Ok(updates.complete(None))
}

async fn step_by_step(turn: &Turn, mut updates: TaskUpdateSink, count: u64, pause: Duration) -> Result<Finished, RunError> {
    for step in 1..=count {
        let pause = if step > 1 { pause } else { Duration::ZERO };
        if !rest(turn, pause).await {
            return Ok(updates.canceled());
        }
        let message = updates.text(format!("step {step} of {count}"));
        updates.working(Some(message)).await?;
    }
    Ok(updates.complete(None))
}

async fn use_tool(mut updates: TaskUpdateSink, name: &str) -> Result<Finished, RunError> {
    let used = updates.message(vec![tool_use("call-1", name, json!({ "question": "how many?" }))]);
    updates.working(Some(used)).await?;
    let result = updates.message(vec![tool_result("call-1", json!({ "answer": 3 }))]);
    updates.working(Some(result)).await?;
    complete(updates, vec![Part::text(format!("{name} says 3"))]).await
}

/// Waits, unless the task is cancelled first. Answers whether to go on.
async fn rest(turn: &Turn, time: Duration) -> bool {
    if !time.is_zero() {
        tokio::select! {
            () = turn.cancelled.cancelled() => {}
            () = tokio::time::sleep(time) => {}
        }
    }
    !turn.cancelled.is_cancelled()
}

const EXAMPLES: [&str; 16] = [
    "complete TEXT",
    "fail REASON",
    "reject REASON",
    "ask QUESTION",
    "auth REASON",
    "authorize MS",
    "stream CHUNKS [PAUSE_MS [BYTES]]",
    "steps COUNT [PAUSE_MS]",
    "sleep MS",
    "stubborn MS",
    "message TEXT",
    "artifact text|file|url|data|many",
    "tool NAME",
    "panic",
    "error",
    "anything else is echoed",
];

pub(super) fn card() -> AgentCard {
    let mut card = new_card("Conformance", "Does what the message says, so that every state can be seen without a model.");
    card.default_input_modes.push("*/*".to_owned());
    card.default_output_modes.push("*/*".to_owned());
    for skill in &mut card.skills {
        skill.id = "conformance".to_owned();
        skill.tags = vec!["test".to_owned()];
        skill.examples = EXAMPLES.map(str::to_owned).to_vec();
    }
    card
}
