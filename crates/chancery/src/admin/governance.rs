//! `/admin/v1/{trees,explain,decisions,budgets,bill}`: what calls led to, cost and were refused for.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use chancery_core::budget::{Account, Amount, BudgetStanding, Caps};
use chancery_core::{BillBy, CallTree, CascadeOutcome, Cascaded, Chancery, Decision, MicroUsd};
use chancery_protocol::{Error, Task, TaskId, TaskState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::scopes::{self, ScopeQuery};
use super::{AdminState, Fault};

/// A bill goes back no further than a hundred years.
const LONGEST_BILL_SECONDS: u64 = 36_525 * 24 * 60 * 60;

pub(super) fn routes(office: AdminState) -> Router {
    Router::new()
        .route("/admin/v1/trees/{id}", get(trees))
        .route("/admin/v1/trees/{id}/cancel", post(cancel))
        .route("/admin/v1/explain/{id}", get(explain))
        .route("/admin/v1/decisions", get(decisions))
        .route("/admin/v1/budgets", get(budgets))
        .route("/admin/v1/bill", get(bill))
        .with_state(office)
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let status = chancery_wire::errors::http_status(error.kind, chancery_protocol::Version::V1_0);
        Self(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error.message.into_owned())
    }
}

pub(super) fn bad(message: impl Into<String>) -> Fault {
    Fault(StatusCode::BAD_REQUEST, message.into())
}

