//! Events out of a body of server-sent events.

use std::collections::VecDeque;

use bytes::Bytes;
use chancery_protocol::{NamedTask, Operation, Reply, Sent, TaskEvent, Version};
use chancery_wire::tolerant::{self, EventReader, Leniencies, Leniency, Unreadable};
use chancery_wire::{TaskNames, errors, json_rpc, scan};
use http::{HeaderMap, StatusCode};

use super::answer::AnswerReader;
use super::events::{EventSource, Silence, SkippedEvents, StreamedEvent, UnreadableEvent};
use super::head::{AnswerHead, first_byte};
use super::http::CALL_ID;
use super::limits::ClientLimits;
use super::{ClientError, Transport};
use crate::guard::GuardedBody;
use crate::sse::{Parser, ServerSentEvent};

/// What stands in the data of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SsePayload {
    /// A JSON-RPC response around the event.
    Wrapped,
    Bare,
}

#[derive(Debug)]
pub(super) struct SseEvents {
    body: Body,
    parser: Parser,
    waiting: VecDeque<ServerSentEvent>,
    reader: SseReader,
    silence: Silence,
    /// What an answer turned out to be that is no stream of events. It is read when it is whole.
    whole: Option<Vec<u8>>,
    /// Nothing but white space came yet.
    at_start: bool,
    most_bytes: usize,
}

/// Bytes that were read already, and then those that are still to come.
#[derive(Debug)]
struct Body {
    first: Option<Bytes>,
    rest: Option<GuardedBody>,
}

impl SseEvents {
    /// `first` are bytes of the body that were read already.
    pub(super) fn new(first: Option<Bytes>, rest: Option<GuardedBody>, reader: SseReader, limits: &ClientLimits) -> Self {
        Self {
            body: Body { first, rest },
            parser: Parser::new(limits.event_bytes),
            waiting: VecDeque::new(),
            reader,
            silence: Silence::new(limits.read()),
            whole: None,
            at_start: true,
            most_bytes: limits.answer_bytes,
        }
    }

    pub(super) fn skipped(&self) -> &SkippedEvents {
        &self.reader.skipped
    }

