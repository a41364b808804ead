//! What an operator means by a scope and a name: the same for freezes, budgets and trees.

use std::collections::BTreeSet;
use std::fmt;

use axum::http::StatusCode;
use chancery_core::budget::{Account, BudgetScope, BudgetStanding};
use chancery_core::{Chancery, FreezeScope, ListFilter};
use chancery_identity::credentials::CallerRecord;
use chancery_protocol::{Caller, TaskId};
use serde::Deserialize;

use super::AdminState;
use super::fault::Fault;
use crate::scope_names::{ANONYMOUS, UnresolvedName, full_name, resolve};

const NAME_BYTES: usize = 512;
/// The number of latest tasks whose owners an error may suggest.
const LATEST_TASKS: usize = 1_000;

/// Of the roots of a trace, those that an error names.
const SHOWN_ROOTS: usize = 20;

/// A scope in a query: its kind, and its name unless the kind has only one scope.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScopeQuery {
    pub(super) scope: Option<String>,
    pub(super) name: Option<String>,
    /// Accepts a name that matches no caller, tenant or agent.
    #[serde(default)]
    pub(super) unknown_ok: bool,
}

impl From<UnresolvedName> for Fault {
    fn from(unresolved: UnresolvedName) -> Self {
        let status = match unresolved {
            UnresolvedName::Unknown { .. } => StatusCode::NOT_FOUND,
            UnresolvedName::Ambiguous { .. } => StatusCode::CONFLICT,
        };
        Self::new(status, unresolved.to_string())
    }
}

/// What was named, and whether the node knows of it.
pub(super) struct ResolvedScope {
    pub(super) scope: FreezeScope,
    pub(super) known: bool,
}

/// The scope that is meant, as freezes are kept: trees by their root, callers with their tenant.
pub(super) async fn resolved(admin_state: &AdminState, query: &ScopeQuery) -> Result<ResolvedScope, Fault> {
    let (kind, name) = match read(query)? {
        (_, None) => return Ok(ResolvedScope { scope: FreezeScope::Everything, known: true }),
        (kind, Some(name)) => (kind, name),
    };
    if kind == "tree" {
        let chancery = &admin_state.parts.chancery;
        return match root_of(chancery, name).await? {
            Some(root) => Ok(ResolvedScope { scope: FreezeScope::Tree(root.as_str().into()), known: true }),
            None if query.unknown_ok => Ok(ResolvedScope { scope: FreezeScope::Tree(name.into()), known: false }),
            None => Err(unknown_tree(chancery, name).await?),
        };
    }
    let names = known(admin_state, kind, name).await?;
    match resolve(kind, name, &names) {
        Ok(whole) => Ok(ResolvedScope { scope: of_kind(kind, whole), known: true }),
        // Of several that have the name, the one that it names as written.
        Err(_) if query.unknown_ok => {
            let whole = as_written(kind, name);
            Ok(ResolvedScope { scope: of_kind(kind, &whole), known: names.contains(&whole) })
        }
        Err(unresolved) => Err(unresolved.into()),
    }
}

/// The one of these freezes that is meant. `None`: what is meant is not among them.
pub(super) async fn frozen(admin_state: &AdminState, query: &ScopeQuery) -> Result<Option<FreezeScope>, Fault> {
    let (kind, name) = read(query)?;
    let scopes: Vec<FreezeScope> = admin_state.parts.chancery.freezes().await.into_iter().map(|freeze| freeze.scope).collect();
    let Some(name) = name else {
        return Ok(scopes.into_iter().find(|scope| *scope == FreezeScope::Everything));
    };
    let names: BTreeSet<String> = scopes.iter().filter_map(|scope| name_in(scope, kind)).collect();
    match resolve(kind, name, &names) {
        Ok(whole) => Ok(Some(of_kind(kind, whole))),
        Err(UnresolvedName::Ambiguous { .. }) if query.unknown_ok => Ok(None),
        Err(unresolved @ UnresolvedName::Ambiguous { .. }) => Err(unresolved.into()),
        // A tree is frozen by its root, and is named by any of its tasks.
        Err(_) => match resolved(admin_state, query).await {
            Ok(ResolvedScope { scope, .. }) if scopes.contains(&scope) => Ok(Some(scope)),
            Ok(ResolvedScope { scope, .. }) if !query.unknown_ok => Err(Fault::unknown(format!("{scope} is not frozen"))),
            Ok(_) => Ok(None),
            Err(fault) => Err(fault),
        },
    }
}

