//! `/admin/v1/memory`: what the tier holds, who may use it, and a look into it.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_core::spawn_watched;
use chancery_identity::Algorithm;
use chancery_identity::keys::MemoryGrants;
use chancery_memory::{Capability, MemoryGrant, PublishedCollection, Witness};
use chancery_protocol::{AgentId, Error, ErrorKind};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::AdminState;
use super::extract::{AdminBody, AdminPath, AdminQuery};
use super::fault::Fault;
use super::page::PageQuery;
use crate::memory::NodeMemory;

/// Pieces of an upload that wait to be written.
const PIECES: usize = 8;
const MAX_QUERIES: usize = 256;
const DAY_SECONDS: u64 = 24 * 60 * 60;

impl AdminState {
    fn memory(&self) -> Result<&NodeMemory, Fault> {
        let none = || Fault::new(StatusCode::CONFLICT, "this node has no memory tier; set memory.tier in its config".to_owned());
        self.memory.as_ref().ok_or_else(none)
    }
}

pub(super) fn routes(admin_state: AdminState) -> Router {
    Router::new()
        .route("/admin/v1/memory", get(shown))
        .route("/admin/v1/memory/collections", put(publish))
        .route("/admin/v1/memory/resolve", post(resolve))
        .route("/admin/v1/memory/search", post(search))
        .route("/admin/v1/memory/grants", get(grants).post(grant))
        .route("/admin/v1/memory/grants/{id}/revoke", post(revoke))
        .with_state(admin_state)
}

fn json_of(value: impl Serialize) -> Json<Value> {
    Json(serde_json::to_value(value).unwrap_or_default())
}

