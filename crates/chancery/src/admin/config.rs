//! `/admin/v1/config` and `/admin/v1/reload`: the config in effect, and reloading its file.

use std::sync::{Arc, Weak};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::fault::Fault;
use crate::reload::{ReloadError, Reloader, ReloaderHandle};

pub(super) fn routes(reloader: &ReloaderHandle) -> Router {
    Router::new().route("/admin/v1/config", get(config)).route("/admin/v1/reload", post(reload)).with_state(Arc::clone(reloader))
}

fn held(reloader: &ReloaderHandle) -> Result<Arc<Reloader>, Fault> {
    reloader
        .get()
        .and_then(Weak::upgrade)
        .ok_or_else(|| Fault::new(StatusCode::SERVICE_UNAVAILABLE, "the node is starting or shutting down".to_owned()))
}

async fn config(State(reloader): State<ReloaderHandle>) -> Result<Json<Value>, Fault> {
    Ok(Json(held(&reloader)?.report()))
}

async fn reload(State(reloader): State<ReloaderHandle>) -> Result<Json<Value>, Fault> {
    let reloader = held(&reloader)?;
    match reloader.reload().await {
        Ok(reloaded) => {
            let mut report = reloader.report();
            report["changed"] = json!(reloaded.changed);
            report["changes"] = json!(reloaded.changes);
            Ok(Json(report))
        }
        Err(error @ ReloadError::NoFile) => Err(Fault::new(StatusCode::CONFLICT, error.to_string())),
        Err(ReloadError::Rejected(rejected)) => {
            let faults = rejected.faults.iter().map(|fault| json!(fault)).collect();
            Err(Fault::new(StatusCode::UNPROCESSABLE_ENTITY, rejected.to_string()).with_details(faults))
        }
    }
}
