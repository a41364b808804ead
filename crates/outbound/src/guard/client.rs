//! The client everything outbound uses: one request, one answer, nothing followed, nothing remembered, everything bounded.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Notify;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use super::answer::{BodyDeadline, GuardedBody, UsedConnection, chain, judge_head, judge_size};
use super::connect::{Connector, DialedAddress};
use super::{ConnectStage, Guard, GuardError, Whole, check_url};

/// One request. What is left open takes the guard's own limit.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// In place of `response_body_bytes`.
    pub most_bytes: Option<u64>,
    /// In place of `exchange_ms`. For a stream: until the head of the answer is there, and again between any two parts.
    pub within: Option<Duration>,
}

impl Fetch {
    /// Makes a GET without headers.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            most_bytes: None,
            within: None,
        }
    }

    /// Makes a POST with a body.
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, body: body.into(), ..Self::get(url) }
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The address that answered.
    pub peer: Option<SocketAddr>,
}

/// An answer whose body is still coming.
#[derive(Debug)]
pub struct StreamedResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, piece by piece.
    pub body: GuardedBody,
    /// The address that answered.
    pub peer: Option<SocketAddr>,
}

/// Cheap to clone; clones share one connection pool, and no two guards ever share one.
#[derive(Clone, Debug)]
pub struct GuardedClient {
    guard: Guard,
    http: Client<Connector, Full<Bytes>>,
    /// The text that was checked last and what it was found to be. The rules never change, so the same text is the same again.
    checked: Arc<Mutex<Option<(String, Uri)>>>,
}

/// hyper refuses to work with less.
const SMALLEST_BUFFER: usize = 8_192;
/// Room for the status line beside the headers.
const STATUS_LINE: usize = 1_024;
const IDLE_CONNECTION: Duration = Duration::from_secs(30);
/// A gateway has as many calls under way to one agent as it has callers; a connection for each is kept for the next.
const IDLE_CONNECTIONS_PER_HOST: usize = 256;
/// What a sender may have under way before we have read it.
const H2_STREAM_WINDOW: u32 = 256 * 1024;
const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;

impl GuardedClient {
    /// Makes a client whose calls pass the guard.
    pub fn new(guard: Guard) -> Self {
        let header_bytes = guard.config().response_header_bytes;
        let http = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
            .http1_max_buf_size(header_bytes.saturating_add(STATUS_LINE).max(SMALLEST_BUFFER))
            .http2_max_header_list_size(u32::try_from(header_bytes).unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(H2_STREAM_WINDOW)
            .http2_initial_connection_window_size(H2_CONNECTION_WINDOW)
            .build(guard.connector());
        Self { guard, http, checked: Arc::default() }
    }

    /// Returns the guard.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The whole exchange, look-up and last byte included, within one deadline.
    pub async fn fetch(&self, fetch: Fetch) -> Result<Fetched, GuardError> {
        let config = self.guard.config();
        let deadline = Instant::now() + fetch.within.unwrap_or(config.exchange());
        let most_bytes = fetch.most_bytes.unwrap_or(config.response_body_bytes as u64);
        let mut exchange = self.begin(fetch)?;
        let (head, body) = exchange.answer(&self.guard, deadline).await?.into_parts();
        let body = GuardedBody::new(body, exchange.connection, most_bytes, BodyDeadline::Until(deadline))?.collect().await?;
        let peer = head.extensions.get::<DialedAddress>().map(|peer| peer.0);
        Ok(Fetched { status: head.status, headers: head.headers, body, peer })
    }

    /// The head now, the body as it comes.
    pub async fn stream(&self, fetch: Fetch) -> Result<StreamedResponse, GuardError> {
        let config = self.guard.config();
        let pause = fetch.within.unwrap_or(config.exchange());
        let most_bytes = fetch.most_bytes.unwrap_or(config.response_body_bytes as u64);
        let mut exchange = self.begin(fetch)?;
        let (head, body) = exchange.answer(&self.guard, Instant::now() + pause).await?.into_parts();
        let body = GuardedBody::new(body, exchange.connection, most_bytes, BodyDeadline::BetweenParts(pause))?;
        let peer = head.extensions.get::<DialedAddress>().map(|peer| peer.0);
        Ok(StreamedResponse { status: head.status, headers: head.headers, body, peer })
    }

    /// For senders that need only an acknowledgement: the head of the answer counts, regardless of its
    /// content. Its body is read as far as the limits go, so that the connection can be used again, and
    /// thrown away.
    pub async fn tell(&self, fetch: Fetch) -> Result<(StatusCode, HeaderMap), GuardError> {
        let config = self.guard.config();
        let deadline = Instant::now() + fetch.within.unwrap_or(config.exchange());
        let most_bytes = fetch.most_bytes.unwrap_or(config.response_body_bytes as u64);
        let mut exchange = self.begin(fetch)?;
        exchange.any_status = true;
        let (head, body) = exchange.answer(&self.guard, deadline).await?.into_parts();
        if let Ok(mut body) = GuardedBody::new(body, exchange.connection, most_bytes, BodyDeadline::Until(deadline)) {
            while let Ok(Some(_)) = body.chunk().await {}
        }
        Ok((head.status, head.headers))
    }

    /// Everything that needs no waiting, so that what waits stays small.
    fn begin(&self, fetch: Fetch) -> Result<Exchange, GuardError> {
        let uri = self.check(fetch.url)?;
        let mut request = Request::new(Full::new(fetch.body));
        *request.method_mut() = fetch.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = fetch.headers;
        // The host is the one that was checked, and packed answers are not unpacked here.
        request.headers_mut().remove(HOST);
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let connection = UsedConnection(capture_connection(&mut request));
        let flood = Flood::watch(&mut request, self.guard.config().informational_responses);
        Ok(Exchange { response: self.http.request(request), connection, flood, any_status: false })
    }

    /// The normalised address of a URL that may be called.
    fn check(&self, url: String) -> Result<Uri, GuardError> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((text, uri)) = &*checked
            && *text == url
        {
            return Ok(uri.clone());
        }
        let target = check_url(&url, &self.guard)?;
        let uri = Uri::try_from(target.url().as_str()).map_err(|fault| GuardError::Request(fault.to_string()))?;
        *checked = Some((url, uri.clone()));
        Ok(uri)
    }
}

