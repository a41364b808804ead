//! The echo agent: every message becomes a task that completes with one text artifact.

use async_trait::async_trait;
use chancery_core::{Finished, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{AgentCard, Artifact, ArtifactId, Message, Part, PartContent};

use super::card::new_card;

/// An agent that completes every task with the text it was sent.
#[derive(Debug)]
pub struct Echo {
    /// One task has one artifact, so all of them can share one id.
    artifact_id: ArtifactId,
}

impl Default for Echo {
    fn default() -> Self {
        Self { artifact_id: ArtifactId::from("echo") }
    }
}

#[async_trait]
impl TaskRunner for Echo {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let parts = vec![Part::text(echoed(&turn.message))];
        updates.artifact(Artifact::new(self.artifact_id.clone(), parts)).await?;
        Ok(updates.complete(None))
    }
}

/// The text of the message, one line per part. A part that is not text is named.
fn echoed(message: &Message) -> String {
    match message.parts.as_slice() {
        [Part { content: PartContent::Text(text), .. }] => text.clone(),
        parts => parts.iter().map(named).collect::<Vec<_>>().join("\n"),
    }
}

fn named(part: &Part) -> String {
    let what = match &part.content {
        PartContent::Text(text) => return text.clone(),
        PartContent::Raw(bytes) => format!("file of {} bytes", bytes.len()),
        PartContent::Url(url) => format!("link to {url}"),
        PartContent::Data(json) => format!("data {}", json.text()),
    };
    let known = [&part.filename, &part.media_type].into_iter().flatten().map(|fact| format!(", {fact}"));
    format!("[{what}{}]", known.collect::<String>())
}

pub(super) fn card() -> AgentCard {
    let mut card = new_card("Echo", "Completes every task with one artifact: the text it was sent.");
    card.default_input_modes.push("*/*".to_owned());
    for skill in &mut card.skills {
        skill.id = "echo".to_owned();
        skill.tags = vec!["echo".to_owned()];
        skill.examples = vec!["hello".to_owned()];
    }
    card
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::Role;
    use serde_json::json;

    #[test]
    fn text_is_joined_and_other_parts_are_named() {
        let file = Part {
            filename: Some("a.bin".into()),
            media_type: Some("application/x".into()),
            ..Part::new(PartContent::Raw(bytes::Bytes::from_static(b"123")))
        };
        let link = Part::new(PartContent::Url("https://example.org/x".into()));
        let parts = vec![Part::text("one"), file, link, Part::data(&json!({ "a": 1 })), Part::text("two")];
        assert_eq!(
            echoed(&Message::of_parts(Role::User, "m", parts)),
            "one\n[file of 3 bytes, a.bin, application/x]\n[link to https://example.org/x]\n[data {\"a\":1}]\ntwo"
        );
        assert_eq!(echoed(&Message::text(Role::User, "m", "alone")), "alone");
    }
}