pub(super) fn unknown(message: impl Into<String>) -> Fault {
    Fault(StatusCode::NOT_FOUND, message.into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TreeQuery {
    /// An id that nothing is kept of is no fault: there are no trees to show.
    #[serde(default)]
    unknown_ok: bool,
}

async fn trees(
    State(office): State<AdminState>,
    Path(id): Path<String>,
    query: Result<Query<TreeQuery>, QueryRejection>,
) -> Result<Json<Value>, Fault> {
    let Query(TreeQuery { unknown_ok }) = query.map_err(|fault| bad(fault.body_text()))?;
    let chancery = &office.house.chancery;
    let trees = chancery.trees(&id).await?;
    if trees.is_empty() && !unknown_ok {
        return Err(scopes::unknown_tree(chancery, &id).await?);
    }
    Ok(Json(json!({ "now": chancery.now(), "trees": trees.iter().map(with_subtrees).collect::<Vec<_>>() })))
}

/// A tree with what each task cost, alone and together with all below it.
fn with_subtrees(tree: &CallTree) -> Value {
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

async fn cancel(State(office): State<AdminState>, Path(id): Path<String>) -> Result<Json<Value>, Fault> {
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
    scopes::root_of(chancery, id).await?.ok_or_else(|| unknown(format!("no tree is kept with the trace {id}")))
}

async fn explain(State(office): State<AdminState>, Path(id): Path<String>) -> Result<Json<Value>, Fault> {
    let chancery = &office.house.chancery;
    let task = TaskId::from(id.as_str());
    if let Some((governed, later)) = chancery.explain_task(&task).await? {
        let (stored, shown) = chancery.operator_get(&id).await?;
        return Ok(Json(json!({
            "task": stored.task.id,
            "agent": stored.task.agent,
            "tenant": stored.task.owner.tenant,
            "caller": stored.task.owner.name,
            "state": stored.progress.state,
            "reason": reason(&shown.task),
            "created_at": stored.task.created_at,
            "lineage": &*governed.kinship,
            "spend": governed.spend,
            "lineage_sent": chancery.sent_lineage(&task),
            "verdicts": &*governed.verdicts,
            "later": later.iter().map(with_page).collect::<Vec<_>>(),
        })));
    }
    match chancery.explain_decision(&id).await? {
        Some(decision) => Ok(Json(json!({ "decision": with_page(&decision) }))),
        None => Err(unknown(format!("nothing is kept of a task or a decision {id}"))),
    }
}

/// Why a task failed or was rejected, in the words that its caller got.
fn reason(task: &Task) -> Option<&str> {
    let without_result = matches!(task.status.state, TaskState::Failed | TaskState::Rejected);
    task.status.message.as_ref().filter(|_| without_result)?.first_text()
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
struct DecisionsQuery {
    limit: Option<usize>,
}

async fn decisions(
    State(office): State<AdminState>,
    query: Result<Query<DecisionsQuery>, QueryRejection>,
) -> Result<Json<Value>, Fault> {
    let limit = query.map_err(|fault| bad(fault.body_text()))?.limit.unwrap_or(50);
    if !(1..=1000).contains(&limit) {
        return Err(bad("limit: must be from 1 to 1000"));
    }
    let decisions = office.house.chancery.decisions(limit).await?;
    Ok(Json(json!({ "decisions": decisions.iter().map(with_page).collect::<Vec<_>>() })))
}

/// All budgets, or those of the scope that is asked for, which is named.
async fn budgets(
    State(office): State<AdminState>,
    query: Result<Query<ScopeQuery>, QueryRejection>,
) -> Result<Json<Value>, Fault> {
    let Query(query) = query.map_err(|fault| bad(fault.body_text()))?;
    let mut budgets = office.house.chancery.budgets();
    budgets.sort_by(|(one, _), (other, _)| one.scope().cmp(other.scope()));
    let wanted = scopes::of_budgets(&office, &query, &budgets).await?;
    budgets.retain(|(account, _)| wanted.as_ref().is_none_or(|wanted| wanted.has(account)));
    let mut shown = json!({ "budgets": budgets.iter().map(|(account, standing)| budget(account, standing)).collect::<Vec<_>>() });
    if let Some(wanted) = wanted {
        shown["scope"] = json!(wanted.to_string());
    }
    Ok(Json(shown))
}

fn budget(account: &Account, standing: &BudgetStanding) -> Value {
    let BudgetStanding { limit, settled, reserved, overrun } = standing;
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BillQuery {
    /// How far the bill goes back.
    since_seconds: u64,
    #[serde(default = "by_agent")]
    by: BillBy,
}

fn by_agent() -> BillBy {
    BillBy::Agent
}

/// What was spent. The lines add up to the total, to the millionth of a dollar.
async fn bill(State(office): State<AdminState>, query: Result<Query<BillQuery>, QueryRejection>) -> Result<Json<Value>, Fault> {
    let Query(BillQuery { since_seconds, by }) = query.map_err(|fault| bad(fault.body_text()))?;
    if since_seconds > LONGEST_BILL_SECONDS {
        return Err(bad(format!("since_seconds: must be at most {LONGEST_BILL_SECONDS}, which is 100 years")));
    }
    let bill = office.house.chancery.bill(Duration::from_secs(since_seconds), by).await?;
    let shown = |cost: Amount| json!({ "usd": cost.usd, "tokens": cost.tokens, "tasks": cost.tasks });
    let line = |name: Option<&str>, cost: Amount| {
        let mut line = shown(cost);
        line[by.as_str()] = json!(name);
        line
    };
    Ok(Json(json!({
        "by": by, "since": bill.since, "until": bill.until, "kept_since": bill.kept_since,
        "lines": bill.lines.iter().map(|one| line(one.name.as_deref(), one.cost)).collect::<Vec<_>>(),
        "total": shown(bill.total),
    })))
}

#[cfg(test)]
mod tests {
    use chancery_core::budget::{BudgetLedger, BudgetScope, BudgetWindow, Limit};
    use chancery_protocol::Timestamp;

    use super::*;

    #[test]
    fn what_is_left_of_a_budget_counts_what_is_held_and_what_was_overrun() {
        let ledger = BudgetLedger::new();
        let caps = Caps { usd: Some(MicroUsd(1_000_000)), tokens: Some(10), tasks: None };
        let account = ledger.account(&BudgetScope::Global, Limit { caps, window: BudgetWindow::MINUTE });
        let standing = ledger.standing(&account, Timestamp::from_micros(0));
        let amount = |usd| Amount { usd: MicroUsd(usd), tokens: 6, tasks: 1 };
        let standing = BudgetStanding { settled: amount(500_000), reserved: amount(250_000), overrun: amount(0), ..standing };
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
