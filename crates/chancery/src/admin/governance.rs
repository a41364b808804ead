//! `/admin/v1/{trees,explain,decisions,budgets,bill}`: what calls led to, cost and were refused for.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use chancery_core::budget::{Account, Amount, BudgetStanding, Caps};
use chancery_core::{BillBy, BillLine, CallTree, CascadeOutcome, Cascaded, Chancery, Decision, MicroUsd, TreeCost};
use chancery_protocol::{Task, TaskId, TaskState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::AdminState;
use super::extract::{AdminPath, AdminQuery};
use super::fault::Fault;
use super::page::{PageQuery, USUAL_PAGE, page_limit};
use super::scopes::{self, ScopeQuery};

/// A bill goes back no further than a hundred years.
const LONGEST_BILL_SECONDS: u64 = 36_525 * 24 * 60 * 60;

pub(super) fn routes(admin_state: AdminState) -> Router {
    Router::new()
        .route("/admin/v1/trees/{id}", get(trees))
        .route("/admin/v1/trees/{id}/cancel", post(cancel))
        .route("/admin/v1/explain/{id}", get(explain))
        .route("/admin/v1/decisions", get(decisions))
        .route("/admin/v1/budgets", get(budgets))
        .route("/admin/v1/bill", get(bill))
        .with_state(admin_state)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TreeQuery {
    /// An id that nothing is kept of is no fault: there are no trees to show.
    #[serde(default)]
    unknown_ok: bool,
    limit: Option<usize>,
    /// The last task of the page before.
    after: Option<String>,
}

async fn trees(
    State(admin_state): State<AdminState>,
    AdminPath(id): AdminPath<String>,
    AdminQuery(query): AdminQuery<TreeQuery>,
) -> Result<Json<Value>, Fault> {
    let limit = page_limit(query.limit, USUAL_PAGE)?;
    let chancery = &admin_state.parts.chancery;
    let roots = chancery.tree_roots(&id).await?;
    let after = query.after.as_deref().map(TaskId::from);
    let first = match &after {
        Some(task) => {
            let root = chancery.tree_root(task).await?;
            let at = root.and_then(|root| roots.iter().position(|one| *one == root));
            at.ok_or_else(|| Fault::bad(format!("after: no task {task} is kept of these trees; begin again without after")))?
        }
        None => 0,
    };
    let page = chancery.tree_page(&roots, first, after.as_ref(), limit).await?;
    if page.trees.is_empty() && after.is_none() && !query.unknown_ok {
        return Err(scopes::unknown_tree(chancery, &id).await?);
    }
    let trees: Vec<Value> = page.trees.iter().map(|(tree, costs)| with_subtrees(tree, costs)).collect();
    Ok(Json(json!({ "now": chancery.now(), "trees": trees, "next": page.next })))
}

/// The tasks of a tree that are on a page, each with what it cost alone and together with all below it, and how many the whole tree
/// has.
fn with_subtrees(tree: &CallTree, costs: &[TreeCost]) -> Value {
    let mut below: HashMap<&TaskId, (Amount, u64)> = HashMap::new();
    // Those that were called come after those that called them.
    for TreeCost { task, parent, cost } in costs.iter().rev() {
        let (sum, tasks) = below.entry(task).or_default();
        (*sum, *tasks) = (sum.saturating_add(*cost), *tasks + 1);
        let (sum, tasks) = (*sum, *tasks);
        if let Some(parent) = parent {
            let (of_parent, count) = below.entry(parent).or_default();
            (*of_parent, *count) = (of_parent.saturating_add(sum), *count + tasks);
        }
    }
    let mut shown = json!(tree);
    shown["total"] = json!(costs.len());
    for (task, shown) in tree.tasks.iter().zip(shown["tasks"].as_array_mut().into_iter().flatten()) {
        let cost = task.spend.settled.saturating_add(task.spend.overrun);
        let (sum, tasks) = below.get(&task.task).copied().unwrap_or_default();
        shown["cost"] = json!({ "usd": cost.usd, "tokens": cost.tokens });
        shown["subtree_cost"] = json!({ "usd": sum.usd, "tokens": sum.tokens, "tasks": tasks });
    }
    shown
}

async fn cancel(State(admin_state): State<AdminState>, AdminPath(id): AdminPath<String>) -> Result<Json<Value>, Fault> {
    let chancery = &admin_state.parts.chancery;
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
        chancery.explain_task(task).await?.ok_or_else(|| Fault::unknown(format!("there is no task {}", task.as_str())))?;
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
    scopes::root_of(chancery, id).await?.ok_or_else(|| Fault::unknown(format!("no tree is kept with the trace {id}")))
}

async fn explain(State(admin_state): State<AdminState>, AdminPath(id): AdminPath<String>) -> Result<Json<Value>, Fault> {
    let chancery = &admin_state.parts.chancery;
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
        None => Err(Fault::unknown(format!("there is no task and no decision {id}"))),
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

async fn decisions(State(admin_state): State<AdminState>, AdminQuery(page): AdminQuery<PageQuery>) -> Result<Json<Value>, Fault> {
    let limit = page_limit(page.limit, USUAL_PAGE)?;
    let chancery = &admin_state.parts.chancery;
    let mut decisions = match &page.after {
        Some(after) if chancery.explain_decision(after).await?.is_none() => {
            return Err(Fault::bad(format!("after: no decision {after} is kept; begin again without after")));
        }
        Some(after) => chancery.decisions_before(after, limit + 1).await?,
        None => chancery.decisions(limit + 1).await?,
    };
    let is_more = decisions.len() > limit;
    decisions.truncate(limit);
    let next = decisions.last().filter(|_| is_more).map(|decision| decision.id.clone());
    Ok(Json(json!({ "decisions": decisions.iter().map(with_page).collect::<Vec<_>>(), "next": next })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetsQuery {
    scope: Option<String>,
    name: Option<String>,
    #[serde(default)]
    unknown_ok: bool,
    limit: Option<usize>,
    after: Option<String>,
}

/// All budgets, or the budgets of one named scope.
async fn budgets(
    State(admin_state): State<AdminState>,
    AdminQuery(query): AdminQuery<BudgetsQuery>,
) -> Result<Json<Value>, Fault> {
    let BudgetsQuery { scope, name, unknown_ok, limit, after } = query;
    let mut budgets = admin_state.parts.chancery.budgets();
    budgets.sort_by(|(one, _), (other, _)| one.scope().cmp(other.scope()));
    let wanted = scopes::of_budgets(&admin_state, &ScopeQuery { scope, name, unknown_ok }, &budgets).await?;
    budgets.retain(|(account, _)| wanted.as_ref().is_none_or(|wanted| wanted.has(account)));
    let entry = |(account, standing): &(Account, BudgetStanding)| {
        let shown = budget(account, standing);
        // A scope has a budget for each window.
        (format!("{}@{}", account.scope(), shown["window"].as_str().unwrap_or_default()), shown)
    };
    let (budgets, next) = PageQuery { limit, after }.cut(budgets.iter().map(entry).collect())?;
    let mut shown = json!({ "budgets": budgets, "next": next });
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
    limit: Option<usize>,
    after: Option<String>,
}

fn by_agent() -> BillBy {
    BillBy::Agent
}

/// What was spent. The lines add up to the total, to the millionth of a dollar.
async fn bill(State(admin_state): State<AdminState>, AdminQuery(query): AdminQuery<BillQuery>) -> Result<Json<Value>, Fault> {
    let BillQuery { since_seconds, by, limit, after } = query;
    if since_seconds > LONGEST_BILL_SECONDS {
        return Err(Fault::bad(format!("since_seconds: must be at most {LONGEST_BILL_SECONDS}, which is 100 years")));
    }
    let bill = admin_state.parts.chancery.bill(Duration::from_secs(since_seconds), by).await?;
    let shown = |cost: Amount| json!({ "usd": cost.usd, "tokens": cost.tokens, "tasks": cost.tasks });
    let line = |name: Option<&str>, cost: Amount| {
        let mut line = shown(cost);
        line[by.as_str()] = json!(name);
        line
    };
    // Only a line without a name has the key "".
    let entry = |one: &BillLine| {
        let name = one.name.as_deref();
        (name.unwrap_or_default().to_owned(), line(name, one.cost))
    };
    let (lines, next) = PageQuery { limit, after }.cut(bill.lines.iter().map(entry).collect())?;
    Ok(Json(json!({
        "by": by, "since": bill.since, "until": bill.until, "kept_since": bill.kept_since,
        "lines": lines, "total": shown(bill.total), "next": next,
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
