//! `/admin/v1/config` and `/admin/v1/reload`: which config holds, and reading the file anew.

use std::sync::{Arc, Weak};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::Fault;
use crate::reload::{ReloadError, Reloader, ReloaderHandle};

pub(super) fn routes(reloader: &ReloaderHandle) -> Router {
    Router::new().route("/admin/v1/config", get(config)).route("/admin/v1/reload", post(reload)).with_state(Arc::clone(reloader))
}

fn held(reloader: &ReloaderHandle) -> Result<Arc<Reloader>, Fault> {
    reloader
        .get()
        .and_then(Weak::upgrade)
        .ok_or_else(|| Fault(StatusCode::SERVICE_UNAVAILABLE, "the node is starting or shutting down".to_owned()))
}

async fn config(State(reloader): State<ReloaderHandle>) -> Result<Json<Value>, Fault> {
    Ok(Json(held(&reloader)?.report()))
}

async fn reload(State(reloader): State<ReloaderHandle>) -> Response {
    let reloader = match held(&reloader) {
        Ok(reloader) => reloader,
        Err(fault) => return fault.into_response(),
    };
    match reloader.reload().await {
        Ok(reloaded) => {
            let mut report = reloader.report();
            report["changed"] = json!(reloaded.changed);
            report["changes"] = json!(reloaded.changes);
            Json(report).into_response()
        }
        Err(error @ ReloadError::NoFile) => Fault(StatusCode::CONFLICT, error.to_string()).into_response(),
        Err(ReloadError::Rejected(rejected)) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            let error = json!({ "code": status.as_u16(), "message": rejected.to_string() });
            (status, Json(json!({ "error": error, "faults": rejected.faults }))).into_response()
        }
    }
}
