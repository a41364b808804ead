//! The operator's calls: every caller's tasks and trees, the callers, the agents, the keys, the freezes and the webhooks of a node, with the node's own token.

mod memory;
mod pages;
mod push;

use std::collections::VecDeque;
use std::time::Duration;

use chancery_identity::credentials::CallerRecord;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use url::Url;

use crate::error::CallError;
use crate::guard::{Fetch, Fetched, GuardError, GuardedBody, GuardedClient};
use crate::sse::{Parser, ServerSentEvent};
use crate::typed::TypedUrl;

const ROOT: [&str; 2] = ["admin", "v1"];
/// For what the node has to go through all of its record for.
const LONG: Duration = Duration::from_secs(600);
/// A task may be silent for as long as it likes.
const ANY_TIME: Duration = Duration::from_secs(365 * 24 * 3_600);
/// More than this is read of no answer.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// The longest event that is read.
const MOST_EVENT_BYTES: usize = 64 * 1024 * 1024;
const AGENT: HeaderValue = HeaderValue::from_static(concat!("chancery/", env!("CARGO_PKG_VERSION")));
/// The most that the API puts on a page.
const LARGEST_PAGE: usize = 1_000;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

#[derive(Clone, Debug)]
pub struct Admin {
    node: TypedUrl,
    client: GuardedClient,
    answer_within: Duration,
    /// The whole header.
    authorization: SecretString,
}

/// A scope as an operator names it: the node finds out whom the name means.
#[derive(Clone, Copy, Debug)]
pub struct ScopeName<'a> {
    /// `caller`, `agent`, `tenant`, `tree` and others.
    pub kind: &'a str,
    pub name: Option<&'a str>,
    /// Whether an unknown name is used as it is written.
    pub unknown_ok: bool,
}

impl<'a> ScopeName<'a> {
    fn query(self) -> Vec<(&'static str, &'a str)> {
        let unknown_ok = if self.unknown_ok { "true" } else { "false" };
        [("scope", Some(self.kind)), ("name", self.name), ("unknown_ok", Some(unknown_ok))]
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)))
            .collect()
    }
}

impl Admin {
    /// An answer may take `answer_within`.
    pub fn new(node: TypedUrl, answer_within: Duration, token: &str) -> Self {
        let client = node.guard().client();
        Self { node, client, answer_within, authorization: format!("Bearer {token}").into() }
    }

    /// With more time for answers, for what takes long.
    pub fn patient(mut self, answer_within: Duration) -> Self {
        self.answer_within = answer_within;
        self
    }

    /// A page of the tasks of all callers, newest status first, by the filters that the API knows.
    pub async fn tasks(&self, query: &[(&str, &str)]) -> Result<Value, CallError> {
        self.get_with(&["tasks"], query).await
    }

    pub async fn task(&self, id: &str) -> Result<Value, CallError> {
        self.get(&["tasks", id]).await
    }

    pub async fn cancel(&self, id: &str) -> Result<Value, CallError> {
        let url = self.at(&["tasks", id, "cancel"]);
        self.ask(&url, Fetch::post(url.as_str(), "")).await
    }

    /// Makes the node read its config file again.
    pub async fn reload(&self) -> Result<Value, CallError> {
        self.post(&["reload"], &json!({})).await
    }

    /// Which config holds.
    pub async fn config(&self) -> Result<Value, CallError> {
        self.get(&["config"]).await
    }

    pub async fn keys(&self) -> Result<Value, CallError> {
        self.all_pages(&["keys"], &[], "keys").await
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
        self.all_pages(&["callers"], &[], "callers").await
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
        self.all_pages(&["agents"], &[], "agents").await
    }

    /// Adds a remote agent, in the form of the API.
    pub async fn add_agent(&self, agent: &Value) -> Result<Value, CallError> {
        self.post(&["agents"], agent).await
    }

    pub async fn remove_agent(&self, name: &str) -> Result<Value, CallError> {
        let url = self.at(&["agents", name]);
        self.ask(&url, Fetch { method: Method::DELETE, ..Fetch::get(url.as_str()) }).await
    }

    /// Approves the card that waits, or, with `anew`, the agent's current card.
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

    /// The address of an agent; `rotate` makes another one.
    pub async fn agent_url(&self, name: &str, rotate: bool) -> Result<Value, CallError> {
        match rotate {
            true => self.post(&["agents", name, "url"], &json!({})).await,
            false => self.get(&["agents", name, "url"]).await,
        }
    }

