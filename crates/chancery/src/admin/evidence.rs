//! `/admin/v1/evidence`: how the record stands, and bundles of what is in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use chancery_core::Record;
use chancery_evidence::export::{ExportFault, ExportSelection, examine, export};
use chancery_evidence::record::check_signers;
use chancery_protocol::{Timestamp, TraceId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::AdminState;
use super::extract::AdminQuery;
use super::fault::Fault;

pub(super) fn routes(admin_state: AdminState) -> Router {
    Router::new().route("/admin/v1/evidence", get(stand)).route("/admin/v1/evidence/bundle", get(bundle)).with_state(admin_state)
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    task: Option<String>,
    trace: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

impl ExportQuery {
    fn wanted(self) -> Result<ExportSelection, String> {
        let time = |name: &str, text: Option<String>| {
            text.map(|text| Timestamp::parse(&text).map_err(|fault| format!("{name}: {fault}"))).transpose()
        };
        match self {
            Self { task: Some(task), trace: None, since: None, until: None } => Ok(ExportSelection::Task(task)),
            Self { task: None, trace: Some(trace), since: None, until: None } => {
                let id = (trace.len() == 32).then(|| u128::from_str_radix(&trace, 16).ok()).flatten();
                id.map(|id| ExportSelection::Trace(TraceId(id), BTreeSet::new()))
                    .ok_or_else(|| "trace: 32 hexadecimal digits".to_owned())
            }
            Self { task: None, trace: None, since, until } => {
                Ok(ExportSelection::Between(time("since", since)?, time("until", until)?))
            }
            _ => Err("a task, a trace, or a stretch of time; not two of them".to_owned()),
        }
    }
}

async fn bundle(State(admin_state): State<AdminState>, AdminQuery(asked): AdminQuery<ExportQuery>) -> Result<Response, Fault> {
    let mut wanted = asked.wanted().map_err(Fault::bad)?;
    if let ExportSelection::Trace(trace, known) = &mut wanted {
        let trees = admin_state.parts.chancery.trees(&trace.to_string()).await?;
        known.extend(trees.iter().flat_map(|tree| &tree.tasks).map(|task| task.task.as_str().to_owned()));
    }
    let (record, now) = (record(&admin_state).await?, admin_state.clock.now());
    let bundle = aside(async move { export(&*record, &wanted, now).await }).await?;
    Ok(([(header::CONTENT_TYPE, "application/gzip")], bundle).into_response())
}
