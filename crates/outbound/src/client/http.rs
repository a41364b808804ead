//! JSON-RPC and REST: the version's codec does the JSON, the guarded client the rest.

use std::time::Duration;

use bytes::Bytes;
use chancery_protocol::{Binding, Error, ErrorKind, GetTask, Operation, Reply, Request, Version};
use chancery_wire::json::{methods, original::Original, v0_3::V0_3, v0_3::rest::V0_3Rest, v1_0::V1_0};
use chancery_wire::{Codec, JsonLimits, errors, json_rpc, rest, scan};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::ClientError;
use super::error::{Sent, Transport};
use super::events::{Source, only_event, unary_form};
use super::interface::Interface;
use super::limits::ClientLimits;
use super::sse::{Payload, Reader, SseEvents};
use crate::guard::{Fetch, Guard, GuardError, GuardedBody, GuardedClient, Streamed};

#[derive(Debug)]
pub(super) struct HttpAgent {
    client: GuardedClient,
    url: String,
    binding: Binding,
    version: Version,
    codec: &'static dyn Codec,
    limits: ClientLimits,
    json: JsonLimits,
}

const AGENT: HeaderValue = HeaderValue::from_static(concat!("chancery/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ANY_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json, application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Nobody is asked to wait longer.
const LONGEST_WAIT: u64 = 24 * 3_600;
/// Calls share no connection state, so one id does for all of them.
pub(super) const CALL_ID: &str = "\"1\"";
/// Room for a request of the usual size, so that its buffer is not grown while it is written.
const USUAL_REQUEST: usize = 1024;

/// The head of an answer, as far as it matters.
struct Head {
    status: StatusCode,
    media_type: String,
    retry_after: Option<Duration>,
}

impl Head {
    fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::trim);
        let media_type = text(CONTENT_TYPE).and_then(|value| value.split(';').next()).unwrap_or_default();
        // A date instead of seconds would need a clock both sides agree on.
        let retry_after = text(RETRY_AFTER).and_then(|value| value.parse::<u64>().ok());
        Self {
            status,
            media_type: media_type.trim().to_ascii_lowercase(),
            retry_after: retry_after.map(|seconds| Duration::from_secs(seconds.min(LONGEST_WAIT))),
        }
    }

    /// An agent that does not say what it sends is given the benefit of the doubt.
    fn may_be_json(&self) -> bool {
        let kind = self.media_type.as_str();
        kind.is_empty() || kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
    }

    fn is_events(&self) -> bool {
        self.media_type == "text/event-stream"
    }
}