/// Budgets of one scope.
pub(super) enum BudgetScopeFilter {
    /// As budgets write it: `caller:acme/planner`.
    One(String),
    Kind(String),
}

impl BudgetScopeFilter {
    pub(super) fn has(&self, account: &Account) -> bool {
        match self {
            Self::One(scope) => account.scope().to_string() == *scope,
            Self::Kind(kind) => account.scope().kind() == kind,
        }
    }
}

impl fmt::Display for BudgetScopeFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(scope) | Self::Kind(scope) => f.write_str(scope),
        }
    }
}

/// Which budgets a query selects: all, those of a kind, or those of one scope.
pub(super) async fn of_budgets(
    admin_state: &AdminState,
    query: &ScopeQuery,
    budgets: &[(Account, BudgetStanding)],
) -> Result<Option<BudgetScopeFilter>, Fault> {
    let kinds = ["global", "tenant", "caller", "agent", "skill", "tree"];
    match (query.scope.as_deref(), query.name.as_deref().filter(|name| !name.is_empty())) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Fault::bad("scope: is required beside name")),
        (Some(kind), None) if kinds.contains(&kind) => Ok(Some(BudgetScopeFilter::Kind(kind.to_owned()))),
        (Some("skill"), Some(name)) => {
            let skill = |(account, _): &(Account, BudgetStanding)| match account.scope() {
                BudgetScope::Skill { agent, skill } => Some(full_name(agent, skill)),
                _ => None,
            };
            let known: BTreeSet<String> = budgets.iter().filter_map(skill).collect();
            match resolve("skill", name, &known) {
                Ok(whole) => Ok(Some(BudgetScopeFilter::One(format!("skill:{whole}")))),
                Err(_) if query.unknown_ok => Ok(Some(BudgetScopeFilter::One(format!("skill:{name}")))),
                Err(unresolved) => Err(unresolved.into()),
            }
        }
        (Some(kind), Some(_)) if kinds[1..].contains(&kind) => {
            Ok(Some(BudgetScopeFilter::One(resolved(admin_state, query).await?.scope.to_string())))
        }
        (Some("global"), Some(_)) => Err(Fault::bad("name: there is only one global budget; leave the name out")),
        (Some(kind), _) => Err(Fault::bad(format!("scope: is one of {}; not {kind:?}", kinds.join(", ")))),
    }
}

/// The root of the tree that a trace or a task belongs to, if it is kept.
pub(super) async fn root_of(chancery: &Chancery, id: &str) -> Result<Option<TaskId>, Fault> {
    let roots = chancery.tree_roots(id).await?;
    if let [_, _, ..] = &roots[..] {
        let first: Vec<&str> = roots.iter().take(SHOWN_ROOTS).map(TaskId::as_str).collect();
        let more = if roots.len() > SHOWN_ROOTS { format!(" and {} more", roots.len() - SHOWN_ROOTS) } else { String::new() };
        return Err(Fault::bad(format!("the trace has several trees; name one by its root: {}{more}", first.join(", "))));
    }
    Ok(roots.into_iter().next())
}

/// What to say of an id that no tree has, with the task whose id is nearly the same.
pub(super) async fn unknown_tree(chancery: &Chancery, id: &str) -> Result<Fault, Fault> {
    let tasks = chancery.operator_page(&ListFilter::default(), None, LATEST_TASKS).await?;
    let ids = tasks.iter().map(|stored| stored.task.id.as_str());
    // Whoever cut an id short meant the one that goes on.
    let begun = ids.clone().find(|task| id.len() >= 8 && task.starts_with(id));
    let near = begun.or_else(|| crate::config::nearest(id, ids)).map(|near| format!("; did you mean `{near}`?"));
    Ok(Fault::unknown(format!("there is no tree with the trace or the task {id}{}", near.unwrap_or_default())))
}

