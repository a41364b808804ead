//! `/admin/v1/freezes`: the stop button.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::AdminState;
use super::extract::{AdminBody, AdminQuery};
use super::fault::Fault;
use super::page::PageQuery;
use super::scopes::{self, ResolvedScope, ScopeQuery};

/// Who freezes and thaws here.
const OPERATOR: &str = "operator";
/// Of a reason: enough for a sentence or two, and it is shown to every caller that is kept out.
const WHY_BYTES: usize = 1024;

pub(super) fn routes(admin_state: AdminState) -> Router {
    Router::new().route("/admin/v1/freezes", get(freezes).post(freeze).delete(thaw)).with_state(admin_state)
}

async fn freezes(State(admin_state): State<AdminState>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let freezes = admin_state.parts.chancery.freezes().await;
    let (freezes, next) = page.cut(freezes.iter().map(|freeze| (freeze.scope.to_string(), json!(freeze))).collect())?;
    Ok(Json(json!({ "freezes": freezes, "next": next })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FreezeRequest {
    scope: String,
    name: Option<String>,
    why: Option<String>,
    #[serde(default)]
    unknown_ok: bool,
}

async fn freeze(
    State(admin_state): State<AdminState>,
    AdminBody(FreezeRequest { scope, name, why, unknown_ok }): AdminBody<FreezeRequest>,
) -> Result<Json<Value>, Fault> {
    if why.as_ref().is_some_and(|why| why.len() > WHY_BYTES) {
        return Err(Fault::bad(format!("why: at most {WHY_BYTES} bytes")));
    }
    let ResolvedScope { scope, known } =
        scopes::resolved(&admin_state, &ScopeQuery { scope: Some(scope), name, unknown_ok }).await?;
    let frozen = admin_state.parts.chancery.freeze(scope, OPERATOR, why.as_deref()).await?;
    let mut shown = json!(frozen);
    shown["known"] = json!(known);
    Ok(Json(shown))
}

async fn thaw(State(admin_state): State<AdminState>, AdminQuery(query): AdminQuery<ScopeQuery>) -> Result<Json<Value>, Fault> {
    let scope = scopes::frozen(&admin_state, &query).await?;
    let thawed = match &scope {
        Some(scope) => admin_state.parts.chancery.thaw(scope, OPERATOR).await?,
        None => false,
    };
    if !thawed && !query.unknown_ok {
        let named = query.name.map_or(String::new(), |name| format!(":{name}"));
        return Err(Fault::unknown(format!("{}{named} is not frozen", query.scope.unwrap_or_default())));
    }
    let mut shown = match scope {
        Some(scope) => json!(scope),
        None => json!({ "scope": query.scope, "name": query.name }),
    };
    shown["thawed"] = json!(thawed);
    Ok(Json(shown))
}
