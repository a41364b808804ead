//! The operator's API under `/admin/v1`, behind the node's own token. `routes.rs` has every operation.

mod agents;
mod config;
mod evidence;
mod extract;
mod fault;
mod freezes;
mod governance;
#[cfg(feature = "memory-tier")]
mod memory;
#[cfg(not(feature = "memory-tier"))]
#[path = "admin/memory_absent.rs"]
mod memory;
mod page;
mod push;
mod routes;
mod scopes;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use chancery_core::notify::Engine;
use chancery_core::{Chancery, Clock};
use chancery_identity::credentials::CallerRecord;
use chancery_identity::keys::KeyRecord;
use chancery_identity::{Algorithm, KeyUse, agent_id_from_pubkey};
use chancery_protocol::{AgentId, MayCall, Timestamp};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use self::extract::{AdminBody, AdminPath, AdminQuery};
use self::fault::Fault;
use self::page::PageQuery;
pub use self::routes::{ADMIN_ROUTES, AdminRoute};
use crate::caller_registry::{CallerRegistry, CallerRegistryError};
use crate::config::Config;
use crate::gateway::Gateway;
use crate::key_registry::{KeyRegistry, KeyRegistryError};
use crate::memory::NodeMemory;
use crate::reload::ReloaderHandle;
use crate::webhooks::Webhooks;

/// What the operator can change while the node runs.
#[derive(Clone, Debug)]
pub(crate) struct AdminState {
    pub(crate) callers: Arc<CallerRegistry>,
    pub(crate) keys: Arc<KeyRegistry>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The node was started without callers. It accepts every caller until it is restarted.
    pub(crate) open: bool,
    pub(crate) parts: Arc<AdminParts>,
    #[cfg_attr(not(feature = "memory-tier"), expect(dead_code, reason = "only the memory routes read it"))]
    pub(crate) memory: Option<NodeMemory>,
    /// Delivers notifications, where there are webhooks.
    pub(crate) engine: Option<Arc<Engine>>,
    pub(crate) webhooks: Option<Arc<Webhooks>>,
}

/// What a caller can be granted here, and by what it can prove itself. A node does not start with callers that name
/// anything else, so none is added to it.
#[derive(Debug)]
pub(crate) struct AdminParts {
    /// Has the agents, which come and go.
    pub(crate) chancery: Chancery,
    pub(crate) issuers: Vec<String>,
    pub(crate) client_certificates: bool,
}

impl AdminParts {
    pub(crate) fn of(config: &Config, chancery: Chancery) -> Self {
        let issuers = config.issuers.iter().map(|issuer| issuer.name.clone()).collect();
        Self { chancery, issuers, client_certificates: config.tls.client_ca_file.is_some() }
    }

    fn fault(&self, record: &CallerRecord) -> Option<String> {
        let granted = match &record.may_call {
            MayCall::Everything => &[][..],
            MayCall::Only(grants) => grants,
        };
        let served = self.chancery.agents();
        let mut agents = granted.iter().map(|grant| &grant.agent).chain(&record.agent);
        if let Some(unknown) = agents.find(|name| served.get(name).is_none()) {
            let names: Vec<&str> = served.iter().map(|agent| &*agent.name).collect();
            return Some(format!("there is no agent {unknown} here, only {}", names.join(", ")));
        }
        if let Some(token) = record.tokens.iter().find(|token| !self.issuers.contains(&token.issuer)) {
            return Some(format!("there is no issuer {} in the config of this node", token.issuer));
        }
        let shows_none = !record.certificates.is_empty() && !self.client_certificates;
        shows_none.then(|| "this node asks for no certificates; set tls.client_ca_file in its config first".to_owned())
    }
}

/// The whole admin API, behind the token.
pub(crate) fn routes(admin_state: AdminState, gateway: &Arc<Gateway>, reloader: &ReloaderHandle, token: SecretString) -> Router {
    let tasks = tasks::routes(admin_state.parts.chancery.clone());
    let governance = governance::routes(admin_state.clone())
        .merge(freezes::routes(admin_state.clone()))
        .merge(evidence::routes(admin_state.clone()));
    let memory = memory::routes(admin_state.clone());
    let push = push::routes(admin_state.clone());
    let operations = Router::new()
        .route("/admin/v1/callers", get(callers).post(add_caller))
        .route("/admin/v1/callers/{name}/rotate", post(rotate_caller))
        .route("/admin/v1/callers/{name}/revoke", post(revoke_caller))
        .route("/admin/v1/keys", get(keys))
        .route("/admin/v1/keys/rotate", post(rotate_keys))
        .with_state(admin_state)
        .merge(agents::routes(gateway))
        .merge(config::routes(reloader))
        .merge(governance)
        .merge(memory)
        .merge(push)
        .merge(tasks);
    routes::guarded(operations, token)
}

