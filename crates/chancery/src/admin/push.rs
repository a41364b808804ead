//! The operator's API for webhooks, under `/admin/v1/push`.

mod figures;
mod secrets;
mod shown;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use chancery_core::StoreError;
use chancery_core::notify::{AttemptAnswer, Engine, OriginStanding};
use chancery_core::push::{DeadFilter, Lane, LaneFilter, StateChange};
use chancery_protocol::{TaskId, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::AdminState;
use super::extract::{AdminBody, AdminPath, AdminQuery};
use super::fault::Fault;
use super::page::{PageQuery, USUAL_PAGE, page_limit};
use crate::config::push_origin;

/// The most that one call changes.
const MOST_CHANGED: usize = 10_000;
/// The attempts that are shown of a registration.
const ATTEMPTS: usize = 100;

pub(super) fn routes(admin_state: AdminState) -> Router {
    let secrets = secrets::routes(admin_state.clone());
    Router::new()
        .route("/admin/v1/push/lanes", get(lanes))
        .route("/admin/v1/push/lanes/{lane}", get(lane))
        .route("/admin/v1/push/origins", get(origins))
        .route("/admin/v1/push/pause", post(pause))
        .route("/admin/v1/push/resume", post(resume))
        .route("/admin/v1/push/disable", post(disable))
        .route("/admin/v1/push/enable", post(enable))
        .route("/admin/v1/push/test", post(test))
        .route("/admin/v1/push/dead", get(dead))
        .route("/admin/v1/push/dead/{id}", get(letter))
        .route("/admin/v1/push/dead/replay", post(replay))
        .route("/admin/v1/push/dead/purge", post(purge))
        .route("/admin/v1/push/receipts", get(receipts))
        .route("/admin/v1/push/metrics", get(metrics))
        .with_state(admin_state)
        .merge(secrets)
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "the store failed during an operator's call");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the store could not answer; the log says why".to_owned())
    }
}

impl AdminState {
    fn engine(&self) -> Result<&Arc<Engine>, Fault> {
        let off = || Fault::new(StatusCode::CONFLICT, "this node has no webhooks: push.enabled is false".to_owned());
        self.engine.as_ref().ok_or_else(off)
    }
}

/// Which registrations are meant, and where in their list to begin.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LaneQuery {
    tenant: Option<String>,
    origin: Option<String>,
    task: Option<String>,
    config: Option<String>,
    lane: Option<u64>,
    state: Option<String>,
    after: u64,
    limit: Option<usize>,
}

impl LaneQuery {
    fn filter(&self) -> Result<LaneFilter, Fault> {
        if let Some(state) = &self.state
            && !["active", "paused", "disabled", "gone"].contains(&state.as_str())
        {
            return Err(Fault::bad("state: is one of active, paused, disabled and gone"));
        }
        Ok(LaneFilter {
            tenant: self.tenant.as_deref().map(Into::into),
            origin: origin(self.origin.as_deref())?,
            task: self.task.as_deref().map(TaskId::from),
            registration: self.config.as_deref().map(Into::into),
            lane: self.lane,
            state: self.state.as_deref().map(Into::into),
        })
    }

    /// The filter for a change, which must name a lane, task, config, origin or tenant.
    fn named(&self) -> Result<LaneFilter, Fault> {
        let filter = self.filter()?;
        if filter == LaneFilter::default() {
            return Err(Fault::bad("name a lane, task, config, origin or tenant"));
        }
        Ok(filter)
    }
}

fn origin(text: Option<&str>) -> Result<Option<Arc<str>>, Fault> {
    text.map(|text| push_origin(text).map(Into::into).map_err(|fault| Fault::bad(format!("origin: {fault}")))).transpose()
}

fn change_limit(given: Option<usize>) -> Result<usize, Fault> {
    let limit = given.unwrap_or(MOST_CHANGED);
    if (1..=MOST_CHANGED).contains(&limit) {
        Ok(limit)
    } else {
        Err(Fault::bad(format!("limit: must be from 1 to {MOST_CHANGED}")))
    }
}

