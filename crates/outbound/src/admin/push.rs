//! The operator's calls about webhooks.

use serde_json::Value;

use super::Admin;
use crate::error::CallError;
use crate::guard::Fetch;

impl Admin {
    /// One of the lists or things under `/admin/v1/push`.
    pub async fn push_get(&self, segments: &[&str], query: &[(&str, String)]) -> Result<Value, CallError> {
        let mut url = self.at(&[&["push"], segments].concat());
        for (name, value) in query {
            url.query_pairs_mut().append_pair(name, value);
        }
        self.ask(&url, Fetch::get(url.as_str())).await
    }

    /// A whole list there, the entries of which are in `member`.
    pub async fn push_list(&self, segments: &[&str], member: &str) -> Result<Value, CallError> {
        self.all_pages(&[&["push"], segments].concat(), &[], member).await
    }

    /// Changes something there.
    pub async fn push_post(&self, segments: &[&str], body: &Value) -> Result<Value, CallError> {
        self.post(&[&["push"], segments].concat(), body).await
    }
}