impl From<CallerRegistryError> for Fault {
    fn from(error: CallerRegistryError) -> Self {
        let status = match error {
            CallerRegistryError::Unknown(_) => StatusCode::NOT_FOUND,
            CallerRegistryError::Taken(_)
            | CallerRegistryError::Configured(_)
            | CallerRegistryError::NoFolder
            | CallerRegistryError::Rotate(_) => StatusCode::CONFLICT,
            CallerRegistryError::Faulty(_) => StatusCode::BAD_REQUEST,
            CallerRegistryError::Folder(_) | CallerRegistryError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<KeyRegistryError> for Fault {
    fn from(error: KeyRegistryError) -> Self {
        let status = match error {
            KeyRegistryError::Ring(_) => StatusCode::CONFLICT,
            KeyRegistryError::Folder(_) | KeyRegistryError::Given(_) | KeyRegistryError::Signers(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        Self::new(status, error.to_string())
    }
}

/// A caller without its secrets.
pub fn show_caller(record: &CallerRecord, configured: bool) -> Value {
    let mut shown = serde_json::to_value(record).unwrap_or_default();
    shown["configured"] = json!(configured);
    shown["keys"] = record.keys.iter().map(|key| json!({ "made_at": key.made_at, "expires_at": key.expires_at })).collect();
    shown
}

/// A key without its private half.
pub fn show_key(key: &KeyRecord, now: Timestamp) -> Value {
    json!({
        "use": key.key_use.as_str(),
        "owner": key.owner,
        "algorithm": key.algorithm().to_string(),
        "kid": key.kid,
        "agent_id": agent_id(key),
        "made_at": key.made_at,
        "used_from": key.used_from,
        "retires_at": key.retires_at,
        "given": key.given,
        "state": state(key, now),
    })
}

/// Only the key of an agent's cards says who the agent is.
fn agent_id(key: &KeyRecord) -> Option<AgentId> {
    let is_agents_own = key.key_use == KeyUse::Cards && key.algorithm() == Algorithm::EdDsa;
    let raw = is_agents_own.then(|| <&[u8; 32]>::try_from(key.public.raw()).ok()).flatten();
    raw.map(agent_id_from_pubkey)
}

fn state(key: &KeyRecord, now: Timestamp) -> &'static str {
    match key.retires_at {
        Some(end) if end <= now => "retired",
        _ if now < key.used_from => "published",
        Some(_) => "retiring",
        None => "in use",
    }
}

async fn callers(State(admin_state): State<AdminState>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let entry = |(record, configured): &(CallerRecord, bool)| (record.name.clone(), show_caller(record, *configured));
    let (callers, next) = page.cut(admin_state.callers.list().iter().map(entry).collect())?;
    Ok(Json(json!({ "callers": callers, "open": admin_state.open, "next": next })))
}

async fn add_caller(
    State(admin_state): State<AdminState>,
    AdminBody(record): AdminBody<CallerRecord>,
) -> Result<Json<Value>, Fault> {
    if let Some(fault) = admin_state.parts.fault(&record) {
        return Err(Fault::new(StatusCode::BAD_REQUEST, fault));
    }
    let name = record.name.clone();
    let key = admin_state.callers.add(record, admin_state.clock.now())?;
    tracing::info!(caller = name, "an operator added a caller");
    Ok(Json(with_key(&admin_state, &name, key.as_ref())))
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RotateCaller {
    overlap_seconds: u64,
}

impl Default for RotateCaller {
    fn default() -> Self {
        Self { overlap_seconds: CallerRecord::OVERLAP.as_secs() }
    }
}

async fn rotate_caller(
    State(admin_state): State<AdminState>,
    AdminPath(name): AdminPath<String>,
    AdminBody(how): AdminBody<RotateCaller>,
) -> Result<Json<Value>, Fault> {
    let key = admin_state.callers.rotate(&name, Duration::from_secs(how.overlap_seconds), admin_state.clock.now())?;
    tracing::info!(caller = name, overlap_seconds = how.overlap_seconds, "an operator gave a caller a new key");
    Ok(Json(with_key(&admin_state, &name, Some(&key))))
}

async fn revoke_caller(State(admin_state): State<AdminState>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    admin_state.callers.revoke(&name)?;
    tracing::info!(caller = name, "an operator revoked a caller");
    Ok(Json(with_key(&admin_state, &name, None)))
}

/// The one time a key is shown.
fn with_key(admin_state: &AdminState, name: &str, key: Option<&SecretString>) -> Value {
    json!({ "name": name, "key": key.map(|key| key.expose_secret()), "open": admin_state.open })
}

async fn keys(State(admin_state): State<AdminState>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let now = admin_state.clock.now();
    let entry = |key: &KeyRecord| {
        (format!("{}.{}.{}", key.key_use, key.owner.as_deref().unwrap_or_default(), key.kid), show_key(key, now))
    };
    let (keys, next) = page.cut(admin_state.keys.ring().records().iter().map(entry).collect())?;
    Ok(Json(json!({ "keys": keys, "next": next })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RotateKeys {
    #[serde(rename = "use")]
    key_use: String,
    owner: Option<String>,
    lead_seconds: Option<u64>,
    overlap_seconds: Option<u64>,
}

async fn rotate_keys(State(admin_state): State<AdminState>, AdminBody(how): AdminBody<RotateKeys>) -> Result<Json<Value>, Fault> {
    let key_use: KeyUse = how.key_use.parse().map_err(|fault| Fault::new(StatusCode::BAD_REQUEST, format!("use: {fault}")))?;
    let lead = how.lead_seconds.map_or(KeyRegistry::LEAD, Duration::from_secs);
    let overlap = how.overlap_seconds.map_or(KeyRegistry::OVERLAP, Duration::from_secs);
    let now = admin_state.clock.now();
    let made = admin_state.keys.rotate(key_use, how.owner.as_deref(), lead, overlap, now)?;
    tracing::info!(key_use = %key_use, owner = how.owner, "an operator rotated keys");
    Ok(Json(json!({ "keys": made.iter().map(|key| show_key(key, now)).collect::<Vec<_>>() })))
}
