//! `/admin/v1/{trees,explain,decisions,budgets,freezes}`: what calls led to, cost and were refused for, and the stop button.

use std::collections::HashMap;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use chancery_core::budget::{Account, Amount, Caps, Standing};
use chancery_core::{CascadeOutcome, Cascaded, Chancery, Decision, FreezeScope, MicroUsd, Tree};
use chancery_identity::credentials::CallerRecord;
use chancery_protocol::{Caller, Error, TaskId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Fault, Office};

/// Who freezes and thaws here.
const OPERATOR: &str = "operator";
/// Of a reason: enough for a sentence or two, and it is shown to every caller that is kept out.
const WHY_BYTES: usize = 1024;
const NAME_BYTES: usize = 512;

pub(super) fn routes(office: Office) -> Router {
    Router::new()
        .route("/admin/v1/trees/{id}", get(trees))
        .route("/admin/v1/trees/{id}/cancel", post(cancel))
        .route("/admin/v1/explain/{id}", get(explain))
        .route("/admin/v1/decisions", get(decisions))
        .route("/admin/v1/budgets", get(budgets))
        .route("/admin/v1/freezes", get(freezes).post(freeze).delete(thaw))
        .with_state(office)
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let status = chancery_wire::errors::http_status(error.kind, chancery_protocol::Version::V1_0);
        Self(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error.message.into_owned())
    }
}

fn bad(message: impl Into<String>) -> Fault {
    Fault(StatusCode::BAD_REQUEST, message.into())
}

fn unknown(message: impl Into<String>) -> Fault {
    Fault(StatusCode::NOT_FOUND, message.into())
}

async fn trees(State(office): State<Office>, Path(id): Path<String>) -> Result<Json<Value>, Fault> {
    let chancery = &office.house.chancery;
    let trees = chancery.trees(&id).await?;
    if trees.is_empty() {
        return Err(unknown(format!("no tree is kept that {id} is the trace or a task of")));
    }
    Ok(Json(json!({ "now": chancery.now(), "trees": trees.iter().map(with_subtrees).collect::<Vec<_>>() })))
}

/// A tree with what each task cost, alone and together with all below it.
fn with_subtrees(tree: &Tree) -> Value {
    let mut below: HashMap<&TaskId, (Amount, u64)> = HashMap::new();
    // Those that were called come after those that called them.
    for task in tree.tasks.iter().rev() {
        let cost = task.spend.settled.saturating_add(task.spend.overrun);
        let (sum, tasks) = below.entry(&task.task).or_default();
        (*sum, *tasks) = (sum.saturating_add(cost), *tasks + 1);
        let (sum, tasks) = (*sum, *tasks);
        if let Some(parent) = &task.kinship.parent {
            let (of_parent, count) = below.entry(parent).or_default();
            (*of_parent, *count) = (of_parent.saturating_add(sum), *count + tasks);
        }
    }
    let mut shown = json!(tree);
    for (task, shown) in tree.tasks.iter().zip(shown["tasks"].as_array_mut().into_iter().flatten()) {
        let cost = task.spend.settled.saturating_add(task.spend.overrun);
        let (sum, tasks) = below.get(&task.task).copied().unwrap_or_default();
        shown["cost"] = json!({ "usd": cost.usd, "tokens": cost.tokens });
        shown["subtree_cost"] = json!({ "usd": sum.usd, "tokens": sum.tokens, "tasks": tasks });
    }
    shown
}

async fn cancel(State(office): State<Office>, Path(id): Path<String>) -> Result<Json<Value>, Fault> {
    let chancery = &office.house.chancery;
    let task = task_of(chancery, &id).await?;
    let mut cascade = chancery.cancel_tree(&task).await;
    if cascade.iter().all(|one| one.task != task) {
        cascade.push(ended(chancery, &task).await?);
    }
    Ok(Json(json!({ "task": task, "cascade": cascade })))
}

/// A task that was not open any more when it was to be cancelled.
async fn ended(chancery: &Chancery, task: &TaskId) -> Result<Cascaded, Fault> {
    let (governed, _) =
        chancery.explain_task(task).await?.ok_or_else(|| unknown(format!("nothing is kept of a task {}", task.as_str())))?;
    let (stored, _) = chancery.operator_get(task.as_str()).await?;
    Ok(Cascaded {
        task: task.clone(),
        agent: stored.task.agent.clone(),
        depth: governed.kinship.depth,
        outcome: CascadeOutcome::AlreadyDone,
        reason: None,
    })
}

/// A task by its id, or the root of a trace that has one.
async fn task_of(chancery: &Chancery, id: &str) -> Result<TaskId, Fault> {
    if chancery_protocol::TraceId::from_hex(id).is_none() {
        return Ok(TaskId::from(id));
    }
    root_of(chancery, id).await?.ok_or_else(|| unknown(format!("no tree is kept with the trace {id}")))
}

