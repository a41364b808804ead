//! The operator's calls for the memory tier of a node.

use bytes::Bytes;
use futures::Stream;
use reqwest::Body;
use serde_json::{Value, json};

use super::Admin;
use crate::error::CallError;

impl Admin {
    /// What the tier is, holds and signs with.
    pub async fn memory(&self) -> Result<Value, CallError> {
        self.get(&["memory"]).await
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
        self.ask(&url, self.peer.http.put(url.clone()).body(Body::wrap_stream(file))).await
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
        self.get(&["memory", "grants"]).await
    }

    pub async fn revoke_memory(&self, grant: &str) -> Result<Value, CallError> {
        self.post(&["memory", "grants", grant, "revoke"], &json!({})).await
    }
}
