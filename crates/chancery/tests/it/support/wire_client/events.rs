//! The events of one open stream, whatever it comes over.

use std::collections::VecDeque;

use chancery_outbound::{Parser, ServerSentEvent};
use chancery_protocol::{Binding, Error, TaskEvent};
use chancery_wire::TaskNames;
use chancery_wire::pb::{v0_3, v1};
use serde_json::Value;
use tonic::{Response, Streaming};

use super::Combination;
use super::http::{codec, event_result};
use super::refusal::Refusal;
use super::swp::SwpStream;

const EVENT_BYTES: usize = 8 * 1024 * 1024;

/// One event as a reader sees it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) event: TaskEvent,
    pub(crate) face: Option<TaskNames>,
    /// The id to resume from, where the wire has one.
    pub(crate) id: Option<u64>,
    /// What older versions say about the end of the stream.
    pub(crate) is_final: Option<bool>,
}

pub(crate) enum EventStream {
    Sse { response: reqwest::Response, parser: Parser, waiting: VecDeque<ServerSentEvent>, combination: Combination },
    Newer(Streaming<v1::proto::StreamResponse>),
    Older(Streaming<v0_3::proto::StreamResponse>),
    Swp(Box<SwpStream>),
}

impl EventStream {
    pub(super) fn sse(response: reqwest::Response, combination: Combination) -> Self {
        Self::Sse { response, parser: Parser::new(EVENT_BYTES), waiting: VecDeque::new(), combination }
    }

    pub(super) fn newer(response: Response<Streaming<v1::proto::StreamResponse>>) -> Self {
        Self::Newer(response.into_inner())
    }

    pub(super) fn older(response: Response<Streaming<v0_3::proto::StreamResponse>>) -> Self {
        Self::Older(response.into_inner())
    }

    /// Waits for the next event; nothing at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Seen>, Refusal> {
        match self {
            Self::Swp(stream) => stream.next().await,
            Self::Newer(stream) => {
                let Some(message) = stream.message().await.map_err(Refusal::Grpc)? else { return Ok(None) };
                Ok(Some(read(v1::event::read(message), None, None)))
            }
            Self::Older(stream) => {
                use v0_3::proto::stream_response::Payload;
                let Some(message) = stream.message().await.map_err(Refusal::Grpc)? else { return Ok(None) };
                let is_final = match &message.payload {
                    Some(Payload::StatusUpdate(update)) => Some(update.r#final),
                    _ => None,
                };
                Ok(Some(read(v0_3::event::read(message), None, is_final)))
            }
            Self::Sse { response, parser, waiting, combination } => {
                while waiting.is_empty() {
                    let Some(bytes) = response.chunk().await.expect("the stream is not cut off") else { return Ok(None) };
                    waiting.extend(parser.feed(&bytes).expect("events of a sane size"));
                }
                let event = waiting.pop_front().expect("there is one");
                let payload = match combination.binding {
                    Binding::JsonRpc => event_result(&event.data)?,
                    _ if event.event == "error" => return Err(Refusal::rest(500, &event.data)),
                    _ => event.data,
                };
                let raw: Value = serde_json::from_str(&payload).expect("an event is JSON");
                let is_final = raw.get("final").or(raw["statusUpdate"].get("final")).and_then(Value::as_bool);
                let id = event.id.map(|id| id.parse().expect("ids are numbers"));
                Ok(Some(read(codec(*combination).decode_event(&payload), id, is_final)))
            }
        }
    }
}

fn read(event: Result<(Option<TaskNames>, TaskEvent), Error>, id: Option<u64>, is_final: Option<bool>) -> Seen {
    let (face, event) = event.unwrap_or_else(|fault| panic!("an event nobody can read: {fault}"));
    Seen { event, face, id, is_final }
}
