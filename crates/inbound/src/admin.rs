//! The operator's API under `/admin/v1`: every caller's tasks, behind the node's own token.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use chancery_core::{Chancery, ListCursor, LogEntry, Stored};
use chancery_identity::SealKey;
use chancery_protocol::{Error, TaskId, TaskState, Timestamp};
use chancery_wire::{Frames, errors};
use futures::Stream;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

/// `more` are routes of others under the same token.
pub(crate) fn router(chancery: Chancery, token: SecretString, more: axum::Router) -> axum::Router {
    let token = Arc::new(token);
    axum::Router::new()
        .route("/admin/v1/node", get(node))
        .route("/admin/v1/tasks", get(tasks))
        .route("/admin/v1/tasks/{id}", get(task))
        .route("/admin/v1/tasks/{id}/events", get(events))
        .route("/admin/v1/tasks/{id}/cancel", post(cancel))
        .with_state(chancery)
        .merge(more)
        .fallback(async || Fault(StatusCode::NOT_FOUND, "no such admin operation".into()))
        .layer(from_fn_with_state(token, authorise))
}

struct Fault(StatusCode, String);

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": { "code": self.0.as_u16(), "message": self.1 } }))).into_response()
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let status = errors::http_status(error.kind, chancery_protocol::Version::V1_0);
        Self(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error.message.into_owned())
    }
}

async fn authorise(State(token): State<Arc<SecretString>>, headers: HeaderMap, request: Request, next: Next) -> Response {
    let given =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| value.strip_prefix("Bearer "));
    if given.is_some_and(|given| SealKey::same_secret(given.as_bytes(), token.expose_secret().as_bytes())) {
        return next.run(request).await;
    }
    let fault = Fault(StatusCode::UNAUTHORIZED, "the admin API needs the token in admin.token of the data folder".into());
    ([(header::WWW_AUTHENTICATE, "Bearer")], fault).into_response()
}

async fn node(State(chancery): State<Chancery>) -> Json<Value> {
    let (open_tasks, open_streams) = chancery.load();
    let agents = chancery.agents();
    let agents: Vec<&str> = agents.iter().map(|agent| &*agent.name).collect();
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "agents": agents,
        "openTasks": open_tasks,
        "openStreams": open_streams,
        "loops": chancery.loops().running(),
        "loopPanics": chancery.loops().panics(),
    }))
}

#[derive(Deserialize)]
struct ListQuery {
    state: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

async fn tasks(State(chancery): State<Chancery>, Query(query): Query<ListQuery>) -> Result<Json<Value>, Fault> {
    let bad = |message: &str| Fault(StatusCode::BAD_REQUEST, message.to_owned());
    let state = query
        .state
        .map(|name| TaskState::ALL.into_iter().find(|state| state.name() == name).ok_or_else(|| bad("state: unknown")));
    let after = query.after.map(|text| {
        let (at, id) = text.split_once('.').ok_or_else(|| bad("after: not a place in this list"))?;
        let at = at.parse().map_err(|_| bad("after: not a place in this list"))?;
        Ok::<_, Fault>(ListCursor { status_at: Timestamp::from_micros(at), id: TaskId::from(id) })
    });
    let limit = query.limit.unwrap_or(50);
    if !(1..=1000).contains(&limit) {
        return Err(bad("limit: must be from 1 to 1000"));
    }
    let (tasks, total) = chancery.operator_list(state.transpose()?, after.transpose()?.as_ref(), limit).await?;
    let last = tasks.last().filter(|_| tasks.len() == limit);
    let next = last.map(|stored| format!("{}.{}", stored.progress.status_at.micros(), stored.task.id));
    Ok(Json(json!({ "tasks": tasks.iter().map(record).collect::<Vec<_>>(), "total": total, "next": next })))
}

fn record(stored: &Stored) -> Value {
    let (task, progress) = (&stored.task, &stored.progress);
    json!({
        "id": task.id, "contextId": task.context_id, "agent": task.agent,
        "caller": { "tenant": task.owner.tenant, "name": task.owner.name },
        "state": progress.state, "statusAt": progress.status_at, "createdAt": task.created_at, "events": progress.seq,
    })
}

async fn task(State(chancery): State<Chancery>, Path(id): Path<String>) -> Result<Json<Value>, Fault> {
    let (stored, shown) = chancery.operator_get(&id).await?;
    Ok(Json(json!({ "record": record(&stored), "task": shown.task })))
}

async fn cancel(State(chancery): State<Chancery>, Path(id): Path<String>) -> Result<Json<Value>, Fault> {
    let (shown, cascaded) = chancery.operator_cancel(&id).await?;
    Ok(Json(json!({ "task": shown.task, "cascade": cascaded })))
}

#[derive(Deserialize)]
struct EventsQuery {
    #[serde(default)]
    after: u64,
    #[serde(default)]
    follow: bool,
}

async fn events(
    State(chancery): State<Chancery>,
    Path(id): Path<String>,
    Query(query): Query<EventsQuery>,
) -> Result<Response, Fault> {
    if !query.follow {
        let entries = chancery.operator_entries(&id, query.after, 1000).await?;
        return Ok(Json(json!({ "events": entries.iter().map(|entry| entry_json(entry)).collect::<Vec<_>>() })).into_response());
    }
    let watched = chancery.operator_watch(&id, query.after).await?;
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, axum::body::Body::from_stream(followed(watched))).into_response())
}

fn followed(subscription: chancery_core::Subscription) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures::stream::unfold(Some(subscription), |subscription| async move {
        let mut subscription = subscription?;
        let chancery_core::NextEvents::Events(entries) = subscription.next().await.ok()? else { return None };
        let mut frames = Frames::bare();
        for entry in entries {
            frames.set_event_id(entry.seq);
            frames.push(&entry_json(&entry), true);
        }
        Some((Ok(Bytes::from(frames.take())), Some(subscription)))
    })
}

fn entry_json(entry: &LogEntry) -> Value {
    json!({ "seq": entry.seq, "at": entry.at, "event": entry.event })
}
