//! Events out of a body of server-sent events.

use std::collections::VecDeque;

use chancery_protocol::{Operation, Version};
use chancery_wire::{Codec, JsonLimits, errors, json_rpc, scan};

use super::events::{Heard, Silence};
use super::http::CALL_ID;
use super::limits::ClientLimits;
use super::{ClientError, Transport};
use crate::guard::GuardedBody;
use crate::sse::{Parser, ServerSentEvent};

/// What stands in the data of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// A JSON-RPC response around the event.
    Wrapped,
    Bare,
}

#[derive(Debug)]
pub(super) struct SseEvents {
    body: GuardedBody,
    parser: Parser,
    waiting: VecDeque<ServerSentEvent>,
    reader: Reader,
    silence: Silence,
}

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) codec: &'static dyn Codec,
    pub(super) version: Version,
    pub(super) operation: Operation,
    pub(super) payload: Payload,
    pub(super) json: JsonLimits,
}

impl SseEvents {
    pub(super) fn new(body: GuardedBody, reader: Reader, limits: &ClientLimits) -> Self {
        let (parser, silence) = (Parser::new(limits.event_bytes), Silence::new(limits.read()));
        Self { body, parser, waiting: VecDeque::new(), reader, silence }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Heard>, ClientError> {
        loop {
            while let Some(event) = self.waiting.pop_front() {
                let heard = self.reader.read(&event)?;
                self.parser.reuse(event.data);
                if let Some(heard) = heard {
                    return Ok(Some(heard));
                }
            }
            match self.silence.hold(self.body.chunk()).await?? {
                Some(bytes) => {
                    let events = self.parser.feed(&bytes);
                    self.waiting.extend(events.map_err(|fault| ClientError::NotUnderstood(fault.to_string()))?);
                }
                // Bodies that end with their connection look whole wherever they are cut.
                None if self.parser.is_unfinished() => {
                    return Err(ClientError::Transport(Transport::Cut("it ended inside an event".to_owned())));
                }
                None => return Ok(None),
            }
        }
    }
}

impl Reader {
    /// Nothing for what is no event of the task.
    fn read(&self, event: &ServerSentEvent) -> Result<Option<Heard>, ClientError> {
        let is_error = event.event == "error";
        if event.data.trim().is_empty() || (self.version == Version::Original && event.event == "warning") {
            return Ok(None);
        }
        let text = scan(event.data.as_bytes(), &self.json).map_err(|fault| ClientError::NotUnderstood(fault.to_string()))?;
        // Mostly there is nothing to see in the envelope, and it need not be read.
        if self.payload == Payload::Wrapped
            && let Some((face, happened)) =
                json_rpc::usual_result(text, CALL_ID).and_then(|one| self.codec.decode_event(one).ok())
        {
            return Ok(Some(Heard { face, event: happened, id: event.id.clone() }));
        }
        let payload = match self.payload {
            Payload::Wrapped => match json_rpc::open_response(text) {
                Ok(response) => {
                    response.outcome.map_err(|error| ClientError::Refused(errors::read::json_rpc(error, self.version)))?
                }
                Err(_) if is_error => return Err(ClientError::Refused(errors::read::json_rpc(text, self.version))),
                Err(fault) => return Err(ClientError::NotUnderstood(fault.to_string())),
            },
            Payload::Bare if is_error => return Err(self.refused(text)),
            Payload::Bare => text,
        };
        match self.codec.decode_event(payload) {
            Ok((face, happened)) => Ok(Some(Heard { face, event: happened, id: event.id.clone() })),
            // Not every agent gives its errors the name of one.
            Err(_) if self.payload == Payload::Bare && errors::read::is_rest_error(text) => Err(self.refused(text)),
            Err(fault) => Err(ClientError::NotUnderstood(fault.to_string())),
        }
    }

    fn refused(&self, text: &str) -> ClientError {
        ClientError::Refused(errors::read::rest(500, text, self.version, self.operation))
    }
}