    /// The trees of a trace, or the one a task belongs to. With `unknown_ok` there may be none.
    pub async fn trees(&self, trace_or_task: &str, unknown_ok: bool) -> Result<Value, CallError> {
        let segments = ["trees", trace_or_task];
        let query = [("unknown_ok", unknown_ok.to_string()), ("limit", LARGEST_PAGE.to_string())];
        let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut whole = self.get_with(&segments, &query).await?;
        while let Some(next) = whole["next"].as_str().map(str::to_owned) {
            let page = self.get_with(&segments, &[&query[..], &[("after", &next)]].concat()).await?;
            pages::add_trees(&mut whole, page);
        }
        Ok(whole)
    }

    /// Cancels a task and all below it, and returns the outcome of each.
    pub async fn cancel_tree(&self, trace_or_task: &str) -> Result<Value, CallError> {
        self.post(&["trees", trace_or_task, "cancel"], &json!({})).await
    }

    /// What each rule said about a call, by the task it made or by the id of the decision.
    pub async fn explain(&self, task_or_decision: &str) -> Result<Value, CallError> {
        self.get(&["explain", task_or_decision]).await
    }

    /// The newest decisions about calls that made no task.
    pub async fn decisions(&self, limit: usize) -> Result<Value, CallError> {
        self.get_with(&["decisions"], &[("limit", &limit.to_string())]).await
    }

    /// All budgets, those of a kind, or those of one scope.
    pub async fn budgets(&self, scope: Option<ScopeName<'_>>) -> Result<Value, CallError> {
        let query = scope.map(ScopeName::query).unwrap_or_default();
        self.all_pages(&["budgets"], &query, "budgets").await
    }

    /// What was spent in so many seconds, a line for each of a kind.
    pub async fn bill(&self, since_seconds: u64, by: &str) -> Result<Value, CallError> {
        let since = since_seconds.to_string();
        self.all_pages(&["bill"], &[("since_seconds", &since), ("by", by)], "lines").await
    }

    pub async fn freezes(&self) -> Result<Value, CallError> {
        self.all_pages(&["freezes"], &[], "freezes").await
    }

    /// Nothing new is admitted to it once this has answered.
    pub async fn freeze(&self, scope: ScopeName<'_>, why: Option<&str>) -> Result<Value, CallError> {
        let ScopeName { kind, name, unknown_ok } = scope;
        self.post(&["freezes"], &json!({ "scope": kind, "name": name, "why": why, "unknown_ok": unknown_ok })).await
    }

    pub async fn thaw(&self, scope: ScopeName<'_>) -> Result<Value, CallError> {
        let mut url = self.at(&["freezes"]);
        url.query_pairs_mut().extend_pairs(scope.query());
        self.ask(&url, Fetch { method: Method::DELETE, ..Fetch::get(url.as_str()) }).await
    }

    /// How the record stands. The node goes through all of it.
    pub async fn evidence(&self) -> Result<Value, CallError> {
        let url = self.at(&["evidence"]);
        self.ask(&url, Fetch { within: Some(LONG), ..Fetch::get(url.as_str()) }).await
    }

    /// A bundle of what is recorded about a task, a trace or a stretch of time.
    pub async fn evidence_bundle(&self, wanted: &[(&str, &str)]) -> Result<Vec<u8>, CallError> {
        let mut url = self.at(&["evidence", "bundle"]);
        url.query_pairs_mut().extend_pairs(wanted);
        let fetched = self.fetch(&url, Fetch { within: Some(LONG), ..Fetch::get(url.as_str()) }).await?;
        match fetched.status.is_success() {
            true => Ok(fetched.body.into()),
            false => Err(refused(&url, fetched.status, &fetched.body)),
        }
    }