async fn lanes(State(admin_state): State<AdminState>, AdminQuery(which): AdminQuery<LaneQuery>) -> Result<Json<Value>, Fault> {
    let page = admin_state.engine()?.outbox().lanes(&which.filter()?, which.after, page_limit(which.limit, USUAL_PAGE)?).await?;
    Ok(Json(json!({ "lanes": page.lanes.iter().map(shown::lane).collect::<Vec<_>>(), "next": page.next })))
}

async fn found(engine: &Engine, lane: u64) -> Result<Lane, Fault> {
    let filter = LaneFilter { lane: Some(lane), ..LaneFilter::default() };
    let found = engine.outbox().lanes(&filter, 0, 1).await?.lanes.pop();
    found.ok_or_else(|| Fault::new(StatusCode::NOT_FOUND, format!("there is no lane {lane}")))
}

async fn lane(State(admin_state): State<AdminState>, AdminPath(number): AdminPath<u64>) -> Result<Json<Value>, Fault> {
    let engine = admin_state.engine()?;
    let found = found(engine, number).await?;
    let attempts = engine.outbox().attempts(number, Timestamp::default(), ATTEMPTS).await?;
    let mut shown = shown::lane(&found);
    shown["attempts"] = attempts.iter().map(shown::attempt).collect();
    Ok(Json(shown))
}

async fn origins(State(admin_state): State<AdminState>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let (in_flight, standings) = admin_state.engine()?.standings();
    let key = |standing: &OriginStanding| format!("{} {}", standing.origin.tenant, standing.origin.origin);
    let (origins, next) = page.cut(standings.iter().map(|standing| (key(standing), shown::origin(standing))).collect())?;
    Ok(Json(json!({ "in_flight": in_flight, "origins": origins, "next": next })))
}

async fn pause(State(admin_state): State<AdminState>, AdminBody(which): AdminBody<LaneQuery>) -> Result<Json<Value>, Fault> {
    change(&admin_state, &which, StateChange::Pause).await
}

async fn resume(State(admin_state): State<AdminState>, AdminBody(which): AdminBody<LaneQuery>) -> Result<Json<Value>, Fault> {
    change(&admin_state, &which, StateChange::Resume).await
}

async fn disable(State(admin_state): State<AdminState>, AdminBody(which): AdminBody<LaneQuery>) -> Result<Json<Value>, Fault> {
    change(&admin_state, &which, StateChange::Disable).await
}

async fn enable(State(admin_state): State<AdminState>, AdminBody(which): AdminBody<LaneQuery>) -> Result<Json<Value>, Fault> {
    change(&admin_state, &which, StateChange::Enable).await
}

