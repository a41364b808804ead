//! The SDK's types in ours and back. `out` is towards the executor, `in` is what it said.

use std::collections::HashMap;

use chancery_protocol::{Artifact, Json, Message, MessageId, Metadata, Part, PartContent, Role, Task, TaskId, TaskState};
use chrono::DateTime;
use serde_json::Value;

pub(crate) fn task_out(task: &Task) -> a2a::Task {
    let status = a2a::TaskStatus {
        state: state_out(task.status.state),
        message: task.status.message.as_deref().map(message_out),
        timestamp: task.status.timestamp.and_then(|time| DateTime::from_timestamp_micros(time.micros())),
    };
    a2a::Task {
        id: task.id.to_string(),
        context_id: task.context_id.to_string(),
        status,
        artifacts: filled(task.artifacts.iter().map(|artifact| artifact_out(artifact)).collect()),
        history: filled(task.history.iter().map(|message| message_out(message)).collect()),
        metadata: task.metadata.as_ref().map(metadata_out),
    }
}

pub(crate) fn message_out(message: &Message) -> a2a::Message {
    a2a::Message {
        message_id: message.message_id.to_string(),
        context_id: message.context_id.as_ref().map(ToString::to_string),
        task_id: message.task_id.as_ref().map(ToString::to_string),
        role: match message.role {
            Role::User => a2a::Role::User,
            Role::Agent => a2a::Role::Agent,
        },
        parts: message.parts.iter().map(part_out).collect(),
        metadata: message.metadata.as_ref().map(metadata_out),
        extensions: filled(message.extensions.clone()),
        reference_task_ids: filled(message.reference_task_ids.iter().map(ToString::to_string).collect()),
    }
}

/// The ids of task and context are set where the message is recorded.
pub(crate) fn message_in(message: a2a::Message) -> Message {
    let id = if message.message_id.is_empty() { a2a::new_message_id() } else { message.message_id };
    Message {
        message_id: MessageId::new(id),
        context_id: None,
        task_id: None,
        role: match message.role {
            a2a::Role::User => Role::User,
            // It was the agent that said it.
            a2a::Role::Agent | a2a::Role::Unspecified => Role::Agent,
        },
        parts: message.parts.into_iter().map(part_in).collect(),
        metadata: message.metadata.map(metadata_in),
        extensions: message.extensions.unwrap_or_default(),
        reference_task_ids: message.reference_task_ids.unwrap_or_default().into_iter().map(TaskId::from).collect(),
        unknown: Default::default(),
    }
}

fn artifact_out(artifact: &Artifact) -> a2a::Artifact {
    a2a::Artifact {
        artifact_id: artifact.artifact_id.to_string(),
        name: artifact.name.clone(),
        description: artifact.description.clone(),
        parts: artifact.parts.iter().map(part_out).collect(),
        metadata: artifact.metadata.as_ref().map(metadata_out),
        extensions: filled(artifact.extensions.clone()),
    }
}

pub(crate) fn artifact_in(artifact: a2a::Artifact) -> Artifact {
    Artifact {
        artifact_id: artifact.artifact_id.into(),
        name: artifact.name,
        description: artifact.description,
        parts: artifact.parts.into_iter().map(part_in).collect(),
        metadata: artifact.metadata.map(metadata_in),
        extensions: artifact.extensions.unwrap_or_default(),
        unknown: Default::default(),
    }
}

fn part_out(part: &Part) -> a2a::Part {
    let content = match &part.content {
        PartContent::Text(text) => a2a::PartContent::Text(text.clone()),
        PartContent::Raw(bytes) => a2a::PartContent::Raw(bytes.to_vec()),
        PartContent::Url(url) => a2a::PartContent::Url(url.clone()),
        PartContent::Data(json) => a2a::PartContent::Data(json.to_value()),
    };
    a2a::Part {
        content,
        filename: part.filename.clone(),
        media_type: part.media_type.clone(),
        metadata: part.metadata.as_ref().map(metadata_out),
    }
}

fn part_in(part: a2a::Part) -> Part {
    let content = match part.content {
        a2a::PartContent::Text(text) => PartContent::Text(text),
        a2a::PartContent::Raw(bytes) => PartContent::Raw(bytes.into()),
        a2a::PartContent::Url(url) => PartContent::Url(url),
        a2a::PartContent::Data(value) => PartContent::Data(Json::from_value(&value)),
    };
    Part {
        content,
        metadata: part.metadata.map(metadata_in),
        filename: part.filename,
        media_type: part.media_type,
        unknown: Default::default(),
    }
}

