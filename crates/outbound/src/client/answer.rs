//! Reads what an agent answers over HTTP: a reply, or one event of a stream.

use std::sync::Arc;

use chancery_protocol::{Binding, Error, ErrorKind, Operation, Reply, TaskEvent, Version};
use chancery_wire::tolerant::{self, ClaimedForm, EventReader, Leniencies, Leniency, Unreadable};
use chancery_wire::{JsonLimits, TaskNames, errors, json_rpc, scan};
use serde_json::Value;

use super::error::{ClientError, NotUnderstood};
use super::head::{AnswerHead, looks_like_json};
use super::http::CALL_ID;
use super::reading::ReadingTerms;

/// Reads the answers of one agent at one interface.
#[derive(Clone, Debug)]
pub(super) struct AnswerReader {
    pub(super) version: Version,
    pub(super) binding: Binding,
    pub(super) url: Arc<str>,
    pub(super) json: JsonLimits,
    pub(super) terms: ReadingTerms,
}

/// The result in an answer, and what was overlooked to find it.
struct ResultText<'a> {
    text: &'a str,
    leniencies: Leniencies,
}

impl AnswerReader {
    pub(super) fn claimed(&self) -> ClaimedForm {
        ClaimedForm { version: self.version, is_rest: self.binding == Binding::Rest, is_strict: self.terms.is_strict }
    }

    pub(super) fn is_strict(&self) -> bool {
        self.terms.is_strict
    }

    /// Reads a whole answer. `asked` is what the agent was asked for; `form` the operation whose reply its answer has the shape of.
    pub(super) fn reply(&self, head: &AnswerHead, body: &[u8], asked: Operation, form: Operation) -> Result<Reply, ClientError> {
        if form == Operation::DeletePushConfig && head.status.is_success() && body.trim_ascii().is_empty() {
            // Nothing to say about what is gone.
            return Ok(Reply::PushConfigDeleted);
        }
        let ResultText { text, mut leniencies } = self.result(head, body, asked)?;
        let read = tolerant::reply(self.claimed(), form, text).map_err(|fault| self.not_a2a(fault))?;
        leniencies.extend(read.leniencies);
        self.terms.count(&leniencies);
        Ok(read.value)
    }

    /// Reads a whole answer where a stream was asked for: its only event. Nothing, if it says nothing.
    pub(super) fn only_event(
        &self,
        head: &AnswerHead,
        body: &[u8],
        asked: Operation,
    ) -> Result<Option<(Option<TaskNames>, TaskEvent)>, ClientError> {
        let ResultText { text, mut leniencies } = self.result(head, body, asked)?;
        let read = EventReader::new(self.claimed()).read(text).map_err(|fault| self.not_a2a(fault))?;
        leniencies.insert(Leniency::JsonForStream);
        let read = read.map(|read| {
            leniencies.extend(read.leniencies);
            read.value
        });
        self.terms.count(&leniencies);
        Ok(read)
    }