    /// A task's log after an entry, and then what is added to it.
    pub async fn follow(&self, id: &str, after: u64) -> Result<AdminEvents, CallError> {
        let mut url = self.at(&["tasks", id, "events"]);
        url.query_pairs_mut().append_pair("after", &after.to_string()).append_pair("follow", "true");
        let fetch = Fetch { most_bytes: Some(u64::MAX), within: Some(ANY_TIME), ..Fetch::get(url.as_str()) };
        let opened = tokio::time::timeout(self.answer_within, self.client.stream(self.dressed(&url, fetch)?)).await;
        let opened = opened.unwrap_or(Err(GuardError::TimedOut(crate::guard::ConnectStage::Exchange)));
        let mut opened = opened.map_err(|fault| self.unreached(&url, &fault))?;
        let media_type = opened.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if media_type.starts_with("text/event-stream") {
            let (parser, ready) = (Parser::new(MOST_EVENT_BYTES), VecDeque::new());
            return Ok(AdminEvents { url, admin: self.clone(), body: opened.body, parser, ready });
        }
        let mut whole = Vec::new();
        while let Some(part) = opened.body.chunk().await.map_err(|fault| self.unreached(&url, &fault))? {
            whole.extend_from_slice(&part);
            if whole.len() > MOST_EVENT_BYTES {
                break;
            }
        }
        Err(refused(&url, opened.status, &whole))
    }

    fn at(&self, segments: &[&str]) -> Url {
        self.node.at(ROOT.iter().chain(segments).copied())
    }

    async fn get(&self, segments: &[&str]) -> Result<Value, CallError> {
        let url = self.at(segments);
        self.ask(&url, Fetch::get(url.as_str())).await
    }

    async fn get_with(&self, segments: &[&str], query: &[(&str, &str)]) -> Result<Value, CallError> {
        let mut url = self.at(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.ask(&url, Fetch::get(url.as_str())).await
    }

    async fn post(&self, segments: &[&str], body: &Value) -> Result<Value, CallError> {
        let url = self.at(segments);
        self.ask(&url, Fetch::post(url.as_str(), body.to_string())).await
    }

    async fn ask(&self, url: &Url, fetch: Fetch) -> Result<Value, CallError> {
        let fetched = self.fetch(url, fetch).await?;
        answer(url, fetched.status, &fetched.body)
    }

    async fn fetch(&self, url: &Url, fetch: Fetch) -> Result<Fetched, CallError> {
        let fetched = self.client.fetch(self.dressed(url, fetch)?).await;
        fetched.map_err(|fault| self.unreached(url, &fault))
    }

    /// The request with all that goes with every one.
    fn dressed(&self, url: &Url, mut fetch: Fetch) -> Result<Fetch, CallError> {
        fetch.headers.extend(self.headers(url)?);
        if !fetch.body.is_empty() {
            fetch.headers.insert(CONTENT_TYPE, JSON);
        }
        fetch.most_bytes = fetch.most_bytes.or(Some(MOST_BYTES));
        fetch.within = fetch.within.or(Some(self.answer_within));
        Ok(fetch)
    }

    fn headers(&self, url: &Url) -> Result<HeaderMap, CallError> {
        let unusable = |_| CallError::not_understood(url.as_str(), "its token cannot stand in a header");
        let mut authorization = HeaderValue::from_str(self.authorization.expose_secret()).map_err(unusable)?;
        authorization.set_sensitive(true);
        Ok(HeaderMap::from_iter([(AUTHORIZATION, authorization), (USER_AGENT, AGENT)]))
    }

    fn unreached(&self, url: &Url, fault: &GuardError) -> CallError {
        CallError::of_guard(url.as_str(), fault, self.node.guard())
    }
}

fn answer(url: &Url, status: StatusCode, body: &[u8]) -> Result<Value, CallError> {
    match status.is_success() {
        true => serde_json::from_slice(body).map_err(|error| CallError::not_understood(url.as_str(), error.to_string())),
        false => Err(refused(url, status, body)),
    }
}

fn refused(url: &Url, status: StatusCode, body: &[u8]) -> CallError {
    let text = String::from_utf8_lossy(body);
    refusal(&text).unwrap_or_else(|| CallError::status(url.as_str(), status, &text))
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
    url: Url,
    admin: Admin,
    body: GuardedBody,
    parser: Parser,
    ready: VecDeque<ServerSentEvent>,
}

impl AdminEvents {
    /// The next entry; nothing when there will be none.
    pub async fn next(&mut self) -> Result<Option<Value>, CallError> {
        let odd = |reason: String| CallError::not_understood(self.url.as_str(), reason);
        loop {
            if let Some(event) = self.ready.pop_front() {
                return serde_json::from_str(&event.data).map(Some).map_err(|error| odd(error.to_string()));
            }
            let part = self.body.chunk().await.map_err(|fault| self.admin.unreached(&self.url, &fault))?;
            let Some(part) = part else { return Ok(None) };
            self.ready.extend(self.parser.feed(&part).map_err(|error| odd(error.to_string()))?);
        }
    }
}
