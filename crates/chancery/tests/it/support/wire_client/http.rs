//! JSON-RPC and REST over plain HTTP, with the codec of the version doing the JSON.

use chancery_protocol::{Binding, Operation, Reply, Request, Version};
use chancery_wire::Codec;
use chancery_wire::json::{codecs, methods};
use reqwest::{Method, Response};
use serde_json::Value;

use super::events::EventStream;
use super::refusal::Refusal;
use super::{Combination, Conditions};

/// The id of every JSON-RPC call made here; answers have to repeat it.
pub(super) const CALL_ID: &str = "\"call-7\"";

#[derive(Clone)]
pub(super) struct HttpClient {
    url: String,
    combination: Combination,
    client: reqwest::Client,
}

pub(super) fn codec(combination: Combination) -> &'static dyn Codec {
    codecs::codec(combination.version, combination.binding)
}

impl HttpClient {
    pub(super) fn new(url: &str, combination: Combination) -> Self {
        Self { url: url.to_owned(), combination, client: reqwest::Client::builder().no_proxy().build().expect("a client") }
    }

    pub(super) async fn call(&self, request: &Request, conditions: &Conditions) -> Result<Reply, Refusal> {
        let operation = request.operation();
        let response = self.post(request, conditions).await;
        let (status, kind) = (response.status().as_u16(), content_type(&response));
        let text = response.text().await.expect("an answer to its end");
        let result = match self.combination.binding {
            Binding::JsonRpc => {
                assert_eq!(kind, "application/json", "{text}");
                result_of(status, &text)?
            }
            _ if status != 200 => return Err(Refusal::rest(status, &text)),
            _ => {
                let expected =
                    if self.combination.version == Version::V1_0 { "application/a2a+json" } else { "application/json" };
                assert_eq!(kind, expected, "{text}");
                text
            }
        };
        Ok(codec(self.combination).decode_reply(operation, &result).unwrap_or_else(|fault| panic!("{fault}: {result}")))
    }

    pub(super) async fn stream(&self, request: &Request, conditions: &Conditions) -> Result<EventStream, Refusal> {
        let response = self.post(request, conditions).await;
        if content_type(&response) == "text/event-stream" {
            assert_eq!(response.status(), 200);
            // A stream of known length is a refusal, as older clients of JSON-RPC read it: one event with the error.
            if response.content_length().is_none() {
                return Ok(EventStream::sse(response, self.combination));
            }
            assert!(self.combination.version != Version::V1_0, "1.0 refuses a stream with a plain answer");
            let text = response.text().await.expect("an answer to its end");
            let event = text.strip_prefix("data: ").and_then(|rest| rest.strip_suffix("\n\n"));
            let error = event_result(event.expect("one event, an error")).expect_err("a refusal");
            return Err(error);
        }
        // Otherwise what is refused before the first event is a plain answer.
        let status = response.status().as_u16();
        let text = response.text().await.expect("an answer to its end");
        match self.combination.binding {
            Binding::JsonRpc => Err(result_of(status, &text).expect_err("a stream or a refusal")),
            _ => Err(Refusal::rest(status, &text)),
        }
    }

    pub(super) async fn call_nothing(&self) -> Refusal {
        match self.combination.binding {
            Binding::JsonRpc => {
                let request = self.client.post(&self.url).body(envelope("tasks/frobnicate", "{}"));
                let response = self.with_headers(request, &Conditions::default()).send().await.expect("an answer");
                let status = response.status().as_u16();
                result_of(status, &response.text().await.expect("text")).expect_err("there is no such method")
            }
            _ => {
                let prefix = if self.combination.version == Version::V0_3 { "/v1" } else { "" };
                let request = self.client.get(format!("{}{prefix}/frobnicate/now", self.url));
                let response = self.with_headers(request, &Conditions::default()).send().await.expect("an answer");
                let status = response.status().as_u16();
                Refusal::rest(status, &response.text().await.expect("text"))
            }
        }
    }

    fn with_headers(&self, mut request: reqwest::RequestBuilder, conditions: &Conditions) -> reqwest::RequestBuilder {
        for (name, value) in conditions.headers() {
            request = request.header(name, value);
        }
        if self.combination.version == Version::V1_0 {
            request = request.header("A2A-Version", "1.0");
        }
        request.header("Content-Type", "application/json")
    }