/// A request that is under way.
struct Exchange {
    response: ResponseFuture,
    connection: UsedConnection,
    flood: Arc<Flood>,
    /// Whether redirects and encodings are answers like any other.
    any_status: bool,
}

impl Exchange {
    async fn answer(&mut self, guard: &Guard, deadline: Instant) -> Result<Response<Incoming>, GuardError> {
        let judged = tokio::select! {
            response = timeout_at(deadline, &mut self.response) => self.judge(guard, response),
            () = self.flood.bell.notified() => Err(GuardError::TooBig(Whole::Informational)),
        };
        if judged.is_err() {
            self.connection.abandon();
        }
        judged
    }

    fn judge(
        &self,
        guard: &Guard,
        response: Result<Result<Response<Incoming>, hyper_util::client::legacy::Error>, Elapsed>,
    ) -> Result<Response<Incoming>, GuardError> {
        if self.flood.is_over() {
            return Err(GuardError::TooBig(Whole::Informational));
        }
        let response = response.map_err(|_| GuardError::TimedOut(ConnectStage::Exchange))?.map_err(|fault| reason(&fault))?;
        let most_header_bytes = guard.config().response_header_bytes;
        match self.any_status {
            true => judge_size(response.headers(), most_header_bytes)?,
            false => judge_head(response.status(), response.headers(), most_header_bytes)?,
        }
        Ok(response)
    }
}

/// 1xx answers are skipped without an end by the layer below; this rings when there were too many.
struct Flood {
    bell: Notify,
    seen: AtomicUsize,
    most: usize,
}

impl Flood {
    fn watch(request: &mut Request<Full<Bytes>>, most: usize) -> Arc<Self> {
        let flood = Arc::new(Self { bell: Notify::new(), seen: AtomicUsize::new(0), most });
        let watch = flood.clone();
        hyper::ext::on_informational(request, move |_| {
            watch.seen.fetch_add(1, Ordering::Relaxed);
            if watch.is_over() {
                watch.bell.notify_one();
            }
        });
        flood
    }

    fn is_over(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > self.most
    }
}

/// The layers below wrap our own errors and theirs; what was first said is what counts.
pub(crate) fn reason(fault: &hyper_util::client::legacy::Error) -> GuardError {
    let mut next: Option<&(dyn Error + 'static)> = Some(fault);
    while let Some(cause) = next {
        if let Some(ours) = cause.downcast_ref::<GuardError>() {
            return ours.clone();
        }
        if cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse_too_large) {
            return GuardError::TooBig(Whole::Headers);
        }
        next = cause.source();
    }
    GuardError::Protocol(chain(fault))
}