async fn change(admin_state: &AdminState, which: &LaneQuery, change: StateChange) -> Result<Json<Value>, Fault> {
    let (filter, most) = (which.named()?, change_limit(which.limit)?);
    let changed = admin_state.engine()?.change_state(&filter, change, which.after, most).await?;
    let next = changed.last().filter(|_| changed.len() == most).map(|(lane, _)| *lane);
    tracing::info!(lanes = changed.len(), ?change, "an operator changed webhooks");
    let changed: Vec<Value> = changed.iter().map(|(lane, state)| json!({ "lane": lane, "state": state.as_str() })).collect();
    Ok(Json(json!({ "changed": changed, "next": next })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LaneIdQuery {
    lane: u64,
}

async fn test(
    State(admin_state): State<AdminState>,
    AdminBody(LaneIdQuery { lane }): AdminBody<LaneIdQuery>,
) -> Result<Json<Value>, Fault> {
    let engine = admin_state.engine()?;
    let found = found(engine, lane).await?;
    let outcome = engine.try_out(&found).await.map_err(|error| Fault::new(StatusCode::CONFLICT, error.message.into_owned()))?;
    let http = match outcome.answer {
        AttemptAnswer::Answered { status, .. } => Some(status),
        _ => None,
    };
    let meaning = engine.meaning(&found, &outcome);
    Ok(Json(json!({ "lane": lane, "outcome": meaning, "http": http, "error": outcome.error.as_deref() })))
}

/// Which dead letters are meant.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Letters {
    tenant: Option<String>,
    origin: Option<String>,
    task: Option<String>,
    lane: Option<u64>,
    reason: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    after: u64,
    limit: Option<usize>,
    new_id: bool,
    dry_run: bool,
}

impl Letters {
    fn filter(&self) -> Result<DeadFilter, Fault> {
        Ok(DeadFilter {
            tenant: self.tenant.as_deref().map(Into::into),
            origin: origin(self.origin.as_deref())?,
            task: self.task.as_deref().map(TaskId::from),
            lane: self.lane,
            reason: self.reason.as_deref().map(Into::into),
            since: self.since,
            until: self.until,
        })
    }
}

async fn dead(State(admin_state): State<AdminState>, AdminQuery(which): AdminQuery<Letters>) -> Result<Json<Value>, Fault> {
    let page =
        admin_state.engine()?.outbox().dead_letters(&which.filter()?, which.after, page_limit(which.limit, USUAL_PAGE)?).await?;
    Ok(Json(json!({ "letters": page.letters.iter().map(shown::letter).collect::<Vec<_>>(), "next": page.next })))
}

async fn letter(State(admin_state): State<AdminState>, AdminPath(id): AdminPath<u64>) -> Result<Json<Value>, Fault> {
    let found = admin_state.engine()?.outbox().dead_letter(id).await?;
    let letter = found.ok_or_else(|| Fault::new(StatusCode::NOT_FOUND, format!("there is no dead letter {id}")))?;
    Ok(Json(shown::whole_letter(&letter)))
}

async fn replay(State(admin_state): State<AdminState>, AdminBody(which): AdminBody<Letters>) -> Result<Json<Value>, Fault> {
    let (engine, filter, most) = (admin_state.engine()?, which.filter()?, change_limit(which.limit)?);
    let ids: Vec<u64> = if which.dry_run {
        engine.outbox().dead_letters(&filter, which.after, most).await?.letters.iter().map(|letter| letter.id).collect()
    } else {
        engine.replay(&filter, which.new_id, which.after, most).await?
    };
    let next = ids.last().filter(|_| ids.len() == most).copied();
    Ok(Json(json!({ "letters": ids, "next": next, "dry_run": which.dry_run })))
}

async fn purge(State(admin_state): State<AdminState>, AdminBody(which): AdminBody<Letters>) -> Result<Json<Value>, Fault> {
    let (engine, filter, most) = (admin_state.engine()?, which.filter()?, change_limit(which.limit)?);
    let purged = if which.dry_run {
        engine.outbox().dead_letters(&filter, which.after, most).await?.letters.len() as u64
    } else {
        engine.outbox().purge(&filter, most).await?
    };
    tracing::info!(letters = purged, dry_run = which.dry_run, "an operator purged dead letters");
    Ok(Json(json!({ "purged": purged, "dry_run": which.dry_run })))
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Receipts {
    lane: Option<u64>,
    after: u64,
    limit: Option<usize>,
}

async fn receipts(State(admin_state): State<AdminState>, AdminQuery(which): AdminQuery<Receipts>) -> Result<Json<Value>, Fault> {
    let most = page_limit(which.limit, USUAL_PAGE)?;
    let receipts = admin_state.engine()?.outbox().receipts(which.lane, which.after, most).await?;
    let next = receipts.last().filter(|_| receipts.len() == most).map(|(number, _)| *number);
    let shown: Vec<Value> = receipts.iter().map(|(number, receipt)| shown::receipt(*number, receipt)).collect();
    Ok(Json(json!({ "receipts": shown, "next": next })))
}

async fn metrics(State(admin_state): State<AdminState>) -> Result<Response, Fault> {
    // Calls are placed whether or not there are webhooks.
    let mut text = figures::placed(&admin_state.parts.chancery.placement_totals());
    if let Some(engine) = &admin_state.engine {
        let load = engine.outbox().outbox_load().await?;
        text += &figures::text(engine, load);
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
