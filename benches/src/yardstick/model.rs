//! The bodies the yardstick reads and writes: as much of A2A 1.0 as an echo needs.

use anyhow::Result;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::parrot::Parrot;

#[derive(Debug, Deserialize)]
pub(crate) struct YardstickCall {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: String,
    pub(crate) id: Value,
    #[serde(rename = "method")]
    _method: String,
    pub(crate) params: Params,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    pub(crate) message: YardstickMessage,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct YardstickMessage {
    message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    role: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct YardstickAnswer {
    jsonrpc: &'static str,
    id: Value,
    result: YardstickResult,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum YardstickResult {
    Task(YardstickTask),
    StatusUpdate(StatusUpdate),
    ArtifactUpdate(ArtifactUpdate),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct YardstickTask {
    id: String,
    context_id: String,
    status: Status,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Artifact>,
    history: Vec<YardstickMessage>,
}

#[derive(Debug, Serialize)]
struct Status {
    state: &'static str,
    timestamp: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    artifact_id: String,
    parts: Vec<Part>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusUpdate {
    task_id: String,
    context_id: String,
    status: Status,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArtifactUpdate {
    task_id: String,
    context_id: String,
    artifact: Artifact,
    append: bool,
    last_chunk: bool,
}

impl YardstickAnswer {
    pub(crate) fn new(id: Value, result: YardstickResult) -> Self {
        Self { jsonrpc: "2.0", id, result }
    }
}

/// One send: the message, and the ids and time its answer carries.
#[derive(Debug)]
pub(crate) struct YardstickTurn {
    task_id: String,
    context_id: String,
    time: DateTime<Utc>,
    message: YardstickMessage,
    echo: String,
    chunk: String,
}

impl YardstickTurn {
    #[expect(clippy::disallowed_methods, reason = "a handler written by hand reads the clock where it stands")]
    pub(crate) fn new(mut message: YardstickMessage, padding: &Padding) -> Self {
        let task_id = Uuid::now_v7().to_string();
        let context_id = match message.context_id.take() {
            Some(known) => known,
            None => Uuid::now_v7().to_string(),
        };
        let said = message.parts.first().and_then(|part| part.text.as_deref()).unwrap_or_default();
        let mut echo = Parrot.say(said);
        echo.push_str(&padding.answer);
        message.context_id = Some(context_id.clone());
        message.task_id = Some(task_id.clone());
        Self { task_id, context_id, time: Utc::now(), message, echo, chunk: format!("chunk {}", padding.event) }
    }

    pub(crate) fn completed(self) -> YardstickTask {
        let artifact = Artifact { artifact_id: Parrot::ARTIFACT.to_owned(), parts: vec![Part { text: Some(self.echo.clone()) }] };
        YardstickTask {
            status: self.status("TASK_STATE_COMPLETED"),
            id: self.task_id,
            context_id: self.context_id,
            artifacts: vec![artifact],
            history: vec![self.message],
        }
    }

    /// Event `number` of `last`: the task, then chunks of an artifact, then the end.
    pub(crate) fn event(&self, number: usize, last: usize) -> YardstickResult {
        let (task_id, context_id) = (self.task_id.clone(), self.context_id.clone());
        if number == last {
            return YardstickResult::StatusUpdate(StatusUpdate {
                task_id,
                context_id,
                status: self.status("TASK_STATE_COMPLETED"),
            });
        }
        if number == 1 {
            return YardstickResult::Task(YardstickTask {
                id: task_id,
                context_id,
                status: self.status("TASK_STATE_WORKING"),
                artifacts: Vec::new(),
                history: vec![self.message.clone()],
            });
        }
        YardstickResult::ArtifactUpdate(ArtifactUpdate {
            task_id,
            context_id,
            artifact: Artifact { artifact_id: Parrot::ARTIFACT.to_owned(), parts: vec![Part { text: Some(self.chunk.clone()) }] },
            append: number > 2,
            last_chunk: number + 1 == last,
        })
    }

    fn status(&self, state: &'static str) -> Status {
        Status { state, timestamp: self.time.to_rfc3339_opts(SecondsFormat::Millis, true) }
    }
}

/// Text that brings answers up to a wanted size.
#[derive(Debug, Clone, Default)]
pub(crate) struct Padding {
    answer: String,
    event: String,
}

impl Padding {
    /// Padding for the text `hello`, or `stream 10`: those of the load.
    pub(crate) fn fitting(answer: Option<usize>, stream: Option<usize>, events: usize) -> Result<Self> {
        let bare = Self::default();
        let turn = |text: &str| {
            let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}]});
            serde_json::from_value(message).map(|message| YardstickTurn::new(message, &bare))
        };
        let mut padding = bare.clone();
        if let Some(wanted) = answer {
            let outcome = YardstickResult::Task(turn("hello")?.completed());
            let size = serde_json::to_vec(&YardstickAnswer::new(Value::from(1), outcome))?.len();
            padding.answer = ".".repeat(wanted.saturating_sub(size));
        }
        if let Some(wanted) = stream {
            let turn = turn("stream 10")?;
            let mut size = 0;
            for number in 1..=events {
                let answer = YardstickAnswer::new(Value::from(1), turn.event(number, events));
                size += "id: 1\ndata: \n\n".len() + serde_json::to_vec(&answer)?.len();
            }
            let short = wanted.saturating_sub(size);
            padding.event = ".".repeat(short / events.saturating_sub(2).max(1));
        }
        Ok(padding)
    }
}

/// A card of about the wanted size.
pub(crate) fn card(bytes: usize) -> String {
    let with = |description: &str| {
        json!({
            "name": "yardstick", "version": "1", "description": description,
            "supportedInterfaces": [{
                "url": "http://127.0.0.1/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"
            }],
            "capabilities": {"streaming": true},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "echo", "name": "echo", "description": "says it again", "tags": ["echo"]}],
        })
        .to_string()
    };
    let missing = bytes.saturating_sub(with("").len());
    with(&".".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_brings_bodies_to_the_wanted_size() {
        let padding = Padding::fitting(Some(700), Some(5000), 10).expect("fits");
        let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]});
        let message = serde_json::from_value(message).expect("valid");
        let outcome = YardstickResult::Task(YardstickTurn::new(message, &padding).completed());
        let answer = serde_json::to_vec(&YardstickAnswer::new(Value::from(1), outcome)).expect("encodes");
        assert_eq!(answer.len(), 700);
        assert!(!padding.event.is_empty());
        assert_eq!(card(1500).len(), 1500);
    }
}