async fn shown(State(admin_state): State<AdminState>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let memory = admin_state.memory()?;
    let ring = memory.keys.ring();
    let key = ring.signing::<MemoryGrants>(None, Algorithm::EdDsa, admin_state.clock.now());
    let issuer = key.map(|key| URL_SAFE_NO_PAD.encode(key.public().raw()));
    let tier = memory.gate.tier();
    let (shard, url) = (tier.shard().to_owned(), tier.url().to_owned());
    let witnesses = memory.blocking(|gate, _| gate.tier().witnesses()).await?;
    let (witnesses, next) = page.cut(witnesses.iter().map(|witness| (witness.to_string(), json!(witness))).collect())?;
    Ok(Json(json!({ "shard": shard, "tier": url, "issuer": issuer, "witnesses": witnesses, "next": next })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishQuery {
    memory_class: Option<String>,
}

/// The body is a `ruvec1` file of any length up to the limit; no more than a few pieces of it are held.
async fn publish(
    State(admin_state): State<AdminState>,
    AdminQuery(how): AdminQuery<PublishQuery>,
    body: Body,
) -> Result<Json<Value>, Fault> {
    let memory = admin_state.memory()?.clone();
    let (pieces, mut taken) = mpsc::channel::<bytes::Bytes>(PIECES);
    let writing = spawn_watched("upload of a collection", async move {
        memory
            .blocking(move |gate, _| {
                let mut incoming = gate.tier().begin()?;
                while let Some(piece) = taken.blocking_recv() {
                    incoming.take(&piece)?;
                }
                gate.tier().publish(incoming, how.memory_class)
            })
            .await
    });
    let broken = read(body.into_data_stream(), pieces).await;
    let published: Result<PublishedCollection, Error> =
        writing.await.map_err(|_| Error::new(ErrorKind::Internal, "the work broke off"))?;
    if broken {
        return Err(Fault::new(StatusCode::BAD_REQUEST, "the upload broke off".to_owned()));
    }
    let published = published?;
    tracing::info!(witness = %published.witness, count = published.count, "an operator published a collection");
    Ok(json_of(published))
}

/// Forwards the body until it ends or the receiver is dropped. Returns whether the body broke off.
async fn read(mut body: BodyDataStream, pieces: mpsc::Sender<bytes::Bytes>) -> bool {
    while let Some(piece) = body.next().await {
        let Ok(piece) = piece else { return true };
        if pieces.send(piece).await.is_err() {
            break;
        }
    }
    false
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolve {
    witness: Witness,
    data_ref: Option<String>,
}

async fn resolve(State(admin_state): State<AdminState>, AdminBody(body): AdminBody<Resolve>) -> Result<Json<Value>, Fault> {
    let Resolve { witness, data_ref } = body;
    let wanted = (witness.to_string(), data_ref.clone().unwrap_or_default());
    let found = admin_state.memory()?.blocking(move |gate, _| gate.tier().resolve(&witness, data_ref.as_deref())).await;
    Ok(json_of(admin_state.parts.chancery.operator_looked("resolve", &wanted.0, &wanted.1, found).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    witness: Witness,
    queries: Vec<Vec<f32>>,
    k: usize,
}

async fn search(State(admin_state): State<AdminState>, AdminBody(body): AdminBody<Search>) -> Result<Json<Value>, Fault> {
    let Search { witness, queries, k } = body;
    if queries.is_empty() || queries.len() > MAX_QUERIES {
        return Err(Fault::new(StatusCode::BAD_REQUEST, "queries: must be from 1 to 256".to_owned()));
    }
    let wanted = witness.to_string();
    let found = admin_state.memory()?.blocking(move |gate, _| gate.tier().search(&witness, &queries, k)).await;
    let found = admin_state.parts.chancery.operator_looked("search", &wanted, "", found).await?;
    Ok(Json(json!({ "neighbours": found })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewGrant {
    /// Left out, the whole shard.
    witness: Option<Witness>,
    capabilities: Vec<Capability>,
    grantee: AgentId,
    presenter: Option<AgentId>,
    lasts_seconds: Option<u64>,
}

async fn grant(State(admin_state): State<AdminState>, AdminBody(body): AdminBody<NewGrant>) -> Result<Json<Value>, Fault> {
    let NewGrant { witness, mut capabilities, grantee, presenter, lasts_seconds } = body;
    capabilities.sort_unstable();
    capabilities.dedup();
    if capabilities.is_empty() {
        return Err(Fault::new(StatusCode::BAD_REQUEST, "capabilities: at least one of read, write, search".to_owned()));
    }
    let lasts = Duration::from_secs(lasts_seconds.unwrap_or(DAY_SECONDS));
    let now = admin_state.clock.now();
    let issued = admin_state.memory()?.blocking(move |gate, ring| {
        let grant = gate.draw_up(witness, capabilities, grantee, presenter, now, lasts);
        let text = gate.grants(ring).issue(&grant)?;
        Ok((grant, text))
    });
    let (grant, text) = issued.await?;
    tracing::info!(grant = grant.id, grantee = %grant.grantee, "an operator granted access to memory");
    Ok(Json(json!({ "id": grant.id, "grant": text, "says": grant })))
}

async fn grants(State(admin_state): State<AdminState>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let now = admin_state.clock.now();
    let listed = admin_state.memory()?.blocking(|gate, ring| gate.grants(ring).list()).await?;
    let state = |revoked, expires_at| match revoked {
        true => "revoked",
        false if expires_at <= now => "expired",
        false => "open",
    };
    let entry = |(grant, revoked): &(MemoryGrant, bool)| {
        (grant.id.to_string(), json!({ "says": grant, "state": state(*revoked, grant.expires_at) }))
    };
    let (grants, next) = page.cut(listed.iter().map(entry).collect())?;
    Ok(Json(json!({ "grants": grants, "next": next })))
}

async fn revoke(State(admin_state): State<AdminState>, AdminPath(id): AdminPath<String>) -> Result<Json<Value>, Fault> {
    let now = admin_state.clock.now();
    let revoked = id.clone();
    admin_state.memory()?.blocking(move |gate, ring| gate.grants(ring).revoke(&revoked, now)).await?;
    tracing::info!(grant = id, "an operator revoked a memory grant");
    Ok(Json(json!({ "id": id, "state": "revoked" })))
}
