//! Calls as bytes and answers as bytes, for tests that hold one answer against another to the last of them.

use std::fmt;

use chancery_protocol::{Binding, Request, Version};
use chancery_wire::json::methods;
use chancery_wire::pb::{v0_3, v1};
use prost::Message as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, ClientBuilder, Identity, Method};
use serde_json::Value;

use super::Combination;
use super::http::{codec, envelope, rest_address};

#[derive(Clone, Debug)]
pub(crate) struct RawCall {
    pub(crate) combination: Combination,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl RawCall {
    /// The call as this combination has it; nothing if it has no such operation.
    pub(crate) fn of(combination: Combination, request: &Request) -> Option<Self> {
        let mut headers = HeaderMap::new();
        if combination.version == Version::V1_0 {
            headers.insert("a2a-version", HeaderValue::from_static("1.0"));
        }
        let (method, path, content_type, body) = match combination.binding {
            // It has no HTTP to be raw in.
            Binding::Swp => return None,
            Binding::Grpc => {
                let (path, message) = grpc(combination.version, request)?;
                headers.insert("te", HeaderValue::from_static("trailers"));
                (Method::POST, path, "application/grpc", framed(&message))
            }
            Binding::JsonRpc => {
                let method = methods::name(combination.version, request.operation())?;
                let body = envelope(method, &params(combination, request)).into_bytes();
                (Method::POST, "/".to_owned(), "application/json", body)
            }
            Binding::Rest => {
                let params = params(combination, request);
                let (method, path, has_body) = rest_address(combination.version, request, &params);
                (method, path, "application/json", if has_body { params.into_bytes() } else { Vec::new() })
            }
        };
        headers.insert("content-type", HeaderValue::from_static(content_type));
        Some(Self { combination, method, path, headers, body })
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a header's name");
        self.headers.append(name, value.parse().expect("a header's value"));
        self
    }
}

fn params(combination: Combination, request: &Request) -> String {
    let mut params = Vec::new();
    codec(combination).encode_request(&mut params, request).expect("a request this version can say");
    String::from_utf8(params).expect("JSON is text")
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a small message").to_be_bytes();
    [&[0], &length[..], message].concat()
}

fn grpc(version: Version, request: &Request) -> Option<(String, Vec<u8>)> {
    let (service, (method, message)) = match version {
        Version::V1_0 => ("lf.a2a.v1.A2AService", newer(request)),
        _ => ("a2a.v1.A2AService", older(request)?),
    };
    Some((format!("/{service}/{method}"), message))
}

fn newer(request: &Request) -> (&'static str, Vec<u8>) {
    use v1::peer;
    match request {
        Request::SendMessage(send) => ("SendMessage", peer::send_message(send).encode_to_vec()),
        Request::StreamMessage(send) => ("SendStreamingMessage", peer::send_message(send).encode_to_vec()),
        Request::GetTask(get) => ("GetTask", peer::get_task(get).encode_to_vec()),
        Request::ListTasks(list) => ("ListTasks", peer::list_tasks(list).encode_to_vec()),
        Request::CancelTask(cancel) => ("CancelTask", peer::cancel_task(cancel).encode_to_vec()),
        Request::SubscribeToTask(subscribe) => ("SubscribeToTask", peer::subscribe_to_task(subscribe).encode_to_vec()),
        Request::CreatePushConfig(config) => {
            ("CreateTaskPushNotificationConfig", peer::create_push_config(config).encode_to_vec())
        }
        Request::GetPushConfig(which) => ("GetTaskPushNotificationConfig", peer::get_push_config(which).encode_to_vec()),
        Request::ListPushConfigs(list) => ("ListTaskPushNotificationConfigs", peer::list_push_configs(list).encode_to_vec()),
        Request::DeletePushConfig(which) => ("DeleteTaskPushNotificationConfig", peer::delete_push_config(which).encode_to_vec()),
        Request::GetExtendedCard(get) => {
            let tenant = get.tenant.clone().unwrap_or_default();
            ("GetExtendedAgentCard", v1::proto::GetExtendedAgentCardRequest { tenant }.encode_to_vec())
        }
    }
}

fn older(request: &Request) -> Option<(&'static str, Vec<u8>)> {
    use v0_3::peer;
    Some(match request {
        Request::SendMessage(send) => ("SendMessage", peer::send_message(send).encode_to_vec()),
        Request::StreamMessage(send) => ("SendStreamingMessage", peer::send_message(send).encode_to_vec()),
        Request::GetTask(get) => ("GetTask", peer::get_task(get).encode_to_vec()),
        Request::ListTasks(_) => return None,
        Request::CancelTask(cancel) => ("CancelTask", peer::cancel_task(cancel).encode_to_vec()),
        Request::SubscribeToTask(subscribe) => ("TaskSubscription", peer::subscribe_to_task(subscribe).encode_to_vec()),
        Request::CreatePushConfig(config) => {
            ("CreateTaskPushNotificationConfig", peer::create_push_config(config).encode_to_vec())
        }
        Request::GetPushConfig(which) => ("GetTaskPushNotificationConfig", peer::get_push_config(which).encode_to_vec()),
        Request::ListPushConfigs(list) => ("ListTaskPushNotificationConfig", peer::list_push_configs(list).encode_to_vec()),
        Request::DeletePushConfig(which) => ("DeleteTaskPushNotificationConfig", peer::delete_push_config(which).encode_to_vec()),
        Request::GetExtendedCard(_) => ("GetAgentCard", Vec::new()),
    })
}

/// An answer without the one header that says when it was sent. Of a stream, the first event.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl RawAnswer {
    pub(crate) async fn read(mut response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let kept = response.headers().iter().filter(|(name, _)| *name != "date");
        let mut headers: Vec<_> =
            kept.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())).collect();
        headers.sort();
        let mut answer = Self { status, headers, body: Vec::new() };
        while !answer.is_enough()
            && let Some(chunk) = response.chunk().await.expect("the answer is not cut off")
        {
            answer.body.extend_from_slice(&chunk);
        }
        answer
    }

    /// Whether there is a whole event, or message, in what has come of a stream.
    fn is_enough(&self) -> bool {
        match self.header("content-type") {
            Some("text/event-stream") => self.body.windows(2).any(|two| two == b"\n\n") && self.text().contains("data:"),
            Some("application/grpc") => match self.body.get(1..5) {
                Some(&[a, b, c, d]) => self.body.len() >= 5 + u32::from_be_bytes([a, b, c, d]) as usize,
                _ => false,
            },
            _ => false,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }

    /// The protobuf message of a gRPC answer.
    pub(crate) fn message<M: prost::Message + Default>(&self) -> M {
        M::decode(self.body.get(5..).unwrap_or_default()).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }

    pub(crate) fn is_refusal(&self) -> bool {
        let has_error = |json: &str| serde_json::from_str::<Value>(json).is_ok_and(|body| body.get("error").is_some());
        let text = self.text();
        let said_in_json = match self.header("content-type") {
            Some("application/json") => has_error(&text),
            // As older clients of JSON-RPC read it.
            Some("text/event-stream") => text.strip_prefix("data: ").is_some_and(has_error),
            _ => false,
        };
        self.status >= 400 || said_in_json || self.header("grpc-status").is_some_and(|status| status != "0")
    }

    /// The same with one text put for another, everywhere. For what a caller sent itself and is told again.
    pub(crate) fn replacing(&self, from: &str, to: &str) -> Self {
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), value.replace(from, to))).collect();
        Self { status: self.status, headers, body: self.text().replace(from, to).into_bytes() }
    }
}

