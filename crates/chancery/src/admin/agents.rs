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
use crate::agent_registry::{AgentBookError, AgentRecord};
use crate::gateway::{FleetError, Gateway};

/// The doors, which these routes are behind, do not keep the fleet alive: it shows its agents at those doors.
#[derive(Clone)]
struct GatewayHandle(Weak<Gateway>);

impl GatewayHandle {
    fn fleet(&self) -> Result<Arc<Gateway>, Fault> {
        self.0.upgrade().ok_or_else(|| Fault::new(StatusCode::SERVICE_UNAVAILABLE, "the node is shutting down".to_owned()))
    }
}

pub(super) fn routes(fleet: &Arc<Gateway>) -> Router {
    Router::new()
        .route("/admin/v1/agents", get(list).post(add))
        .route("/admin/v1/agents/{name}", get(show).delete(remove))
        .route("/admin/v1/agents/{name}/approve", post(approve))
        .route("/admin/v1/agents/{name}/health", get(health))
        .route("/admin/v1/agents/{name}/url", get(address).post(rotate))
        .with_state(GatewayHandle(Arc::downgrade(fleet)))
}

impl From<FleetError> for Fault {
    fn from(error: FleetError) -> Self {
        use AgentBookError::{Configured, Damaged, Faulty, Folder, NoFolder, Taken, Unknown};
        let status = match &error {
            FleetError::Book(Unknown(_)) => StatusCode::NOT_FOUND,
            FleetError::Book(Faulty(_)) => StatusCode::BAD_REQUEST,
            FleetError::Book(Taken(_) | Configured(_) | NoFolder)
            | FleetError::Refused(_)
            | FleetError::BuiltIn(_)
            | FleetError::NothingWaits(_)
            | FleetError::AnotherWaits(_) => StatusCode::CONFLICT,
            FleetError::Book(Folder(_) | Damaged(_)) | FleetError::Keys(_) | FleetError::Card(_) | FleetError::NotKept(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        Self::new(status, error.to_string())
    }
}

async fn list(State(held): State<GatewayHandle>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let (agents, next) = page.cut(held.fleet()?.list())?;
    Ok(Json(json!({ "agents": agents, "next": next })))
}

async fn add(State(held): State<GatewayHandle>, AdminBody(record): AdminBody<AgentRecord>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.fleet()?.add(record).await?))
}

async fn show(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.fleet()?.one(&name)?))
}

async fn remove(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    held.fleet()?.remove(&name).await?;
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
    Ok(Json(held.fleet()?.approve(&name, how.anew, how.digest.as_deref()).await?))
}

async fn address(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.fleet()?.address(&name, false)?))
}

async fn rotate(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.fleet()?.address(&name, true)?))
}

async fn health(State(held): State<GatewayHandle>, AdminPath(name): AdminPath<String>) -> Result<Json<Value>, Fault> {
    Ok(Json(held.fleet()?.health(&name)?))
}
