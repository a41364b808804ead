//! The operator's API for what is kept secret about webhooks: the keys of the vault, and the secrets agreed with origins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use chancery_identity::webhook::{DEFAULT_GRACE, HmacSecret};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use super::push_origin;
use crate::admin::AdminState;
use crate::admin::extract::{AdminBody, AdminQuery};
use crate::admin::fault::Fault;
use crate::admin::page::PageQuery;
use crate::webhooks::{SecretsError, VaultError, Webhooks};

pub(super) fn routes(admin_state: AdminState) -> Router {
    Router::new()
        .route("/admin/v1/push/vault", get(vault))
        .route("/admin/v1/push/vault/rotate", post(rotate))
        .route("/admin/v1/push/vault/retire", post(retire))
        .route("/admin/v1/push/secrets", get(secrets).post(agree))
        .route("/admin/v1/push/secrets/remove", post(remove))
        .with_state(admin_state)
}

impl From<VaultError> for Fault {
    fn from(error: VaultError) -> Self {
        let status = match error {
            VaultError::Folder(_) => StatusCode::INTERNAL_SERVER_ERROR,
            VaultError::Ring(_) => StatusCode::CONFLICT,
        };
        Self::new(status, error.to_string())
    }
}

impl From<SecretsError> for Fault {
    fn from(error: SecretsError) -> Self {
        let status = match error {
            SecretsError::Folder(_) | SecretsError::Damaged => StatusCode::INTERNAL_SERVER_ERROR,
            SecretsError::Rotation(_) => StatusCode::CONFLICT,
            SecretsError::Unknown(_) => StatusCode::NOT_FOUND,
        };
        Self::new(status, error.to_string())
    }
}

impl AdminState {
    fn webhooks(&self) -> Result<&Arc<Webhooks>, Fault> {
        self.engine()?;
        self.webhooks.as_ref().ok_or_else(|| Fault::new(StatusCode::CONFLICT, "this node has no webhooks".to_owned()))
    }
}

async fn keys(admin_state: &AdminState) -> Result<(Vec<Value>, BTreeMap<Arc<str>, u64>), Fault> {
    let sealed = admin_state.engine()?.sealed_by().await?;
    let keys = admin_state.webhooks()?.vault.keys();
    let current = keys.len().saturating_sub(1);
    let shown = keys.iter().enumerate().map(|(at, (id, made_at))| {
        let registrations = sealed.get(id).copied().unwrap_or(0);
        json!({ "id": id, "made_at": made_at, "seals": at == current, "registrations": registrations })
    });
    Ok((shown.collect(), sealed))
}

async fn vault(State(admin_state): State<AdminState>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let key = |shown: Value| (shown["id"].as_str().unwrap_or_default().to_owned(), shown);
    let (keys, next) = page.cut(keys(&admin_state).await?.0.into_iter().map(key).collect())?;
    Ok(Json(json!({ "keys": keys, "next": next })))
}

/// Makes a new key that seals from now on, and seals the registrations again with it. The old keys stay until
/// they are retired, so deliveries under way are not lost.
async fn rotate(State(admin_state): State<AdminState>) -> Result<Json<Value>, Fault> {
    let webhooks = admin_state.webhooks()?;
    let id = webhooks.vault.rotate(admin_state.clock.now())?;
    webhooks.secrets.reseal()?;
    let done = admin_state.engine()?.reseal().await?;
    tracing::info!(key = &*id, moved = done.moved, lost = done.lost, "an operator made a new key for the webhook vault");
    Ok(Json(json!({ "id": id, "moved": done.moved, "lost": done.lost, "keys": keys(&admin_state).await?.0 })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    id: String,
}

async fn retire(State(admin_state): State<AdminState>, AdminBody(Key { id }): AdminBody<Key>) -> Result<Json<Value>, Fault> {
    let (_, sealed) = keys(&admin_state).await?;
    if let Some(count) = sealed.get(&*id) {
        let message = format!("{count} registrations are still sealed by {id}; rotate the vault first");
        return Err(Fault::new(StatusCode::CONFLICT, message));
    }
    admin_state.webhooks()?.vault.retire(&id)?;
    tracing::info!(key = id, "an operator retired a key of the webhook vault");
    Ok(Json(json!({ "keys": keys(&admin_state).await?.0 })))
}

async fn secrets(State(admin_state): State<AdminState>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let agreed = admin_state.webhooks()?.secrets.shown(admin_state.clock.now());
    let (secrets, next) = page.cut(agreed.iter().map(|one| (one.origin.clone(), json!(one))).collect())?;
    Ok(Json(json!({ "secrets": secrets, "next": next })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewSecret {
    origin: String,
    /// A secret is made if this is absent.
    secret: Option<String>,
    grace_s: Option<u64>,
}

async fn agree(State(admin_state): State<AdminState>, AdminBody(new): AdminBody<NewSecret>) -> Result<Json<Value>, Fault> {
    let origin = push_origin(&new.origin).map_err(|fault| Fault::bad(format!("origin: {fault}")))?;
    let given = new.secret.map(SecretString::from);
    let secret = match &given {
        Some(text) => HmacSecret::parse(text.expose_secret()),
        None => HmacSecret::generate(),
    };
    let secret = secret.map_err(|fault| Fault::bad(format!("secret: {fault}")))?;
    // Only what was made here is told, and only now.
    let shown = given.is_none().then(|| secret.to_text().expose_secret().to_owned());
    let grace = new.grace_s.map_or(DEFAULT_GRACE, Duration::from_secs);
    admin_state.webhooks()?.agree(&origin, secret, grace, admin_state.clock.now())?;
    tracing::info!(origin, "an operator set a secret for webhooks");
    Ok(Json(json!({ "origin": origin, "secret": shown })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfOrigin {
    origin: String,
}

async fn remove(State(admin_state): State<AdminState>, AdminBody(of): AdminBody<OfOrigin>) -> Result<Json<Value>, Fault> {
    let origin = push_origin(&of.origin).map_err(|fault| Fault::bad(format!("origin: {fault}")))?;
    admin_state.webhooks()?.disagree(&origin)?;
    tracing::info!(origin, "an operator removed a secret for webhooks");
    Ok(Json(json!({ "origin": origin })))
}
