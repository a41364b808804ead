//! The operator's calls: every caller's tasks and trees, the callers, the agents, the keys, the freezes and the webhooks of a node, with the node's own token.

mod push;

mod memory;

use std::time::Duration;

use chancery_identity::credentials::CallerRecord;
use reqwest::{RequestBuilder, Url, header};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use crate::error::CallError;
use crate::frames::{Frames, Opened};
use crate::peer::Peer;

const ROOT: [&str; 2] = ["admin", "v1"];
/// For what the node has to go through all of its record for.
const LONG: Duration = Duration::from_secs(600);

#[derive(Clone, Debug)]
pub struct Admin {
    peer: Peer,
    /// The whole header.
    authorization: SecretString,
}

impl Admin {
    pub fn new(peer: Peer, token: &str) -> Self {
        Self { peer, authorization: format!("Bearer {token}").into() }
    }

    /// With more time for answers, for what takes long.
    pub fn patient(mut self, answer_within: Duration) -> Self {
        self.peer.answer_within = answer_within;
        self
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
        self.get(&["tasks", id]).await
    }

    pub async fn cancel(&self, id: &str) -> Result<Value, CallError> {
        let url = self.at(&["tasks", id, "cancel"]);
        self.ask(&url, self.peer.http.post(url.clone())).await
    }

    /// Makes the node read its config file anew.
    pub async fn reload(&self) -> Result<Value, CallError> {
        self.post(&["reload"], &json!({})).await
    }

    /// Which config holds.
    pub async fn config(&self) -> Result<Value, CallError> {
        self.get(&["config"]).await
    }

    pub async fn keys(&self) -> Result<Value, CallError> {
        self.get(&["keys"]).await
    }

    /// New keys for one use, of one agent or of the node.
    pub async fn rotate_keys(
        &self,
        key_use: &str,
        owner: Option<&str>,
        lead: Duration,
        overlap: Duration,
    ) -> Result<Value, CallError> {
        let how = json!({
            "use": key_use, "owner": owner, "lead_seconds": lead.as_secs(), "overlap_seconds": overlap.as_secs(),
        });
        self.post(&["keys", "rotate"], &how).await
    }

    pub async fn callers(&self) -> Result<Value, CallError> {
        self.get(&["callers"]).await
    }

    pub async fn add_caller(&self, caller: &CallerRecord) -> Result<Value, CallError> {
        self.post(&["callers"], &json!(caller)).await
    }

    pub async fn rotate_caller(&self, name: &str, overlap: Duration) -> Result<Value, CallError> {
        self.post(&["callers", name, "rotate"], &json!({ "overlap_seconds": overlap.as_secs() })).await
    }

    pub async fn revoke_caller(&self, name: &str) -> Result<Value, CallError> {
        self.post(&["callers", name, "revoke"], &json!({})).await
    }

    pub async fn agents(&self) -> Result<Value, CallError> {
        self.get(&["agents"]).await
    }

    /// Adds an agent elsewhere, described as the API wants it.
    pub async fn add_agent(&self, agent: &Value) -> Result<Value, CallError> {
        self.post(&["agents"], agent).await
    }

    pub async fn remove_agent(&self, name: &str) -> Result<Value, CallError> {
        let url = self.at(&["agents", name]);
        self.ask(&url, self.peer.http.delete(url.clone())).await
    }

    /// Takes over the card that waits, or, `anew`, whichever card the agent has now.
    pub async fn approve_agent(&self, name: &str, anew: bool, digest: Option<&str>) -> Result<Value, CallError> {
        self.post(&["agents", name, "approve"], &json!({ "anew": anew, "digest": digest })).await
    }

    /// One agent, with how it is called and what was learnt about it.
    pub async fn agent(&self, name: &str) -> Result<Value, CallError> {
        self.get(&["agents", name]).await
    }

    pub async fn agent_health(&self, name: &str) -> Result<Value, CallError> {
        self.get(&["agents", name, "health"]).await
    }

    /// The trees of a trace, or the one a task belongs to.
    pub async fn trees(&self, trace_or_task: &str) -> Result<Value, CallError> {
        self.get(&["trees", trace_or_task]).await
    }

