//! `/admin/v1/node` and `/admin/v1/tasks`: what the node does, and every caller's tasks.

use std::convert::Infallible;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use chancery_core::{Chancery, ListCursor, ListFilter, LogEntry, NextEvents, Stored, Subscription};
use chancery_protocol::{Caller, ContextId, TaskId, TaskState, Timestamp};
use chancery_wire::Frames;
use futures::Stream;
use serde::Deserialize;
use serde_json::{Value, json};

use super::extract::{AdminPath, AdminQuery};
use super::fault::Fault;
use super::page::{LARGEST_PAGE, USUAL_PAGE, page_limit};

pub(super) fn routes(chancery: Chancery) -> Router {
    Router::new()
        .route("/admin/v1/node", get(node))
        .route("/admin/v1/tasks", get(tasks))
        .route("/admin/v1/tasks/{id}", get(task))
        .route("/admin/v1/tasks/{id}/events", get(events))
        .route("/admin/v1/tasks/{id}/cancel", post(cancel))
        .with_state(chancery)
}

async fn node(State(chancery): State<Chancery>) -> Json<Value> {
    let (open_tasks, open_streams) = chancery.load();
    let agents = chancery.agents();
    let agents: Vec<&str> = agents.iter().map(|agent| &*agent.name).collect();
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "agents": agents,
        "open_tasks": open_tasks,
        "open_streams": open_streams,
        "loops": chancery.loops().running(),
        "loop_panics": chancery.loops().panics(),
    }))
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TasksQuery {
    agent: Option<String>,
    /// NAME, or TENANT/NAME.
    caller: Option<String>,
    tenant: Option<String>,
    context: Option<String>,
    state: Option<String>,
    since: Option<String>,
    /// Whether to say how many match in all. A list of one context, or since a time, is counted for that.
    total: bool,
    limit: Option<usize>,
    after: Option<String>,
}

impl TasksQuery {
    fn filter(&self) -> Result<ListFilter, Fault> {
        let (owner, caller) = match self.caller.as_deref().map(|name| (name, name.split_once('/'))) {
            Some((_, Some((tenant, name)))) => (Some(Caller::new(tenant, name)), None),
            Some((name, None)) => (None, Some(name.into())),
            None => (None, None),
        };
        let since = |text: &str| Timestamp::parse(text).map_err(|fault| Fault::bad(format!("since: {fault}")));
        Ok(ListFilter {
            owner,
            tenant: self.tenant.as_deref().map(Into::into),
            caller,
            agents: self.agent.as_deref().map(|agent| vec![agent.into()]),
            context_id: self.context.as_deref().map(ContextId::from),
            state: self.state.as_deref().map(state_named).transpose()?,
            status_at_or_after: self.since.as_deref().map(since).transpose()?,
        })
    }

    fn cursor(&self) -> Result<Option<ListCursor>, Fault> {
        let bad = || Fault::bad("after: is the next of an earlier page of this list");
        let read = |text: &String| {
            let (at, id) = text.split_once('.').ok_or_else(bad)?;
            let status_at = Timestamp::from_micros(at.parse().map_err(|_| bad())?);
            Ok(ListCursor { status_at, id: TaskId::from(id) })
        };
        self.after.as_ref().map(read).transpose()
    }
}

/// A state by its name in A2A 1.0, or by the word that commands show: `TASK_STATE_WORKING` or `working`.
fn state_named(name: &str) -> Result<TaskState, Fault> {
    let word = |state: &TaskState| state.name().trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-");
    let known = TaskState::ALL.into_iter().filter(|state| *state != TaskState::Unspecified);
    let found = known.clone().find(|state| state.name() == name || word(state) == name);
    let words = || known.map(|state| word(&state)).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| Fault::bad(format!("state: is one of {}; not {name:?}", words())))
}

async fn tasks(State(chancery): State<Chancery>, AdminQuery(query): AdminQuery<TasksQuery>) -> Result<Json<Value>, Fault> {
    let (filter, after, limit) = (query.filter()?, query.cursor()?, page_limit(query.limit, USUAL_PAGE)?);
    let (mut tasks, total) = if query.total {
        let (tasks, total) = chancery.operator_list(&filter, after.as_ref(), limit + 1).await?;
        (tasks, Some(total))
    } else {
        (chancery.operator_page(&filter, after.as_ref(), limit + 1).await?, None)
    };
    let is_more = tasks.len() > limit;
    tasks.truncate(limit);
    let last = tasks.last().filter(|_| is_more);
    let next = last.map(|stored| format!("{}.{}", stored.progress.status_at.micros(), stored.task.id));
    let mut page = json!({ "tasks": tasks.iter().map(record).collect::<Vec<_>>(), "next": next });
    if let Some(total) = total {
        page["total"] = total.into();
    }
    Ok(Json(page))
}

fn record(stored: &Stored) -> Value {
    let (task, progress) = (&stored.task, &stored.progress);
    json!({
        "id": task.id, "context_id": task.context_id, "agent": task.agent,
        "caller": { "tenant": task.owner.tenant, "name": task.owner.name },
        "state": progress.state, "status_at": progress.status_at, "created_at": task.created_at, "events": progress.seq,
    })
}

async fn task(State(chancery): State<Chancery>, AdminPath(id): AdminPath<String>) -> Result<Json<Value>, Fault> {
    let (stored, shown) = chancery.operator_get(&id).await?;
    Ok(Json(json!({ "record": record(&stored), "task": shown.task })))
}

async fn cancel(State(chancery): State<Chancery>, AdminPath(id): AdminPath<String>) -> Result<Json<Value>, Fault> {
    let (shown, cascaded) = chancery.operator_cancel(&id).await?;
    Ok(Json(json!({ "task": shown.task, "cascade": cascaded })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
    #[serde(default)]
    follow: bool,
}

async fn events(
    State(chancery): State<Chancery>,
    AdminPath(id): AdminPath<String>,
    AdminQuery(query): AdminQuery<EventsQuery>,
) -> Result<Response, Fault> {
    if !query.follow {
        let limit = page_limit(query.limit, LARGEST_PAGE)?;
        let mut entries = chancery.operator_entries(&id, query.after, limit + 1).await?;
        let is_more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| is_more).map(|entry| entry.seq);
        let shown: Vec<Value> = entries.iter().map(|entry| entry_json(entry)).collect();
        return Ok(Json(json!({ "events": shown, "next": next })).into_response());
    }
    if query.limit.is_some() {
        return Err(Fault::bad("limit: a log that is followed has no pages"));
    }
    let watched = chancery.operator_watch(&id, query.after).await?;
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, axum::body::Body::from_stream(followed(watched))).into_response())
}

fn followed(subscription: Subscription) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures::stream::unfold(Some(subscription), |subscription| async move {
        let mut subscription = subscription?;
        let NextEvents::Events(entries) = subscription.next().await.ok()? else { return None };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_by_either_of_its_names() {
        assert_eq!(state_named("TASK_STATE_INPUT_REQUIRED").unwrap(), TaskState::InputRequired);
        assert_eq!(state_named("input-required").unwrap(), TaskState::InputRequired);
        assert!(state_named("happy").is_err() && state_named("unspecified").is_err());
    }
}
