//! JSON-RPC and REST: the version's codec does the JSON, the guarded client the rest.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use chancery_protocol::{Binding, Error, ErrorKind, GetTask, Operation, Reply, Request, Version};
use chancery_wire::json::codecs::codec;
use chancery_wire::json::methods;
use chancery_wire::tolerant::Leniency;
use chancery_wire::{Codec, JsonLimits, rest};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::ClientError;
use super::answer::AnswerReader;
use super::error::{Transport, WasSent};
use super::events::EventSource;
use super::fold::TaskPicture;
use super::head::{AnswerHead, looks_like_events, looks_like_json};
use super::interface::{Interface, operation_url, place_of_operations};
use super::limits::ClientLimits;
use super::reading::ReadingTerms;
use super::sse::{SseEvents, SsePayload, SseReader};
use crate::guard::{Fetch, Guard, GuardError, GuardedBody, GuardedClient, StreamedResponse};
use crate::sse::Parser;
use crate::terms::RequestSigner;

#[derive(Debug)]
pub(super) struct HttpAgent {
    client: GuardedClient,
    url: String,
    /// The same but for the slash at its end, once the agent has redirected a call and answered there.
    slashed: OnceLock<String>,
    /// The URL, for logs.
    shown_url: Arc<str>,
    binding: Binding,
    version: Version,
    codec: &'static dyn Codec,
    limits: ClientLimits,
    json: JsonLimits,
}

/// What goes with every request of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) signer: Option<&'a RequestSigner>,
}

impl Outgoing<'_> {
    /// The request with its signature, if it gets one. Nothing of the request may change afterwards.
    fn signed(&self, mut fetch: Fetch) -> Result<Fetch, ClientError> {
        let Some(signer) = self.signer else { return Ok(fetch) };
        let unsigned = |fault: String| ClientError::NotAsked(Error::invalid_field("signature", format!("not made: {fault}")));
        let url = url::Url::parse(&fetch.url).map_err(|fault| unsigned(fault.to_string()))?;
        signer.sign(&fetch.method, &url, &fetch.body, &mut fetch.headers).map_err(unsigned)?;
        Ok(fetch)
    }
}

