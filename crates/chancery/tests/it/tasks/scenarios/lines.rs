//! Tasks, messages and events in one line each, the same for every version.

use chancery_protocol::{Message, Part, PartContent, Role, Task, TaskEvent, TaskState, TaskStatus, Version};

pub(crate) fn state(state: TaskState) -> String {
    state.name().trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}

/// The nearest that a version can say: the original has no word for two of the states.
pub(crate) fn state_in(version: Version, word: &str) -> &str {
    match (version, word) {
        (Version::Original, "rejected") => "failed",
        (Version::Original, "auth-required") => "input-required",
        _ => word,
    }
}

pub(crate) fn parts(parts: &[Part]) -> String {
    parts.iter().map(part).collect::<Vec<_>>().join("|")
}

fn part(part: &Part) -> String {
    let known = [&part.filename, &part.media_type].into_iter().flatten().map(|fact| format!(" {fact}")).collect::<String>();
    match &part.content {
        // What a text's media type and name are does not survive in the older versions.
        PartContent::Text(text) => text.clone(),
        PartContent::Raw(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("<{hex}{known}>")
        }
        PartContent::Url(url) => format!("<{url}{known}>"),
        // Read and written again, so that members are in one order.
        PartContent::Data(json) => json.to_value().to_string(),
    }
}

pub(crate) fn message(message: &Message) -> String {
    let who = match message.role {
        Role::User => "user",
        Role::Agent => "agent",
    };
    format!("{who}: {}", parts(&message.parts))
}

pub(crate) fn history(task: &Task) -> Vec<String> {
    task.history.iter().map(|said| message(said)).collect()
}

pub(crate) fn artifacts(task: &Task) -> Vec<String> {
    task.artifacts.iter().map(|artifact| parts(&artifact.parts)).collect()
}

fn status(status: &TaskStatus) -> String {
    match &status.message {
        Some(said) => format!("{}: {}", state(status.state), parts(&said.parts)),
        None => state(status.state),
    }
}

/// `task STATE[: WORDS]`, `status STATE[: WORDS]`, `artifact TEXT`, `artifact+ TEXT` for one more piece, `(last)` behind the last
/// piece, and `message WORDS`.
pub(crate) fn event(event: &TaskEvent) -> String {
    match event {
        TaskEvent::Created(task) => format!("task {}", status(&task.status)),
        TaskEvent::Said(said) => format!("said {}", parts(&said.parts)),
        TaskEvent::Status(change) => format!("status {}", status(&change.status)),
        TaskEvent::Artifact(chunk) => {
            let (more, last) = (if chunk.append { "+" } else { "" }, if chunk.last_chunk { " (last)" } else { "" });
            format!("artifact{more} {}{last}", parts(&chunk.artifact.parts))
        }
        TaskEvent::Replied(said) => format!("message {}", parts(&said.parts)),
    }
}

/// A line as this version can show it: streams of the original have neither tasks nor messages.
pub(crate) fn event_in(version: Version, line: &str) -> String {
    if version != Version::Original {
        return line.to_owned();
    }
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (word, said) = rest.split_once(": ").map_or((rest, None), |(word, said)| (word, Some(said)));
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    match kind {
        "task" | "status" => format!("status {}{said}", state_in(version, word)),
        "message" => format!("status completed: {rest}"),
        _ => line.to_owned(),
    }
}
