//! The operator's calls for the memory tier of a node.

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use http::{Method, Request};
use http_body::Frame;
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::{Admin, MOST_EVENT_BYTES, answer};
use crate::error::CallError;
use crate::guard::{ConnectStage, GuardError};

impl Admin {
    /// What the tier is, holds and signs with.
    pub async fn memory(&self) -> Result<Value, CallError> {
        self.all_pages(&["memory"], &[], "witnesses").await
    }

    /// Puts a `ruvec1` file into the tier, as it is read.
    pub async fn publish_memory(
        &self,
        file: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
        memory_class: Option<&str>,
    ) -> Result<Value, CallError> {
        let mut url = self.at(&["memory", "collections"]);
        if let Some(class) = memory_class {
            url.query_pairs_mut().append_pair("memory_class", class);
        }
        // The guarded client sends what it has whole; this goes out as it is read, over the same guard's connector.
        let http = Client::builder(TokioExecutor::new()).build(self.node.guard().connector());
        let mut request = Request::new(StreamBody::new(Box::pin(file.map_ok(Frame::data))));
        *request.method_mut() = Method::PUT;
        *request.headers_mut() = self.headers(&url)?;
        let unsent = |reason: String| CallError::NotPossible { reason };
        *request.uri_mut() = url.as_str().parse().map_err(|fault: http::uri::InvalidUri| unsent(fault.to_string()))?;
        let exchange = async {
            let (head, body) = http.request(request).await.map_err(|fault| crate::guard::reason(&fault))?.into_parts();
            let body = Limited::new(body, MOST_EVENT_BYTES).collect().await;
            let body = body.map_err(|fault| GuardError::BrokeOff(fault.to_string()))?;
            Ok((head.status, body.to_bytes()))
        };
        let late = || Err(GuardError::TimedOut(ConnectStage::Exchange));
        let (status, body) = tokio::time::timeout(self.answer_within, exchange)
            .await
            .unwrap_or_else(|_| late())
            .map_err(|fault: GuardError| self.unreached(&url, &fault))?;
        answer(&url, status, &body)
    }

    pub async fn resolve_memory(&self, witness: &str, data_ref: Option<&str>) -> Result<Value, CallError> {
        self.post(&["memory", "resolve"], &json!({ "witness": witness, "data_ref": data_ref })).await
    }

    pub async fn search_memory(&self, witness: &str, queries: &[Vec<f32>], k: usize) -> Result<Value, CallError> {
        self.post(&["memory", "search"], &json!({ "witness": witness, "queries": queries, "k": k })).await
    }

    /// A grant, described as the API wants it.
    pub async fn grant_memory(&self, grant: &Value) -> Result<Value, CallError> {
        self.post(&["memory", "grants"], grant).await
    }

    pub async fn memory_grants(&self) -> Result<Value, CallError> {
        self.all_pages(&["memory", "grants"], &[], "grants").await
    }

    pub async fn revoke_memory(&self, grant: &str) -> Result<Value, CallError> {
        self.post(&["memory", "grants", grant, "revoke"], &json!({})).await
    }
}