/// The root of the tree that a trace or a task belongs to, if it is kept.
async fn root_of(chancery: &Chancery, id: &str) -> Result<Option<TaskId>, Fault> {
    let trees = chancery.trees(id).await?;
    if let [_, _, ..] = &trees[..] {
        let roots: Vec<&str> = trees.iter().map(|tree| tree.root.as_str()).collect();
        return Err(bad(format!("the trace has several trees; name one by its root: {}", roots.join(", "))));
    }
    Ok(trees.into_iter().next().map(|tree| tree.root))
}

async fn explain(State(office): State<Office>, Path(id): Path<String>) -> Result<Json<Value>, Fault> {
    let chancery = &office.house.chancery;
    let task = TaskId::from(id.as_str());
    if let Some((governed, later)) = chancery.explain_task(&task).await? {
        let (stored, _) = chancery.operator_get(&id).await?;
        return Ok(Json(json!({
            "task": stored.task.id,
            "agent": stored.task.agent,
            "tenant": stored.task.owner.tenant,
            "caller": stored.task.owner.name,
            "state": stored.progress.state,
            "created_at": stored.task.created_at,
            "lineage": &*governed.kinship,
            "spend": governed.spend,
            "verdicts": &*governed.verdicts,
            "later": later.iter().map(with_page).collect::<Vec<_>>(),
        })));
    }
    match chancery.explain_decision(&id).await? {
        Some(decision) => Ok(Json(json!({ "decision": with_page(&decision) }))),
        None => Err(unknown(format!("nothing is kept of a task or a decision {id}"))),
    }
}