impl fmt::Debug for RawAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.status, self.headers, self.text())
    }
}

#[derive(Clone)]
pub(crate) struct RawClient {
    url: String,
    http: reqwest::Client,
    http2: reqwest::Client,
}

impl RawClient {
    pub(crate) fn new(url: &str) -> Self {
        let client = |builder: ClientBuilder| builder.no_proxy().build().expect("a client");
        let (http, http2) = (reqwest::Client::builder(), reqwest::Client::builder().http2_prior_knowledge());
        Self { url: url.to_owned(), http: client(http), http2: client(http2) }
    }

    /// The same server by another name of its.
    pub(crate) fn at_host(url: &str, host: &str) -> Self {
        let address: std::net::SocketAddr = url.trim_start_matches("http://").parse().expect("an address");
        let client = |builder: ClientBuilder| builder.no_proxy().resolve(host, address).build().expect("a client");
        let (http, http2) = (reqwest::Client::builder(), reqwest::Client::builder().http2_prior_knowledge());
        Self { url: format!("http://{host}:{}", address.port()), http: client(http), http2: client(http2) }
    }

    pub(crate) async fn get(&self, path: &str, version: Option<&str>) -> RawAnswer {
        let request = self.http.get(format!("{}{path}", self.url));
        let request = version.iter().fold(request, |request, version| request.header("a2a-version", *version));
        RawAnswer::read(request.send().await.expect("the server answers")).await
    }

    /// Trusts this root alone, and shows this certificate if there is one (both PEM).
    pub(crate) fn over_tls(url: &str, root: &str, identity: Option<&str>) -> Self {
        let client = |builder: ClientBuilder| {
            let roots = [Certificate::from_pem(root.as_bytes()).expect("a certificate")];
            let builder = builder.no_proxy().tls_info(true).tls_certs_only(roots);
            let identity = identity.map(|pem| Identity::from_pem(pem.as_bytes()).expect("an identity"));
            identity.into_iter().fold(builder, ClientBuilder::identity).build().expect("a client")
        };
        let (http, http2) = (reqwest::Client::builder().http1_only(), reqwest::Client::builder().http2_prior_knowledge());
        Self { url: url.to_owned(), http: client(http), http2: client(http2) }
    }

    pub(crate) async fn try_ask(&self, call: &RawCall) -> Result<reqwest::Response, reqwest::Error> {
        let client = if call.combination.binding == Binding::Grpc { &self.http2 } else { &self.http };
        let request = client.request(call.method.clone(), format!("{}{}", self.url, call.path));
        request.headers(call.headers.clone()).body(call.body.clone()).send().await
    }

    pub(crate) async fn ask(&self, call: &RawCall) -> RawAnswer {
        RawAnswer::read(self.try_ask(call).await.expect("the server answers")).await
    }
}