    async fn post(&self, request: &Request, conditions: &Conditions) -> Response {
        let mut params = Vec::new();
        codec(self.combination).encode_request(&mut params, request).expect("a request this version can say");
        let params = String::from_utf8(params).expect("JSON is text");
        let builder = match self.combination.binding {
            Binding::JsonRpc => {
                let method = methods::name(self.combination.version, request.operation()).expect("a method of this version");
                self.client.post(&self.url).body(envelope(method, &params))
            }
            _ => {
                let (method, path, has_body) = rest_address(self.combination.version, request, &params);
                let builder = self.client.request(method, format!("{}{path}", self.url));
                if has_body { builder.body(params) } else { builder }
            }
        };
        self.with_headers(builder, conditions).send().await.expect("the server answers")
    }
}

pub(super) fn envelope(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{CALL_ID},"method":"{method}","params":{params}}}"#)
}

fn content_type(response: &Response) -> String {
    response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// The `result` of a JSON-RPC response, as text, or what it was refused with.
pub(super) fn result_of(status: u16, text: &str) -> Result<String, Refusal> {
    let response: Value = serde_json::from_str(text).unwrap_or_else(|fault| panic!("{fault}: {text}"));
    assert_eq!((&response["jsonrpc"], response["id"].to_string().as_str()), (&Value::from("2.0"), CALL_ID), "{text}");
    match (response.get("result"), response.get("error")) {
        (Some(result), None) => Ok(result.to_string()),
        (None, Some(error)) => Err(Refusal::JsonRpc { status, error: error.clone(), as_event: false }),
        _ => panic!("a response has a result or an error: {text}"),
    }
}

/// The same for an event of a stream.
pub(super) fn event_result(data: &str) -> Result<String, Refusal> {
    result_of(200, data).map_err(|refusal| match refusal {
        Refusal::JsonRpc { status, error, .. } => Refusal::JsonRpc { status, error, as_event: true },
        other => other,
    })
}

/// Verb, path with query, and whether the params go into the body.
pub(super) fn rest_address(version: Version, request: &Request, params: &str) -> (Method, String, bool) {
    let prefix = if version == Version::V0_3 { "/v1" } else { "" };
    let (method, path, has_body) = match request {
        Request::SendMessage(_) => (Method::POST, "/message:send".to_owned(), true),
        Request::StreamMessage(_) => (Method::POST, "/message:stream".to_owned(), true),
        Request::GetTask(get) => (Method::GET, format!("/tasks/{}{}", get.id, query(params)), false),
        Request::ListTasks(_) => (Method::GET, format!("/tasks{}", query(params)), false),
        Request::CancelTask(cancel) => (Method::POST, format!("/tasks/{}:cancel", cancel.id), false),
        Request::SubscribeToTask(subscribe) => (Method::POST, format!("/tasks/{}:subscribe", subscribe.id), false),
        Request::CreatePushConfig(config) => (Method::POST, configs(config.task_id.as_ref().expect("a task").as_str()), true),
        Request::ListPushConfigs(list) => (Method::GET, format!("{}{}", configs(list.task_id.as_str()), query(params)), false),
        Request::GetPushConfig(which) => (Method::GET, config(which), false),
        Request::DeletePushConfig(which) => (Method::DELETE, config(which), false),
        Request::GetExtendedCard(_) => (Method::GET, extended_card(version).to_owned(), false),
    };
    debug_assert!(request.operation() != Operation::GetExtendedCard || !has_body);
    (method, format!("{prefix}{path}"), has_body)
}

fn extended_card(version: Version) -> &'static str {
    if version == Version::V0_3 { "/card" } else { "/extendedAgentCard" }
}

fn configs(task: &str) -> String {
    format!("/tasks/{task}/pushNotificationConfigs")
}

fn config(which: &chancery_protocol::PushConfigRef) -> String {
    format!("{}/{}", configs(which.task_id.as_str()), which.id.as_deref().expect("an id"))
}

/// The members that are not part of the path, as a query.
fn query(params: &str) -> String {
    let members: serde_json::Map<String, Value> = serde_json::from_str(params).expect("params are an object");
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in members.iter().filter(|(name, _)| !matches!(name.as_str(), "id" | "name" | "taskId")) {
        query.append_pair(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let query = query.finish();
    if query.is_empty() { query } else { format!("?{query}") }
}
