//! Version 0.3 as fasta2a's client speaks it: parts without `kind`, and results in the wrapper of 1.0.

use chancery_protocol::{AgentCard, Error, NamedTask, Operation, Reply, Request, TaskEvent};

use super::V0_3;
use super::event::{EventView, WrappedView};
use super::form::WrappedForm;
use super::request_members::SendMembers;
use super::task::TaskView;
use crate::codec::{Codec, TaskNames};
use crate::frames::Frames;
use crate::json::decode::from_json;
use crate::json::part::ReadUntagged;
use crate::json::write::write;

/// The codec of `Dialect::Wrapped0_3`. It is for callers only: agents are read by their shape.
#[derive(Clone, Copy, Debug, Default)]
pub struct V0_3Wrapped;

impl Codec for V0_3Wrapped {
    /// Reads messages whose parts may have no `kind`, and everything else as 0.3.
    fn name(&self) -> &'static str {
        "0.3 wrapped"
    }

    fn decode_request(&self, operation: Operation, params: &str) -> Result<Request, Error> {
        let send = || from_json::<SendMembers<ReadUntagged>>(params).map(Into::into);
        match operation {
            Operation::SendMessage => send().map(Request::SendMessage),
            Operation::StreamMessage => send().map(Request::StreamMessage),
            other => V0_3.decode_request(other, params),
        }
    }

    fn encode_request(&self, out: &mut Vec<u8>, request: &Request) -> Result<(), Error> {
        V0_3.encode_request(out, request)
    }

    fn encode_reply(&self, out: &mut Vec<u8>, reply: &Reply) {
        match reply {
            Reply::Sent(sent) => write(out, &WrappedView::<WrappedForm>::from(sent)),
            // As in 1.0, a task that was asked for by its id stands alone.
            Reply::Task(shown) => write(out, &TaskView::<WrappedForm>::from(&*shown.task)),
            other => V0_3.encode_reply(out, other),
        }
    }

    fn encode_listed(&self, out: &mut Vec<u8>, shown: &NamedTask, include_artifacts: bool) {
        V0_3.encode_listed(out, shown, include_artifacts);
    }

    fn decode_reply(&self, operation: Operation, result: &str) -> Result<Reply, Error> {
        V0_3.decode_reply(operation, result)
    }

    fn encode_event(&self, frames: &mut Frames, face: &TaskNames, event: &TaskEvent) {
        if let Some(event) = EventView::<WrappedForm>::of(face, event) {
            frames.push(&WrappedView::from(event), true);
        }
    }

    fn decode_event(&self, payload: &str) -> Result<(Option<TaskNames>, TaskEvent), Error> {
        V0_3.decode_event(payload)
    }

    fn encode_card(&self, card: &AgentCard) -> Vec<u8> {
        V0_3.encode_card(card)
    }

    fn decode_card(&self, text: &str) -> Result<AgentCard, Error> {
        V0_3.decode_card(text)
    }
}