const AGENT: HeaderValue = HeaderValue::from_static(concat!("chancery/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ANY_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json, application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Calls share no connection state, so one id does for all of them.
pub(super) const CALL_ID: &str = "\"1\"";
/// Room for a request of the usual size, so that its buffer is not grown while it is written.
const USUAL_REQUEST: usize = 1024;

impl HttpAgent {
    pub(super) fn new(guard: Guard, interface: &Interface, limits: &ClientLimits) -> Result<Self, ClientError> {
        let target = guard.check(&interface.url).map_err(|blocked| ClientError::from(GuardError::from(blocked)))?;
        let url = match interface.binding {
            Binding::Rest if target.url().query().is_some() => {
                return Err(ClientError::NotAsked(Error::invalid_field("url", "paths cannot be added to a query")));
            }
            Binding::Rest => {
                let place = place_of_operations(&interface.url);
                let above = place.and_then(|place| place.strip_suffix("/v1").filter(|_| interface.version == Version::V0_3));
                above.or(place).unwrap_or_else(|| interface.url.trim_end_matches('/')).to_owned()
            }
            _ => interface.url.clone(),
        };
        Ok(Self {
            client: guard.client(),
            shown_url: url.as_str().into(),
            url,
            slashed: OnceLock::new(),
            binding: interface.binding,
            version: interface.version,
            codec: codec(interface.version, interface.binding),
            limits: limits.clone(),
            json: limits.json(),
        })
    }

    pub(super) async fn call(
        &self,
        request: &Request,
        outgoing: Outgoing<'_>,
        left: Duration,
        reading: &ReadingTerms,
    ) -> Result<Reply, ClientError> {
        let until = Instant::now() + left;
        match (self.ask(request, outgoing, left, reading).await, request) {
            // Some agents say only that they canceled, not what became of the task.
            (Err(ClientError::NotUnderstood(_)), Request::CancelTask(cancel))
                if self.version == Version::Original || !reading.is_strict =>
            {
                reading.count_one(Leniency::NoTaskInAnswer);
                let get = GetTask { tenant: cancel.tenant.clone(), id: cancel.id.clone(), history_length: None };
                self.ask(&Request::GetTask(get), outgoing, until.saturating_duration_since(Instant::now()), reading).await
            }
            (outcome, _) => outcome,
        }
    }

    async fn ask(
        &self,
        request: &Request,
        outgoing: Outgoing<'_>,
        left: Duration,
        reading: &ReadingTerms,
    ) -> Result<Reply, ClientError> {
        let operation = request.operation();
        let until = Instant::now() + left;
        let mut fetched = self.client.fetch(outgoing.signed(self.fetch_one(request, outgoing, left)?)?).await;
        if let Some(url) = self.other_slash(fetched.as_ref().err(), reading) {
            // Both calls share the time there is for one.
            let left = until.saturating_duration_since(Instant::now());
            let again = Fetch { url: url.clone(), ..self.fetch_one(request, outgoing, left)? };
            let answered = self.client.fetch(outgoing.signed(again)?).await;
            if self.is_there(answered.as_ref().ok().map(|fetched| fetched.status), url, reading) {
                fetched = answered;
            }
        }
        let fetched = fetched?;
        let head = AnswerHead::new(fetched.status, &fetched.headers);
        let is_stream = (head.is_events() && !looks_like_json(&fetched.body)) || looks_like_events(&fetched.body);
        if is_stream && head.status.is_success() && !reading.is_strict {
            return self.last_picture(&fetched.body, operation, reading);
        }
        self.answers(reading).reply(&head, &fetched.body, operation, operation)
    }

    pub(super) async fn stream(
        &self,
        request: &Request,
        outgoing: Outgoing<'_>,
        left: Duration,
        reading: &ReadingTerms,
    ) -> Result<EventSource, ClientError> {
        let until = Instant::now() + left;
        let mut opened = self.client.stream(outgoing.signed(self.fetch_stream(request, outgoing, left)?)?).await;
        if let Some(url) = self.other_slash(opened.as_ref().err(), reading) {
            let left = until.saturating_duration_since(Instant::now());
            let again = Fetch { url: url.clone(), ..self.fetch_stream(request, outgoing, left)? };
            let answered = self.client.stream(outgoing.signed(again)?).await;
            if self.is_there(answered.as_ref().ok().map(|opened| opened.status), url, reading) {
                opened = answered;
            }
        }
        let reader = |payload| SseReader::new(self.answers(reading), request.operation(), payload);
        let opened = self.opened(opened, reader(self.payload()), until).await;
        match (opened, request) {
            (Err(fault), Request::SubscribeToTask(_)) if self.may_know_another_way(&fault) => {
                let Some(other) = self.other_way(request, self.fetch_stream(request, outgoing, left)?) else { return Err(fault) };
                let other = outgoing.signed(other)?;
                let again = async {
                    let until = Instant::now() + left;
                    let opened = self.client.stream(other).await;
                    self.opened(opened, reader(SsePayload::Bare), until).await
                };
                Box::pin(again).await.map_err(|_| fault)
            }
            (opened, _) => opened,
        }
    }

    /// The address with the other ending, if a call was redirected in a way that keeps its method, which means that nothing was
    /// executed. Web frameworks redirect so where an agent is mounted at a path and its card lacks the slash, or has one too many.
    /// Where a redirect points to is not read, so it leads nowhere else.
    fn other_slash(&self, fault: Option<&GuardError>, reading: &ReadingTerms) -> Option<String> {
        let kept = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
        let is_moved = matches!(fault, Some(GuardError::Redirect(status)) if kept.contains(status));
        let is_possible = is_moved && self.binding == Binding::JsonRpc && !reading.is_strict;
        is_possible.then(|| with_other_slash(self.address())).flatten()
    }

    /// Whether the agent is at the other address. Later calls go there at once.
    fn is_there(&self, status: Option<StatusCode>, url: String, reading: &ReadingTerms) -> bool {
        let is_there = status.is_some_and(|status| status != StatusCode::NOT_FOUND && status != StatusCode::METHOD_NOT_ALLOWED);
        if is_there {
            reading.count_one(Leniency::SlashRedirect);
            let _ = self.slashed.set(url);
        }
        is_there
    }

    fn address(&self) -> &str {
        self.slashed.get().unwrap_or(&self.url)
    }

    fn fetch_one(&self, request: &Request, outgoing: Outgoing<'_>, left: Duration) -> Result<Fetch, ClientError> {
        let mut fetch = self.fetch(request, outgoing, left)?;
        fetch.headers.insert(ACCEPT, if self.binding == Binding::Rest { ANY_JSON } else { JSON });
        Ok(fetch)
    }

    fn fetch_stream(&self, request: &Request, outgoing: Outgoing<'_>, left: Duration) -> Result<Fetch, ClientError> {
        let mut fetch = self.fetch(request, outgoing, left)?;
        fetch.headers.insert(ACCEPT, EVENTS);
        fetch.most_bytes = Some(u64::MAX);
        Ok(fetch)
    }

    /// Agents differ on the request for a subscription, and a second request changes nothing: over REST they
    /// differ on the verb, and `rvagent-a2a` has streams of its own.
    fn other_way(&self, request: &Request, first: Fetch) -> Option<Fetch> {
        let Request::SubscribeToTask(subscribe) = request else { return None };
        let url = match (self.binding, self.version) {
            (Binding::Rest, _) => first.url.clone(),
            (_, Version::Original) => {
                let mut url = url::Url::parse(self.address()).ok()?;
                url.path_segments_mut().ok()?.pop_if_empty().extend(["tasks", "resubscribe"]);
                url.query_pairs_mut().append_pair("id", subscribe.id.as_str());
                url.into()
            }
            _ => return None,
        };
        let mut fetch = Fetch { method: Method::GET, url, body: Bytes::new(), ..first };
        fetch.headers.remove(CONTENT_TYPE);
        Some(fetch)
    }

    fn may_know_another_way(&self, fault: &ClientError) -> bool {
        match (self.binding, fault) {
            (Binding::Rest, ClientError::Refused(error)) => {
                matches!(error.kind, ErrorKind::MethodNotFound | ErrorKind::TaskNotFound)
            }
            (_, ClientError::Refused(error)) => matches!(error.kind, ErrorKind::MethodNotFound | ErrorKind::InvalidRequest),
            (_, ClientError::NotUnderstood(_)) => self.version == Version::Original,
            _ => false,
        }
    }

    async fn opened(
        &self,
        opened: Result<StreamedResponse, GuardError>,
        reader: SseReader,
        until: Instant,
    ) -> Result<EventSource, ClientError> {
        let opened = opened?;
        let head = AnswerHead::new(opened.status, &opened.headers);
        let events = |first, rest, reader| Ok(EventSource::Sse(Box::new(SseEvents::new(first, rest, reader, &self.limits))));
        if head.status.is_success() && head.is_events() {
            return events(None, Some(opened.body), reader);
        }
        let out_of_time = |_| ClientError::Transport(Transport::OutOfTime { sent: WasSent::Maybe });
        let mut body = opened.body;
        let is_lenient = head.status.is_success() && !reader.answers().is_strict();
        let first = match is_lenient && !head.is_json() {
            true => Box::pin(timeout_at(until, body.chunk())).await.map_err(out_of_time)??,
            false => None,
        };
        if first.as_deref().is_some_and(looks_like_events) {
            reader.answers().terms.count_one(Leniency::WrongContentType);
            return events(first, Some(body), reader);
        }
        // Each part of a stream has a time of its own. A whole answer has one for all of it, however it comes.
        let body = Box::pin(timeout_at(until, self.collect(first, body))).await.map_err(out_of_time)??;
        if is_lenient && looks_like_events(&body) {
            reader.answers().terms.count_one(Leniency::WrongContentType);
            return events(Some(body), None, reader);
        }
        reader.whole(&head, &body)
    }

    /// A whole answer where a stream was expected.
    async fn collect(&self, first: Option<Bytes>, mut body: GuardedBody) -> Result<Bytes, ClientError> {
        let mut whole = first.map(Vec::from).unwrap_or_default();
        while let Some(part) = body.chunk().await? {
            if whole.len() + part.len() > self.limits.answer_bytes {
                return Err(ClientError::not_understood(format!("the answer is longer than {} bytes", self.limits.answer_bytes)));
            }
            whole.extend_from_slice(&part);
        }
        Ok(whole.into())
    }

    fn fetch(&self, request: &Request, outgoing: Outgoing<'_>, left: Duration) -> Result<Fetch, ClientError> {
        let mut fetch = match self.binding {
            Binding::Rest => self.rest(request)?,
            _ => self.json_rpc(request)?,
        };
        fetch.headers = outgoing.headers.clone();
        fetch.headers.insert(USER_AGENT, AGENT);
        if fetch.method == Method::POST {
            fetch.headers.insert(CONTENT_TYPE, JSON);
        }
        fetch.most_bytes = Some(self.limits.answer_bytes as u64);
        fetch.within = Some(left);
        Ok(fetch)
    }

    fn json_rpc(&self, request: &Request) -> Result<Fetch, ClientError> {
        let operation = request.operation();
        let Some(method) = methods::name(self.version, operation) else {
            let message = format!("version {} has no method for {operation:?}", self.version);
            return Err(ClientError::NotAsked(Error::new(ErrorKind::UnsupportedOperation, message)));
        };
        let mut body = Vec::with_capacity(USUAL_REQUEST);
        for piece in [r#"{"jsonrpc":"2.0","id":"#, CALL_ID, r#","method":""#, method, r#"","params":"#] {
            body.extend_from_slice(piece.as_bytes());
        }
        self.codec.encode_request(&mut body, request).map_err(ClientError::NotAsked)?;
        body.push(b'}');
        let beside = place_of_operations(&self.url).and_then(|place| operation_url(place, operation));
        Ok(Fetch::post(beside.unwrap_or_else(|| self.address().to_owned()), body))
    }

    fn rest(&self, request: &Request) -> Result<Fetch, ClientError> {
        let mut params = Vec::new();
        self.codec.encode_request(&mut params, request).map_err(ClientError::NotAsked)?;
        let params = String::from_utf8_lossy(&params);
        let address = rest::address(self.version, request, &params).map_err(ClientError::NotAsked)?;
        let url = format!("{}{}", self.url, address.path);
        Ok(match address.verb {
            rest::Verb::Get => Fetch::get(url),
            rest::Verb::Delete => Fetch { method: Method::DELETE, ..Fetch::get(url) },
            rest::Verb::Post => Fetch::post(url, address.body.unwrap_or_default()),
        })
    }

    fn answers(&self, reading: &ReadingTerms) -> AnswerReader {
        let (url, json, terms) = (Arc::clone(&self.shown_url), self.json.clone(), reading.clone());
        AnswerReader { version: self.version, binding: self.binding, url, json, terms }
    }

    /// A stream where one answer was asked for: what it shows at its end.
    fn last_picture(&self, body: &[u8], operation: Operation, reading: &ReadingTerms) -> Result<Reply, ClientError> {
        let mut parser = Parser::new(self.limits.event_bytes);
        let events = parser.feed(body).map_err(|fault| ClientError::not_understood(fault.to_string()))?;
        let answers = self.answers(reading);
        let mut reader = SseReader::new(answers.clone(), operation, self.payload());
        let mut picture = TaskPicture::default();
        for event in events.into_iter().chain(parser.finish()) {
            if let Some(heard) = reader.read(&event)? {
                picture.add(heard.face.as_ref(), heard.event);
            }
        }
        reading.count_one(Leniency::StreamForJson);
        let unreadable = reader.skipped().first.as_ref().map(|event| answers.odd(&event.to_string()));
        let nothing = || unreadable.unwrap_or_else(|| answers.odd("a stream that shows no answer"));
        picture.reply(operation, self.version).ok_or_else(nothing)
    }

    fn payload(&self) -> SsePayload {
        if self.binding == Binding::JsonRpc { SsePayload::Wrapped } else { SsePayload::Bare }
    }
}

/// The URL with a slash at the end of its path, or without the one it has. The root has no other ending.
fn with_other_slash(url: &str) -> Option<String> {
    let mut url = url::Url::parse(url).ok()?;
    let path = match url.path() {
        "" | "/" => return None,
        path => path.strip_suffix('/').map_or_else(|| format!("{path}/"), str::to_owned),
    };
    url.set_path(&path);
    Some(url.into())
}
