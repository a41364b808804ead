//! One codec per version and JSON form, both directions, because a control plane is a server and a client.

use std::fmt::Debug;
use std::sync::Arc;

use chancery_protocol::{AgentCard, ArtifactId, ContextId, Error, NamedTask, Operation, Reply, Request, TaskEvent, TaskId};

use crate::frames::Frames;

/// The ids of an event's task; events themselves do not repeat them.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskNames {
    /// The id of the task.
    pub task_id: TaskId,
    /// The id of the context.
    pub context_id: ContextId,
    /// The client's own name for the task, in the original protocol.
    pub client_task_id: Option<Arc<str>>,
    /// The task's artifacts in the order they were begun, for codecs that know them by their place.
    pub artifacts: Vec<ArtifactId>,
    /// The stream goes on after the event, though its state would otherwise end it: an agent that waits for an authorisation and then
    /// goes on by itself.
    pub stays_open: bool,
}

/// Bytes to model and back for one JSON form. `params` and `result` are the JSON text of a JSON-RPC call's members
/// of these names; over REST they are the joined request object and the response body.
pub trait Codec: Send + Sync + Debug {
    /// A name that no other codec has.
    fn name(&self) -> &'static str;

    /// Reads a request. Faults name the field by its path.
    fn decode_request(&self, operation: Operation, params: &str) -> Result<Request, Error>;

    /// Writes the `params` of a request.
    fn encode_request(&self, out: &mut Vec<u8>, request: &Request) -> Result<(), Error>;

    /// Writes the `result` of a reply.
    fn encode_reply(&self, out: &mut Vec<u8>, reply: &Reply);

    /// Writes one task of a page, for pages that are written task by task (`json::paging`). Nothing in versions without lists.
    fn encode_listed(&self, out: &mut Vec<u8>, shown: &NamedTask, include_artifacts: bool);

    /// Reads the `result` of a reply to `operation`.
    fn decode_reply(&self, operation: Operation, result: &str) -> Result<Reply, Error>;

    /// Writes what a stream shows of an event: usually one frame, none for what this version does not show, several
    /// where one of ours is more than one of theirs.
    fn encode_event(&self, frames: &mut Frames, face: &TaskNames, event: &TaskEvent);

    /// Whether events name artifacts by their place in the task, so that a face must say it.
    fn knows_artifacts_by_place(&self) -> bool {
        false
    }

    /// Reads one frame's payload of a stream.
    fn decode_event(&self, payload: &str) -> Result<(Option<TaskNames>, TaskEvent), Error>;

    /// Writes an agent card in this version's shape.
    fn encode_card(&self, card: &AgentCard) -> Vec<u8>;

    /// Reads an agent card of this version.
    fn decode_card(&self, text: &str) -> Result<AgentCard, Error>;
}
