//! `/admin/v1/agents`: which agents there are, how they do, and what is to become of them.

use std::sync::{Arc, Weak};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::extract::{AdminBody, AdminPath, AdminQuery};
use super::fault::Fault;
use super::page::PageQuery;
use crate::agent_registry::{AgentRecord, AgentRegistryError};
use crate::gateway::{Gateway, GatewayError};

/// The doors, which these routes are behind, do not keep the gateway alive: it shows its agents at those doors.
#[derive(Clone)]
struct GatewayHandle(Weak<Gateway>);

impl GatewayHandle {
    fn gateway(&self) -> Result<Arc<Gateway>, Fault> {
        self.0.upgrade().ok_or_else(|| Fault::new(StatusCode::SERVICE_UNAVAILABLE, "the node is shutting down".to_owned()))
    }
}

pub(super) fn routes(gateway: &Arc<Gateway>) -> Router {
    Router::new()
        .route("/admin/v1/agents", get(list).post(add))
        .route("/admin/v1/agents/{name}", get(show).delete(remove))
        .route("/admin/v1/agents/{name}/approve", post(approve))
        .route("/admin/v1/agents/{name}/health", get(health))
        .route("/admin/v1/agents/{name}/url", get(address).post(rotate))
        .with_state(GatewayHandle(Arc::downgrade(gateway)))
}

impl From<GatewayError> for Fault {
    fn from(error: GatewayError) -> Self {
        use AgentRegistryError::{Configured, Damaged, Faulty, Folder, NoFolder, Taken, Unknown};
        let status = match &error {
            GatewayError::Book(Unknown(_)) => StatusCode::NOT_FOUND,
            GatewayError::Book(Faulty(_)) => StatusCode::BAD_REQUEST,
            GatewayError::Book(Taken(_) | Configured(_) | NoFolder)
            | GatewayError::Refused(_)
            | GatewayError::BuiltIn(_)
            | GatewayError::NothingWaits(_)
            | GatewayError::AnotherWaits(_) => StatusCode::CONFLICT,
            GatewayError::Book(Folder(_) | Damaged(_))
            | GatewayError::Keys(_)
            | GatewayError::Card(_)
            | GatewayError::NotKept(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

async fn list(State(held): State<GatewayHandle>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let (agents, next) = page.cut(held.gateway()?.list())?;
    Ok(Json(json!({ "agents": agents, "next": next })))
}

async fn add(State(held): State<GatewayHandle>, AdminBody(record): AdminBody<AgentRecord>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.gateway()?.add(record).await?))
}

async fn show(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.gateway()?.one(&name)?))
}

async fn remove(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    held.gateway()?.remove(&name).await?;
    Ok(Json(json!({ "name": name })))
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Approve {
    anew: bool,
    digest: Option<String>,
}

async fn approve(
    State(held): State<GatewayHandle>,
    AdminPath(name): AdminPath<String>,
    AdminBody(how): AdminBody<Approve>,
) -> Result<Json<Value>, Fault> {
    Ok(Json(held.gateway()?.approve(&name, how.anew, how.digest.as_deref()).await?))
}

async fn address(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.gateway()?.address(&name, false)?))
}

async fn rotate(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.gateway()?.address(&name, true)?))
}

async fn health(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.gateway()?.health(&name)?))
}