/// The kind of a scope, and its name; none means everything.
fn read(query: &ScopeQuery) -> Result<(&'static str, Option<&str>), Fault> {
    let name = query.name.as_deref().filter(|name| !name.is_empty());
    let asked = query.scope.as_deref().unwrap_or_default();
    if asked == "everything" {
        return match name {
            None => Ok(("everything", None)),
            Some(_) => Err(Fault::bad("name: there is only one everything; leave the name out")),
        };
    }
    let kinds = ["tree", "caller", "agent", "tenant"];
    let kind = kinds.into_iter().find(|kind| *kind == asked);
    let kind = kind.ok_or_else(|| Fault::bad(format!("scope: is one of {}, everything; not {asked:?}", kinds.join(", "))))?;
    let name = name.ok_or_else(|| Fault::bad(format!("name: is required: the name of the {kind}")))?;
    if name.len() > NAME_BYTES {
        return Err(Fault::bad(format!("name: at most {NAME_BYTES} bytes")));
    }
    if kind == "caller" && name.split_once('/').is_some_and(|(tenant, caller)| tenant.is_empty() || caller.is_empty()) {
        return Err(Fault::bad("name: a caller is NAME or TENANT/NAME"));
    }
    Ok((kind, Some(name)))
}

/// The names of a kind that the node knows: from records, from the senders of the latest tasks, and from any task
/// whose owner has the requested name. Only their tokens name some callers, and other tasks may be newer.
async fn known(admin_state: &AdminState, kind: &str, name: &str) -> Result<BTreeSet<String>, Fault> {
    let chancery = &admin_state.parts.chancery;
    if kind == "agent" {
        return Ok(chancery.agents().iter().map(|agent| agent.name.to_string()).collect());
    }
    let records = admin_state.callers.list();
    let mut callers: Vec<(String, String)> = records.into_iter().map(|(record, _)| (record.tenant, record.name)).collect();
    if admin_state.open {
        callers.push((CallerRecord::new("").tenant, ANONYMOUS.to_owned()));
    }
    let mut tasks = chancery.operator_page(&ListFilter::default(), None, LATEST_TASKS).await?;
    let mut owners: Vec<Caller> = Vec::new();
    if kind == "tenant" {
        let of_tenant = ListFilter { tenant: Some(name.into()), ..ListFilter::default() };
        tasks.extend(chancery.operator_page(&of_tenant, None, 1).await?);
    } else {
        // A caller's own name may have a slash in it.
        owners.extend(chancery.owners_named(name).await?);
        if let Some((_, caller)) = name.split_once('/') {
            owners.extend(chancery.owners_named(caller).await?);
        }
    }
    owners.extend(tasks.iter().map(|stored| stored.task.owner.clone()));
    callers.extend(owners.into_iter().map(|owner| (owner.tenant.to_string(), owner.name.to_string())));
    let named = |(tenant, name): (String, String)| if kind == "tenant" { tenant } else { full_name(&tenant, &name) };
    Ok(callers.into_iter().map(named).collect())
}

/// A caller that is named without its tenant is taken for one of the tenant `default`.
fn as_written(kind: &str, name: &str) -> String {
    if kind == "caller" && !name.contains('/') { full_name(&CallerRecord::new(name).tenant, name) } else { name.to_owned() }
}

fn of_kind(kind: &str, name: &str) -> FreezeScope {
    match (kind, name.split_once('/')) {
        ("caller", Some((tenant, caller))) => FreezeScope::caller(&Caller::new(tenant, caller)),
        ("caller", None) => FreezeScope::Caller(name.into()),
        ("tree", _) => FreezeScope::Tree(name.into()),
        ("agent", _) => FreezeScope::Agent(name.into()),
        _ => FreezeScope::Tenant(name.into()),
    }
}

fn name_in(scope: &FreezeScope, kind: &str) -> Option<String> {
    match (scope, kind) {
        (FreezeScope::Caller(name), "caller")
        | (FreezeScope::Tree(name), "tree")
        | (FreezeScope::Tenant(name), "tenant")
        | (FreezeScope::Agent(name), "agent") => Some(name.to_string()),
        _ => None,
    }
}