    pub(super) async fn next(&mut self) -> Result<Option<StreamedEvent>, ClientError> {
        loop {
            while let Some(event) = self.waiting.pop_front() {
                let heard = self.reader.read(&event)?;
                self.parser.reuse(event.data);
                if let Some(heard) = heard {
                    return Ok(Some(heard));
                }
            }
            let bytes = match (self.body.first.take(), &mut self.body.rest) {
                (Some(first), _) => Some(first),
                (None, Some(rest)) => self.silence.hold(rest.chunk()).await??,
                (None, None) => None,
            };
            match bytes {
                Some(bytes) => self.feed(&bytes)?,
                None => return self.end(),
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        if self.at_start
            && let Some(first) = first_byte(bytes)
        {
            self.at_start = false;
            // No line of a stream of events begins like this.
            self.whole = (first == b'{' && !self.reader.answers.is_strict()).then(Vec::new);
        }
        if let Some(whole) = &mut self.whole {
            if whole.len() + bytes.len() > self.most_bytes {
                return Err(ClientError::not_understood(format!("the answer is longer than {} bytes", self.most_bytes)));
            }
            whole.extend_from_slice(bytes);
            return Ok(());
        }
        let events = self.parser.feed(bytes);
        self.waiting.extend(events.map_err(|fault| ClientError::not_understood(fault.to_string()))?);
        Ok(())
    }

    fn end(&mut self) -> Result<Option<StreamedEvent>, ClientError> {
        self.body.rest = None;
        if let Some(whole) = self.whole.take() {
            self.reader.answers.terms.count_one(Leniency::WrongContentType);
            let read = self.reader.answers.only_event(&ok(), &whole, self.reader.operation)?;
            return Ok(read.map(|(face, event)| StreamedEvent { face, event, id: None }));
        }
        if !self.parser.is_unfinished() {
            return Ok(None);
        }
        // Bodies that end with their connection look whole wherever they are cut: only an event that can be read is one.
        let cut = || ClientError::Transport(Transport::Cut("it ended inside an event".to_owned()));
        let last = self.parser.finish().filter(|_| !self.reader.answers.is_strict()).ok_or_else(cut)?;
        match self.reader.open(&last) {
            Ok(heard) => {
                self.reader.answers.terms.count_one(Leniency::UnfinishedStream);
                Ok(heard)
            }
            Err(EventFault::Refused(fault)) => Err(fault),
            Err(EventFault::Unreadable(_)) => Err(cut()),
        }
    }
}

/// The head of an answer that is read as JSON although its own says otherwise.
fn ok() -> AnswerHead {
    AnswerHead::new(StatusCode::OK, &HeaderMap::new())
}

/// Reads the events of one stream, and remembers which of them could not be read.
#[derive(Debug)]
pub(super) struct SseReader {
    answers: AnswerReader,
    operation: Operation,
    payload: SsePayload,
    events: EventReader,
    number: usize,
    skipped: SkippedEvents,
}

/// Why an event of a stream has no content to forward.
enum EventFault {
    /// It is the agent's error, and the end of the stream.
    Refused(ClientError),
    Unreadable(Unreadable),
}

impl SseReader {
    pub(super) fn new(answers: AnswerReader, operation: Operation, payload: SsePayload) -> Self {
        let events = EventReader::new(answers.claimed());
        Self { answers, operation, payload, events, number: 0, skipped: SkippedEvents::default() }
    }

    /// Nothing for what is no event of the task, and for what cannot be read.
    pub(super) fn read(&mut self, event: &ServerSentEvent) -> Result<Option<StreamedEvent>, ClientError> {
        self.number += 1;
        match self.open(event) {
            Ok(heard) => Ok(heard),
            Err(EventFault::Refused(fault)) => Err(fault),
            Err(EventFault::Unreadable(fault)) if self.answers.is_strict() => Err(self.answers.not_a2a(fault)),
            Err(EventFault::Unreadable(fault)) => {
                self.skip(fault);
                Ok(None)
            }
        }
    }

    pub(super) fn skipped(&self) -> &SkippedEvents {
        &self.skipped
    }

    pub(super) fn answers(&self) -> &AnswerReader {
        &self.answers
    }

    /// A whole answer in the place of a stream is the only event of it.
    pub(super) fn whole(&self, head: &AnswerHead, body: &[u8]) -> Result<EventSource, ClientError> {
        // Over the original, a whole task cannot be told from an update by its members.
        let event = match self.answers.is_strict() || self.answers.version == Version::Original {
            false => self.answers.only_event(head, body, self.operation)?,
            true => {
                let form = if self.operation == Operation::SubscribeToTask { Operation::GetTask } else { Operation::SendMessage };
                Some(event_of(self.answers.reply(head, body, self.operation, form)?)?)
            }
        };
        Ok(event
            .map_or(EventSource::Ended, |(face, event)| EventSource::Answered(Box::new(StreamedEvent { face, event, id: None }))))
    }

    fn skip(&mut self, fault: Unreadable) {
        let (url, number) = (&*self.answers.url, self.number);
        let agent = self.answers.terms.notes.as_ref().map(|notes| notes.replica());
        tracing::warn!(
            agent,
            url,
            event = number,
            path = fault.path,
            reason = fault.reason,
            "skipped an event of an agent that the node could not decode"
        );
        self.answers.terms.count_one(Leniency::SkippedEvent);
        self.skipped.count += 1;
        self.skipped.first.get_or_insert_with(|| Box::new(UnreadableEvent { number, fault }));
    }

    fn open(&mut self, event: &ServerSentEvent) -> Result<Option<StreamedEvent>, EventFault> {
        let (version, is_error) = (self.answers.version, event.event == "error");
        if event.data.trim().is_empty() || (version == Version::Original && event.event == "warning") {
            return Ok(None);
        }
        let unfit = |fault: chancery_protocol::Error| Unreadable::whole(&event.data, fault.message);
        let text = scan(event.data.as_bytes(), &self.answers.json).map_err(|fault| EventFault::Unreadable(unfit(fault)))?;
        let heard = |read: Option<tolerant::ReadAnswer<_>>, answers: &AnswerReader, before: Leniencies| {
            let Some(tolerant::ReadAnswer { value: (face, event_read), leniencies }) = read else { return Ok(None) };
            if !(before.is_empty() && leniencies.is_empty()) {
                answers.terms.count(&before.into_iter().chain(leniencies).collect());
            }
            Ok(Some(StreamedEvent { face, event: event_read, id: event.id.clone() }))
        };
        // Mostly there is nothing to see in the envelope, and it need not be read.
        if self.payload == SsePayload::Wrapped
            && !is_error
            && let Some(Ok(read)) = json_rpc::usual_result(text, CALL_ID).map(|one| self.events.read(one))
        {
            return heard(read, &self.answers, Leniencies::new());
        }
        if is_error {
            return Err(EventFault::Refused(self.refused(text)));
        }
        let (payload, leniencies) = self.payload(text)?;
        match self.events.read(payload) {
            Ok(read) => heard(read, &self.answers, leniencies),
            // Not every agent gives its errors the name of one.
            Err(_) if self.payload == SsePayload::Bare && errors::read::is_rest_error(text) => {
                Err(EventFault::Refused(self.refused(text)))
            }
            Err(fault) => Err(EventFault::Unreadable(fault)),
        }
    }

    /// The event in its envelope, if it has one.
    fn payload<'a>(&self, text: &'a str) -> Result<(&'a str, Leniencies), EventFault> {
        let error = |error: &str| EventFault::Refused(ClientError::Refused(self.answers.named_error(self.operation, error)));
        if matches!(text.trim(), "[DONE]" | "{}") {
            return Ok((text, Leniencies::new()));
        }
        if self.answers.is_strict() && self.payload == SsePayload::Wrapped {
            let fault = |_| EventFault::Unreadable(Unreadable::whole(text, "no JSON-RPC response"));
            let response = json_rpc::open_response(text).map_err(fault)?;
            return response.outcome.map(|result| (result, Leniencies::new())).map_err(error);
        }
        if self.payload == SsePayload::Bare && (self.answers.is_strict() || !has_envelope(text)) {
            return Ok((text, Leniencies::new()));
        }
        let envelope = tolerant::envelope(text, CALL_ID).map_err(EventFault::Unreadable)?;
        Ok((envelope.outcome.map_err(error)?, envelope.leniencies))
    }

    /// The error that an event named `error` holds, in its envelope or bare.
    fn refused(&self, text: &str) -> ClientError {
        ClientError::Refused(match self.payload {
            SsePayload::Bare if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => {
                errors::read::rest(500, text, self.answers.version, self.operation)
            }
            _ => {
                let enveloped = tolerant::envelope(text, CALL_ID).ok().and_then(|envelope| envelope.outcome.err());
                self.answers.named_error(self.operation, enveloped.unwrap_or(text))
            }
        })
    }
}

fn has_envelope(text: &str) -> bool {
    chancery_protocol::raw_json::pick(text.trim(), ["jsonrpc"])[0].is_some()
}

fn event_of(reply: Reply) -> Result<(Option<TaskNames>, TaskEvent), ClientError> {
    match reply {
        Reply::Sent(Sent::Task(NamedTask { task, client_task_id, .. })) | Reply::Task(NamedTask { task, client_task_id, .. }) => {
            let (task_id, context_id) = (task.id.clone(), task.context_id.clone());
            let face = TaskNames { task_id, context_id, client_task_id, artifacts: Vec::new(), stays_open: false };
            Ok((Some(face), TaskEvent::Created(task)))
        }
        Reply::Sent(Sent::Message(message)) => Ok((None, TaskEvent::Replied(message))),
        _ => Err(ClientError::not_understood("a stream was asked for".to_owned())),
    }
}
