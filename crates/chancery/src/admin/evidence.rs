//! `/admin/v1/evidence`: the state of the record, and bundles of its entries.

#[cfg(feature = "evidence-bundles")]
mod bundle;
#[cfg(not(feature = "evidence-bundles"))]
#[path = "evidence/bundle_absent.rs"]
mod bundle;

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use chancery_core::Record;
use chancery_evidence::export::{ExportFault, examine};
use chancery_evidence::record::check_signers;
use serde_json::{Value, json};

use super::AdminState;
use super::fault::Fault;

pub(super) fn routes(admin_state: AdminState) -> Router {
    Router::new()
        .route("/admin/v1/evidence", get(stand))
        .route("/admin/v1/evidence/bundle", bundle::route())
        .with_state(admin_state)
}

impl From<ExportFault> for Fault {
    fn from(fault: ExportFault) -> Self {
        let status = match fault {
            ExportFault::Nothing => StatusCode::NOT_FOUND,
            ExportFault::TooMuch => StatusCode::UNPROCESSABLE_ENTITY,
            ExportFault::Record(_) => StatusCode::CONFLICT,
            ExportFault::Store(_) | ExportFault::Unwritable(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, fault.to_string())
    }
}

/// The record, if only keys of this node signed it and no checkpoint of it is gone.
async fn record(admin_state: &AdminState) -> Result<Arc<dyn Record>, Fault> {
    let none = "this node keeps no record: its tasks are in memory, or evidence.record is false in its config";
    let record = admin_state.parts.chancery.record().ok_or_else(|| Fault::new(StatusCode::CONFLICT, none.to_owned()))?;
    let checkpoints = record.checkpoints(0).await.map_err(ExportFault::from)?;
    check_signers(&checkpoints, &admin_state.keys.signers()).map_err(ExportFault::from)?;
    let missing = admin_state.keys.record_mark.compare(&checkpoints);
    missing.map_err(|missing| Fault::new(StatusCode::CONFLICT, format!("the record is damaged: {missing}")))?;
    Ok(record)
}

/// Going through a record keeps a processor busy. It is done where no call waits behind it.
async fn aside<T: Send + 'static>(work: impl Future<Output = Result<T, ExportFault>> + Send + 'static) -> Result<T, Fault> {
    let here = tokio::runtime::Handle::current();
    let done = tokio::task::spawn_blocking(move || here.block_on(work)).await;
    Ok(done.map_err(|fault| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, fault.to_string()))??)
}

async fn stand(State(admin_state): State<AdminState>) -> Result<Json<Value>, Fault> {
    let record = record(&admin_state).await?;
    let looked_at = Arc::clone(&record);
    let stand = aside(async move { examine(&*looked_at).await }).await?;
    let newest = record.checkpoints(0).await.map_err(ExportFault::from)?.pop();
    let body = newest.as_ref().and_then(|newest| serde_json::from_str::<Value>(&newest.body).ok());
    let key = body.map(|body| body["kid"].clone());
    Ok(Json(json!({ "record": stand, "signed_at": newest.map(|newest| newest.at), "key": key })))
}
