//! The operator's calls: every caller's tasks on a node, with the node's own token.

use reqwest::{RequestBuilder, Url, header};
use serde_json::Value;

use crate::error::CallError;
use crate::frames::{Frames, Opened};
use crate::peer::Peer;

const ROOT: [&str; 2] = ["admin", "v1"];

#[derive(Clone, Debug)]
pub struct Admin {
    peer: Peer,
    authorization: String,
}

impl Admin {
    pub fn new(peer: Peer, token: &str) -> Self {
        Self { peer, authorization: format!("Bearer {token}") }
    }

    /// Tasks of all callers, newest status first.
    pub async fn tasks(&self, state: Option<&str>, limit: usize, after: Option<&str>) -> Result<Value, CallError> {
        let mut url = self.at(&["tasks"]);
        url.query_pairs_mut().append_pair("limit", &limit.to_string());
        for (name, value) in [("state", state), ("after", after)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let get = self.peer.http.get(url.clone());
        self.ask(&url, get).await
    }

    pub async fn task(&self, id: &str) -> Result<Value, CallError> {
        let url = self.at(&["tasks", id]);
        let get = self.peer.http.get(url.clone());
        self.ask(&url, get).await
    }

    pub async fn cancel(&self, id: &str) -> Result<Value, CallError> {
        let url = self.at(&["tasks", id, "cancel"]);
        let post = self.peer.http.post(url.clone());
        self.ask(&url, post).await
    }

    /// A task's log after an entry, and then what is added to it.
    pub async fn follow(&self, id: &str, after: u64) -> Result<AdminEvents, CallError> {
        let mut url = self.at(&["tasks", id, "events"]);
        url.query_pairs_mut().append_pair("after", &after.to_string()).append_pair("follow", "true");
        let get = self.peer.http.get(url.clone()).header(header::AUTHORIZATION, &self.authorization);
        match self.peer.open_stream(&url, get).await? {
            Opened::Stream(frames) => Ok(AdminEvents { frames }),
            Opened::Whole(status, text) => Err(refusal(&text).unwrap_or_else(|| CallError::status(&url, status, &text))),
        }
    }

    fn at(&self, segments: &[&str]) -> Url {
        self.peer.at(ROOT.iter().chain(segments).copied())
    }

    async fn ask(&self, url: &Url, request: RequestBuilder) -> Result<Value, CallError> {
        let request = request.header(header::AUTHORIZATION, &self.authorization);
        let (status, text) = self.peer.ask(url, request).await?;
        if !status.is_success() {
            return Err(refusal(&text).unwrap_or_else(|| CallError::status(url, status, &text)));
        }
        serde_json::from_str(&text).map_err(|error| CallError::not_understood(url, error.to_string()))
    }
}

/// What the API says when it says no.
fn refusal(text: &str) -> Option<CallError> {
    let answer: Value = serde_json::from_str(text).ok()?;
    let error = answer.get("error")?;
    Some(CallError::Refused { code: error["code"].as_i64()?, message: error["message"].as_str()?.to_owned() })
}

/// The entries of a task's log, as they are added.
#[derive(Debug)]
pub struct AdminEvents {
    frames: Box<Frames>,
}

impl AdminEvents {
    /// The next entry; nothing when there will be none. A task may be silent for as long as it likes.
    pub async fn next(&mut self) -> Result<Option<Value>, CallError> {
        let Some(frame) = self.frames.next(None).await? else { return Ok(None) };
        let entry = serde_json::from_str(&frame.data);
        entry.map(Some).map_err(|error| CallError::not_understood(&self.frames.url, error.to_string()))
    }
}
