//! What the gateway told an agent of the call, taken out of what the agent says.

use std::sync::Arc;

use chancery_protocol::{Artifact, ArtifactChunk, Message, Metadata, TaskEvent};

use super::super::lineage;

/// The event without the gateway's own words on lineage: some agents copy the metadata of a request into the task they make of
/// it, and the hop token in there is for the agent alone.
pub(super) fn without_echo(mut event: TaskEvent) -> TaskEvent {
    match &mut event {
        TaskEvent::Status(change) => {
            clean(&mut change.metadata);
            change.status.message.iter_mut().for_each(clean_message);
        }
        TaskEvent::Artifact(chunk) => clean_chunk(chunk),
        TaskEvent::Replied(message) => clean_message(message),
        TaskEvent::Created(_) | TaskEvent::Said(_) => {}
    }
    event
}

fn clean_message(message: &mut Arc<Message>) {
    if message.metadata.as_ref().is_some_and(lineage::may_speak_of_call) {
        clean(&mut Arc::make_mut(message).metadata);
    }
}

fn clean_chunk(chunk: &mut ArtifactChunk) {
    clean(&mut chunk.metadata);
    if chunk.artifact.metadata.as_ref().is_some_and(lineage::may_speak_of_call) {
        let artifact: &mut Artifact = Arc::make_mut(&mut chunk.artifact);
        clean(&mut artifact.metadata);
    }
}

fn clean(metadata: &mut Option<Metadata>) {
    if metadata.as_ref().is_some_and(lineage::may_speak_of_call) {
        *metadata = metadata.as_ref().and_then(lineage::returned);
    }
}