    /// Cancels a task and all below it, and says what became of each.
    pub async fn cancel_tree(&self, trace_or_task: &str) -> Result<Value, CallError> {
        self.post(&["trees", trace_or_task, "cancel"], &json!({})).await
    }

    /// What each rule said about a call, by the task it made or by the id of the decision.
    pub async fn explain(&self, task_or_decision: &str) -> Result<Value, CallError> {
        self.get(&["explain", task_or_decision]).await
    }

    /// The newest decisions about calls that made no task.
    pub async fn decisions(&self, limit: usize) -> Result<Value, CallError> {
        let mut url = self.at(&["decisions"]);
        url.query_pairs_mut().append_pair("limit", &limit.to_string());
        self.ask(&url, self.peer.http.get(url.clone())).await
    }

    pub async fn budgets(&self) -> Result<Value, CallError> {
        self.get(&["budgets"]).await
    }

    pub async fn freezes(&self) -> Result<Value, CallError> {
        self.get(&["freezes"]).await
    }

    /// Nothing new is admitted to it once this has answered.
    pub async fn freeze(&self, scope: &str, name: Option<&str>, why: Option<&str>) -> Result<Value, CallError> {
        self.post(&["freezes"], &json!({ "scope": scope, "name": name, "why": why })).await
    }

    pub async fn thaw(&self, scope: &str, name: Option<&str>) -> Result<Value, CallError> {
        let mut url = self.at(&["freezes"]);
        url.query_pairs_mut().append_pair("scope", scope);
        if let Some(name) = name {
            url.query_pairs_mut().append_pair("name", name);
        }
        self.ask(&url, self.peer.http.delete(url.clone())).await
    }

    /// How the record stands. The node goes through all of it.
    pub async fn evidence(&self) -> Result<Value, CallError> {
        let url = self.at(&["evidence"]);
        self.ask(&url, self.peer.http.get(url.clone()).timeout(LONG)).await
    }

    /// A bundle of what is recorded about a task, a trace or a stretch of time.
    pub async fn evidence_bundle(&self, wanted: &[(&str, &str)]) -> Result<Vec<u8>, CallError> {
        let mut url = self.at(&["evidence", "bundle"]);
        url.query_pairs_mut().extend_pairs(wanted);
        let request = self.peer.http.get(url.clone()).header(header::AUTHORIZATION, self.authorization.expose_secret());
        let sent = request.timeout(LONG).send().await;
        let response = sent.map_err(|error| self.peer.explain(CallError::unreachable(&url, &error)))?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(|error| CallError::unreachable(&url, &error))?;
        if status.is_success() {
            return Ok(bytes.into());
        }
        let text = String::from_utf8_lossy(&bytes);
        Err(refusal(&text).unwrap_or_else(|| CallError::status(&url, status, &text)))
    }

    /// A task's log after an entry, and then what is added to it.
    pub async fn follow(&self, id: &str, after: u64) -> Result<AdminEvents, CallError> {
        let mut url = self.at(&["tasks", id, "events"]);
        url.query_pairs_mut().append_pair("after", &after.to_string()).append_pair("follow", "true");
        let get = self.peer.http.get(url.clone()).header(header::AUTHORIZATION, self.authorization.expose_secret());
        match self.peer.open_stream(&url, get).await? {
            Opened::Stream(frames) => Ok(AdminEvents { frames }),
            Opened::Whole(status, text) => Err(refusal(&text).unwrap_or_else(|| CallError::status(&url, status, &text))),
        }
    }

    fn at(&self, segments: &[&str]) -> Url {
        self.peer.at(ROOT.iter().chain(segments).copied())
    }

    async fn get(&self, segments: &[&str]) -> Result<Value, CallError> {
        let url = self.at(segments);
        self.ask(&url, self.peer.http.get(url.clone())).await
    }

    async fn post(&self, segments: &[&str], body: &Value) -> Result<Value, CallError> {
        let url = self.at(segments);
        self.ask(&url, self.peer.http.post(url.clone()).json(body)).await
    }

    async fn ask(&self, url: &Url, request: RequestBuilder) -> Result<Value, CallError> {
        let request = request.header(header::AUTHORIZATION, self.authorization.expose_secret());
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