/// A decision; a refusal with the page that says what it means.
fn with_page(decision: &Decision) -> Value {
    let mut shown = json!(decision);
    if let Some(code) = &decision.refused {
        shown["page"] = json!(format!("docs/errors/{code}.md"));
    }
    shown
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HowMany {
    limit: Option<usize>,
}

async fn decisions(State(office): State<Office>, query: Result<Query<HowMany>, QueryRejection>) -> Result<Json<Value>, Fault> {
    let limit = query.map_err(|fault| bad(fault.body_text()))?.limit.unwrap_or(50);
    if !(1..=1000).contains(&limit) {
        return Err(bad("limit: must be from 1 to 1000"));
    }
    let decisions = office.house.chancery.decisions(limit).await?;
    Ok(Json(json!({ "decisions": decisions.iter().map(with_page).collect::<Vec<_>>() })))
}

async fn budgets(State(office): State<Office>) -> Json<Value> {
    let mut budgets = office.house.chancery.budgets();
    budgets.sort_by(|(one, _), (other, _)| one.scope().cmp(other.scope()));
    Json(json!({ "budgets": budgets.iter().map(|(account, standing)| budget(account, standing)).collect::<Vec<_>>() }))
}

fn budget(account: &Account, standing: &Standing) -> Value {
    let Standing { limit, settled, reserved, overrun } = standing;
    let taken = settled.saturating_add(*reserved).saturating_add(*overrun);
    let remaining = Caps {
        usd: limit.caps.usd.map(|cap| MicroUsd((cap.0 - taken.usd.0).max(0))),
        tokens: limit.caps.tokens.map(|cap| cap.saturating_sub(taken.tokens)),
        tasks: limit.caps.tasks.map(|cap| cap.saturating_sub(taken.tasks)),
    };
    json!({
        "scope": account.scope().to_string(), "kind": account.scope().kind(), "window": limit.window, "limit": limit.caps,
        "settled": settled, "reserved": reserved, "overrun": overrun, "remaining": remaining,
    })
}

async fn freezes(State(office): State<Office>) -> Json<Value> {
    Json(json!({ "freezes": office.house.chancery.freezes().await }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct What {
    scope: String,
    name: Option<String>,
    why: Option<String>,
}

async fn freeze(State(office): State<Office>, what: Result<Json<What>, JsonRejection>) -> Result<Json<Value>, Fault> {
    let Json(what) = what.map_err(|fault| bad(fault.body_text()))?;
    if what.why.as_ref().is_some_and(|why| why.len() > WHY_BYTES) {
        return Err(bad(format!("why: at most {WHY_BYTES} bytes")));
    }
    let chancery = &office.house.chancery;
    let scope = scope(chancery, &what).await?;
    if let FreezeScope::Tree(name) = &scope
        && chancery.trees(name).await?.is_empty()
    {
        return Err(unknown(format!("no tree is kept that {name} is the trace or a task of")));
    }
    if let FreezeScope::Agent(name) = &scope
        && chancery.agents().get(name).is_none()
    {
        let agents = chancery.agents();
        let names: Vec<&str> = agents.iter().map(|agent| &*agent.name).collect();
        return Err(unknown(format!("there is no agent {name} here, only {}", names.join(", "))));
    }
    let known = is_known(&office, &scope);
    let frozen = chancery.freeze(scope, OPERATOR, what.why.as_deref()).await?;
    let mut shown = json!(frozen);
    shown["known"] = json!(known);
    Ok(Json(shown))
}

async fn thaw(State(office): State<Office>, what: Result<Query<What>, QueryRejection>) -> Result<Json<Value>, Fault> {
    let Query(what) = what.map_err(|fault| bad(fault.body_text()))?;
    let chancery = &office.house.chancery;
    let scope = scope(chancery, &what).await?;
    if !chancery.thaw(&scope, OPERATOR).await? {
        return Err(unknown(format!("{scope} is not frozen")));
    }
    Ok(Json(json!(scope)))
}

/// What is named, as freezes are kept: trees by their root, callers with their tenant.
async fn scope(chancery: &Chancery, what: &What) -> Result<FreezeScope, Fault> {
    let name = what.name.as_deref().filter(|name| !name.is_empty());
    if what.scope == "everything" {
        return match name {
            None => Ok(FreezeScope::Everything),
            Some(_) => Err(bad("name: there is only one everything; leave the name out")),
        };
    }
    let kinds = ["tree", "caller", "agent", "tenant"];
    if !kinds.contains(&what.scope.as_str()) {
        return Err(bad(format!("scope: is one of {}, everything; not {:?}", kinds.join(", "), what.scope)));
    }
    let name = name.ok_or_else(|| bad(format!("name: say which {}", what.scope)))?;
    if name.len() > NAME_BYTES {
        return Err(bad(format!("name: at most {NAME_BYTES} bytes")));
    }
    Ok(match what.scope.as_str() {
        "tree" => FreezeScope::Tree(match root_of(chancery, name).await? {
            Some(root) => root.as_str().into(),
            None => name.into(),
        }),
        "caller" => match name.split_once('/') {
            Some((tenant, caller)) if !tenant.is_empty() && !caller.is_empty() => FreezeScope::Caller(name.into()),
            Some(_) => return Err(bad("name: a caller is NAME or TENANT/NAME")),
            None => FreezeScope::caller(&Caller::new(CallerRecord::new(name).tenant, name)),
        },
        "agent" => FreezeScope::Agent(name.into()),
        _ => FreezeScope::Tenant(name.into()),
    })
}

/// Whether the node has heard of it. Callers may also be known by tokens and certificates alone, so this is no fault.
fn is_known(office: &Office, scope: &FreezeScope) -> bool {
    let listed = office.callers.list();
    let callers = listed.iter().map(|(record, _)| Caller::new(record.tenant.as_str(), record.name.as_str()));
    let mut callers = callers.chain(office.open.then(|| Caller::new(CallerRecord::new("").tenant, "anonymous")));
    match scope {
        FreezeScope::Caller(_) => callers.any(|caller| FreezeScope::caller(&caller) == *scope),
        FreezeScope::Tenant(tenant) => callers.any(|caller| caller.tenant == *tenant),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use chancery_core::budget::{BudgetLedger, Limit, Scope, Window};
    use chancery_protocol::Timestamp;

    use super::*;

    #[test]
    fn what_is_left_of_a_budget_counts_what_is_held_and_what_was_overrun() {
        let ledger = BudgetLedger::new();
        let caps = Caps { usd: Some(MicroUsd(1_000_000)), tokens: Some(10), tasks: None };
        let account = ledger.account(&Scope::Global, Limit { caps, window: Window::MINUTE });
        let standing = ledger.standing(&account, Timestamp::from_micros(0));
        let amount = |usd| Amount { usd: MicroUsd(usd), tokens: 6, tasks: 1 };
        let standing = Standing { settled: amount(500_000), reserved: amount(250_000), overrun: amount(0), ..standing };
        let shown = budget(&account, &standing);
        assert_eq!(shown["remaining"], json!({ "usd": "0.25", "tokens": 0, "tasks": null }));
        assert_eq!((&shown["scope"], &shown["window"]), (&json!("global"), &json!("1m")));
    }

    #[test]
    fn a_page_is_named_for_each_refusal() {
        let decision: Decision = serde_json::from_value(json!({
            "id": "d", "at": "2026-01-01T00:00:00Z", "tenant": "t", "caller": "c", "agent": "a", "refused": "FROZEN", "verdicts": [],
        }))
        .unwrap();
        assert_eq!(with_page(&decision)["page"], "docs/errors/FROZEN.md");
        let let_in = Decision { refused: None, ..decision };
        assert_eq!(with_page(&let_in).get("page"), None);
    }
}