impl HttpAgent {
    pub(super) fn new(guard: Guard, interface: &Interface, limits: &ClientLimits) -> Result<Self, ClientError> {
        let target = guard.check(&interface.url).map_err(|blocked| ClientError::from(GuardError::from(blocked)))?;
        let url = match interface.binding {
            Binding::Rest if target.url().query().is_some() => {
                return Err(ClientError::NotAsked(Error::invalid_field("url", "paths cannot be added to a query")));
            }
            Binding::Rest => interface.url.trim_end_matches('/').to_owned(),
            _ => interface.url.clone(),
        };
        let codec: &'static dyn Codec = match (interface.version, interface.binding) {
            (Version::V1_0, _) => &V1_0,
            (Version::V0_3, Binding::Rest) => &V0_3Rest,
            (Version::V0_3, _) => &V0_3,
            (Version::Original, _) => &Original,
        };
        Ok(Self {
            client: guard.client(),
            url,
            binding: interface.binding,
            version: interface.version,
            codec,
            limits: limits.clone(),
            json: limits.json(),
        })
    }

    pub(super) async fn call(&self, request: &Request, headers: &HeaderMap, left: Duration) -> Result<Reply, ClientError> {
        let until = Instant::now() + left;
        match (self.ask(request, headers, left).await, request) {
            // `rvagent-a2a` says only that it canceled, not what became of the task.
            (Err(ClientError::NotUnderstood(_)), Request::CancelTask(cancel)) if self.version == Version::Original => {
                let get = GetTask { tenant: None, id: cancel.id.clone(), history_length: None };
                self.ask(&Request::GetTask(get), headers, until.saturating_duration_since(Instant::now())).await
            }
            (outcome, _) => outcome,
        }
    }

    async fn ask(&self, request: &Request, headers: &HeaderMap, left: Duration) -> Result<Reply, ClientError> {
        let mut fetch = self.fetch(request, headers, left)?;
        fetch.headers.insert(ACCEPT, if self.binding == Binding::Rest { ANY_JSON } else { JSON });
        let operation = request.operation();
        let fetched = self.client.fetch(fetch).await?;
        let head = Head::new(fetched.status, &fetched.headers);
        self.read_reply(&head, &fetched.body, operation, operation)
    }

    pub(super) async fn stream(&self, request: &Request, headers: &HeaderMap, left: Duration) -> Result<Source, ClientError> {
        let payload = if self.binding == Binding::JsonRpc { Payload::Wrapped } else { Payload::Bare };
        let until = Instant::now() + left;
        let opened = self.client.stream(self.fetch_stream(request, headers, left)?).await;
        let opened = self.opened(opened, request.operation(), payload, until).await;
        match (opened, request) {
            (Err(fault), Request::SubscribeToTask(_)) if self.may_know_another_way(&fault) => {
                let Some(other) = self.other_way(request, self.fetch_stream(request, headers, left)?) else { return Err(fault) };
                let again = async {
                    let until = Instant::now() + left;
                    let opened = self.client.stream(other).await;
                    self.opened(opened, request.operation(), Payload::Bare, until).await
                };
                Box::pin(again).await.map_err(|_| fault)
            }
            (opened, _) => opened,
        }
    }

    fn fetch_stream(&self, request: &Request, headers: &HeaderMap, left: Duration) -> Result<Fetch, ClientError> {
        let mut fetch = self.fetch(request, headers, left)?;
        fetch.headers.insert(ACCEPT, EVENTS);
        fetch.most_bytes = Some(u64::MAX);
        Ok(fetch)
    }

    /// Agents differ on how a subscription is asked for, and asking twice for one changes nothing: over REST they differ on
    /// the verb, and `rvagent-a2a` has streams of its own.
    fn other_way(&self, request: &Request, first: Fetch) -> Option<Fetch> {
        let Request::SubscribeToTask(subscribe) = request else { return None };
        let url = match (self.binding, self.version) {
            (Binding::Rest, _) => first.url.clone(),
            (_, Version::Original) => {
                let mut url = url::Url::parse(&self.url).ok()?;
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
        opened: Result<Streamed, GuardError>,
        operation: Operation,
        payload: Payload,
        until: Instant,
    ) -> Result<Source, ClientError> {
        let opened = opened?;
        let head = Head::new(opened.status, &opened.headers);
        if head.status.is_success() && head.is_events() {
            let (codec, version, json) = (self.codec, self.version, self.json.clone());
            let reader = Reader { codec, version, operation, payload, json };
            return Ok(Source::Sse(Box::new(SseEvents::new(opened.body, reader, &self.limits))));
        }
        let out_of_time = |_| ClientError::Transport(Transport::OutOfTime { sent: Sent::Maybe });
        // Each part of a stream has a time of its own. A whole answer has one for all of it, however it comes.
        let body = Box::pin(timeout_at(until, self.collect(opened.body))).await.map_err(out_of_time)??;
        self.read_reply(&head, &body, operation, unary_form(operation)).and_then(only_event)
    }

    /// A whole answer where a stream was expected.
    async fn collect(&self, mut body: GuardedBody) -> Result<Bytes, ClientError> {
        let mut whole = Vec::new();
        while let Some(part) = body.chunk().await? {
            if whole.len() + part.len() > self.limits.answer_bytes {
                return Err(ClientError::NotUnderstood(format!("the answer is longer than {} bytes", self.limits.answer_bytes)));
            }
            whole.extend_from_slice(&part);
        }
        Ok(whole.into())
    }

    fn fetch(&self, request: &Request, headers: &HeaderMap, left: Duration) -> Result<Fetch, ClientError> {
        let mut fetch = match self.binding {
            Binding::Rest => self.rest(request)?,
            _ => self.json_rpc(request)?,
        };
        fetch.headers = headers.clone();
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
        Ok(Fetch::post(self.url.clone(), body))
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

    /// `asked` is what the agent was asked for; `form` the operation whose reply its answer has the shape of.
    fn read_reply(&self, head: &Head, body: &[u8], asked: Operation, form: Operation) -> Result<Reply, ClientError> {
        let refused = |mut error: Error| {
            error.retry_after = head.retry_after.or(error.retry_after);
            Err(ClientError::Refused(error))
        };
        if !head.may_be_json() {
            return self.by_status(head, asked, format!("it is {:?} and not JSON", head.media_type));
        }
        let text = match scan(body, &self.json) {
            Ok(text) => text,
            Err(fault) => return self.by_status(head, asked, fault.to_string()),
        };
        let result = match self.binding {
            Binding::Rest if head.status.is_success() => match text.trim() {
                // Nothing to say about what is gone.
                "" if form == Operation::DeletePushConfig => "{}",
                text => text,
            },
            Binding::Rest if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() => {
                return self.by_status(head, asked, "it is not JSON".to_owned());
            }
            Binding::Rest => return refused(errors::read::rest(head.status.as_u16(), text, self.version, asked)),
            _ => match json_rpc::open_response(text) {
                Err(fault) => return self.by_status(head, asked, fault.to_string()),
                Ok(response) => match response.outcome {
                    Err(error) => {
                        let mut error = errors::read::json_rpc(error, self.version);
                        let status = errors::read::of_http_status(head.status.as_u16(), asked);
                        if let (ErrorKind::Internal, Some(kind)) = (error.kind, status) {
                            error.kind = kind;
                        }
                        return refused(error);
                    }
                    Ok(_) if response.id != CALL_ID => {
                        return Err(ClientError::NotUnderstood("it answers another call".to_owned()));
                    }
                    Ok(result) => result,
                },
            },
        };
        self.codec.decode_reply(form, result).map_err(|fault| ClientError::NotUnderstood(fault.to_string()))
    }

    /// An answer whose body says nothing: its status may.
    fn by_status<T>(&self, head: &Head, asked: Operation, why: String) -> Result<T, ClientError> {
        let status = head.status.as_u16();
        let kind = errors::read::of_http_status(status, asked).filter(|_| !head.status.is_success());
        // Behind one URL for everything, a missing page is no missing task.
        let kind = kind.filter(|_| self.binding == Binding::Rest || !matches!(status, 400 | 404 | 405 | 409 | 422));
        Err(match kind {
            Some(kind) => {
                let message = format!("the agent answered with HTTP status {status}");
                ClientError::Refused(Error { retry_after: head.retry_after, ..Error::new(kind, message) })
            }
            None => ClientError::NotUnderstood(format!("HTTP status {status}: {why}")),
        })
    }
}
