//! `GET /admin/v1/evidence/bundle`: the entries that the query selects, as one file.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};
use chancery_evidence::export::{ExportSelection, export};
use chancery_protocol::{Timestamp, TraceId};
use serde::Deserialize;

use super::{aside, record};
use crate::admin::AdminState;
use crate::admin::extract::AdminQuery;
use crate::admin::fault::Fault;

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

pub(super) fn route() -> MethodRouter<AdminState> {
    get(answer)
}

async fn answer(State(admin_state): State<AdminState>, AdminQuery(asked): AdminQuery<ExportQuery>) -> Result<Response, Fault> {
    let mut wanted = asked.wanted().map_err(Fault::bad)?;
    if let ExportSelection::Trace(trace, known) = &mut wanted {
        let trees = admin_state.parts.chancery.trees(&trace.to_string()).await?;
        known.extend(trees.iter().flat_map(|tree| &tree.tasks).map(|task| task.task.as_str().to_owned()));
    }
    let (record, now) = (record(&admin_state).await?, admin_state.clock.now());
    let bundle = aside(async move { export(&*record, &wanted, now).await }).await?;
    Ok(([(header::CONTENT_TYPE, "application/gzip")], bundle).into_response())
}