    fn result<'a>(&self, head: &AnswerHead, body: &'a [u8], asked: Operation) -> Result<ResultText<'a>, ClientError> {
        let mut leniencies = Leniencies::new();
        if !head.may_be_json() {
            if self.is_strict() || !looks_like_json(body) {
                return Err(self.no_json(head, asked, body, &format!("it is {:?} and not JSON", head.media_type)));
            }
            leniencies.insert(Leniency::WrongContentType);
        }
        let text = scan(body, &self.json).map_err(|fault| self.no_json(head, asked, body, &fault.message))?;
        if self.binding == Binding::Rest && !head.status.is_success() {
            return Err(self.rest_error(head, asked, text));
        }
        if self.is_strict() {
            return self.strict_result(head, asked, text);
        }
        if self.binding == Binding::Rest && !has_envelope(text) {
            return Ok(ResultText { text: text.trim(), leniencies });
        }
        let envelope = tolerant::envelope(text, CALL_ID).map_err(|fault| match head.status.is_success() {
            true => self.not_a2a(fault),
            false => ClientError::Refused(head.error(asked, body)),
        })?;
        // Over one URL for everything, the status of an answer says nothing against its result.
        if !head.status.is_success() && envelope.outcome.is_ok() && envelope.leniencies.contains(&Leniency::NoEnvelope) {
            return Err(ClientError::Refused(head.error(asked, body)));
        }
        let text = envelope.outcome.map_err(|error| ClientError::Refused(self.refusal(head, asked, error)))?;
        leniencies.extend(envelope.leniencies);
        Ok(ResultText { text, leniencies })
    }

    fn strict_result<'a>(&self, head: &AnswerHead, asked: Operation, text: &'a str) -> Result<ResultText<'a>, ClientError> {
        let exact = |text| Ok(ResultText { text, leniencies: Leniencies::new() });
        if self.binding == Binding::Rest {
            return exact(text.trim());
        }
        let response = json_rpc::open_response(text);
        let response = response.map_err(|_| self.no_json(head, asked, text.as_bytes(), "no JSON-RPC response"))?;
        let result = response.outcome.map_err(|error| ClientError::Refused(self.refusal(head, asked, error)))?;
        match response.id {
            CALL_ID => exact(result),
            _ => Err(self.odd("it answers another call")),
        }
    }

    /// The error in an envelope.
    pub(super) fn refusal(&self, head: &AnswerHead, asked: Operation, error: &str) -> Error {
        let mut error = self.named_error(asked, error);
        if let (ErrorKind::Internal, Some(kind)) = (error.kind, errors::read::of_http_status(head.status.as_u16(), asked)) {
            error.kind = kind;
        }
        error.retry_after = head.retry_after.or(error.retry_after);
        error
    }

    /// The error that an agent sent as JSON-RPC has it, or as plain text.
    pub(super) fn named_error(&self, asked: Operation, error: &str) -> Error {
        let value: Value = serde_json::from_str(error).unwrap_or_default();
        let mut read = errors::read::json_rpc(error, self.version);
        let plain = value.as_str().or_else(|| value["error"].as_str()).or_else(|| value["detail"].as_str());
        if let Some(text) = plain.or_else(|| (value.is_null() && !error.trim().is_empty()).then(|| error.trim())) {
            read.message = text.lines().next().unwrap_or_default().chars().take(300).collect::<String>().into();
        }
        // Some agents have one code for everything.
        let names_a_task = matches!(asked, Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask);
        if read.kind == ErrorKind::Internal && names_a_task && read.message.to_ascii_lowercase().contains("not found") {
            read.kind = ErrorKind::TaskNotFound;
        }
        read
    }

    fn rest_error(&self, head: &AnswerHead, asked: Operation, text: &str) -> ClientError {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let is_structured = value["error"].is_object() || value["code"].is_number() || value["type"].is_string();
        if !is_structured {
            return ClientError::Refused(head.error(asked, text.as_bytes()));
        }
        let mut error = errors::read::rest(head.status.as_u16(), text, self.version, asked);
        error.retry_after = head.retry_after.or(error.retry_after);
        ClientError::Refused(error)
    }

    /// An answer whose body is no JSON: its status may say what it means.
    fn no_json(&self, head: &AnswerHead, asked: Operation, body: &[u8], why: &str) -> ClientError {
        match head.status.is_success() {
            false => ClientError::Refused(head.error(asked, body)),
            true => self.odd(why),
        }
    }

    pub(super) fn odd(&self, why: &str) -> ClientError {
        ClientError::not_understood(format!("it answered with bytes that are not A2A {}: {why}", self.version))
    }

    pub(super) fn not_a2a(&self, fault: Unreadable) -> ClientError {
        let reason = format!("it answered with bytes that are not A2A {}: {fault}", self.version);
        ClientError::NotUnderstood(NotUnderstood { reason, at: Some(Box::new(fault)) })
    }
}

/// Some agents put the envelope of JSON-RPC around their REST answers too.
fn has_envelope(text: &str) -> bool {
    let [jsonrpc, result, error] = chancery_protocol::raw_json::pick(text.trim(), ["jsonrpc", "result", "error"]);
    jsonrpc.is_some() && (result.is_some() || error.is_some())
}