pub(crate) fn metadata_out(metadata: &Metadata) -> HashMap<String, Value> {
    metadata.to_object().into_iter().collect()
}

pub(crate) fn metadata_in(metadata: HashMap<String, Value>) -> Metadata {
    Metadata::from_object(metadata.into_iter().collect())
}

fn state_out(state: TaskState) -> a2a::TaskState {
    match state {
        TaskState::Unspecified => a2a::TaskState::Unspecified,
        TaskState::Submitted => a2a::TaskState::Submitted,
        TaskState::Working => a2a::TaskState::Working,
        TaskState::Completed => a2a::TaskState::Completed,
        TaskState::Failed => a2a::TaskState::Failed,
        TaskState::Canceled => a2a::TaskState::Canceled,
        TaskState::InputRequired => a2a::TaskState::InputRequired,
        TaskState::Rejected => a2a::TaskState::Rejected,
        TaskState::AuthRequired => a2a::TaskState::AuthRequired,
    }
}

pub(crate) fn state_in(state: &a2a::TaskState) -> TaskState {
    match state {
        a2a::TaskState::Unspecified => TaskState::Unspecified,
        a2a::TaskState::Submitted => TaskState::Submitted,
        a2a::TaskState::Working => TaskState::Working,
        a2a::TaskState::Completed => TaskState::Completed,
        a2a::TaskState::Failed => TaskState::Failed,
        a2a::TaskState::Canceled => TaskState::Canceled,
        a2a::TaskState::InputRequired => TaskState::InputRequired,
        a2a::TaskState::Rejected => TaskState::Rejected,
        a2a::TaskState::AuthRequired => TaskState::AuthRequired,
    }
}

/// The SDK leaves an empty list out.
fn filled<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chancery_protocol::{TaskStatus, Timestamp};

    use super::*;

    fn everything() -> Task {
        let metadata = || Some(Metadata::from_object([("n".to_owned(), Value::from(1.5))].into_iter().collect()));
        let of = |content| Part {
            content,
            metadata: metadata(),
            filename: Some("f".into()),
            media_type: Some("a/b".into()),
            unknown: Default::default(),
        };
        let parts = || {
            vec![
                of(PartContent::Text("t".into())),
                of(PartContent::Raw(vec![0, 255].into())),
                of(PartContent::Url("https://example.org/f".into())),
                of(PartContent::Data(Json::from_value(&serde_json::json!({"a": [null]})))),
            ]
        };
        let message = |role| Message {
            metadata: metadata(),
            extensions: vec!["x".into()],
            reference_task_ids: vec!["other".into()],
            ..Message::of_parts(role, "m", parts())
        };
        let artifact = Artifact {
            name: Some("n".into()),
            description: Some("d".into()),
            metadata: metadata(),
            extensions: vec!["x".into()],
            ..Artifact::new("a", parts())
        };
        Task {
            id: "t".into(),
            context_id: "c".into(),
            status: TaskStatus {
                state: TaskState::Working,
                message: Some(Arc::new(message(Role::Agent))),
                timestamp: Some(Timestamp::from_micros(1_000_000)),
                unknown: Default::default(),
            },
            artifacts: vec![Arc::new(artifact)],
            history: vec![Arc::new(message(Role::User))],
            metadata: metadata(),
            unknown: Default::default(),
        }
    }

    #[test]
    fn a_task_reads_the_same_on_both_sides() {
        let task = everything();
        let ours = serde_json::to_value(&task).unwrap();
        let theirs = serde_json::to_value(task_out(&task)).unwrap();
        // They write a time without a fraction where we write milliseconds; as times they are equal.
        let time = theirs["status"]["timestamp"].as_str().and_then(|time| Timestamp::parse(time).ok());
        assert_eq!(time, task.status.timestamp);
        let mut aligned = theirs;
        aligned["status"]["timestamp"] = ours["status"]["timestamp"].clone();
        assert_eq!(aligned, ours);
    }

    #[test]
    fn nothing_is_lost_on_the_way_there_and_back() {
        let task = everything();
        assert_eq!(artifact_in(artifact_out(&task.artifacts[0])), *task.artifacts[0]);
        assert_eq!(message_in(message_out(&task.history[0])), *task.history[0]);
        for state in TaskState::ALL {
            assert_eq!(state_in(&state_out(state)), state);
        }
    }

    #[test]
    fn a_message_without_id_or_role_gets_both() {
        let message = message_in(a2a::Message { message_id: String::new(), ..a2a::Message::new(a2a::Role::Unspecified, vec![]) });
        assert!(!message.message_id.as_str().is_empty());
        assert_eq!(message.role, Role::Agent);
    }
}
