//! The doors as strangers find them: hosts, versions, strict parsing, dialects, content types and cards.

mod authorize;
mod card_hosts;
mod cards;
mod content_types;
mod dialects;
mod hosts;
mod keepalive;
mod no_streams;
mod paths;
mod plain_ids;
mod refused_streams;
mod strict_parsing;
mod versions;
mod wrapped;

use serde_json::Value;

use crate::support::server::Server;

/// A post of these bytes, with these headers, and what came of it: status and JSON.
async fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> (u16, Value) {
    let mut request = reqwest::Client::new().post(format!("{}{path}", server.url())).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    answered(request).await
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = reqwest::Client::new().get(format!("{}{path}", server.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    answered(request).await
}

async fn answered(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("an answer to its end");
    (status, serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{fault}: {text}")))
}

const JSON: (&str, &str) = ("Content-Type", "application/json");
const NEWEST: (&str, &str) = ("A2A-Version", "1.0");

/// How many tasks there are at all.
async fn tasks(server: &Server) -> i64 {
    get(server, "/tasks", &[NEWEST]).await.1["totalSize"].as_i64().expect("a number")
}
