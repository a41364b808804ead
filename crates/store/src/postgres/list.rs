//! Pages of tasks, newest status first.

use chancery_core::{ListCursor, ListFilter, Stored, TaskListing};
use chancery_protocol::Caller;
use deadpool_postgres::ClientWrapper;

use super::columns::{self, DatabaseSession, limit};
use super::conditions::QueryValues;
use super::ended_counts;
use super::fault::PostgresFault;
use super::find::{COLUMNS, stored};
use super::readers;

/// An index has the tasks of each agent in the order of lists; those of so many agents are put together from it.
const MOST_AGENTS: usize = 32;

const ENDED: &str = "FROM tasks WHERE stage = 3";
const OPEN: &str = "FROM tasks WHERE stage < 3";

/// The owners of a name. Ended tasks are counted by owner, and there are few open ones.
const OWNERS_NAMED: &str = "SELECT tenant FROM ended_counts WHERE owner = $1
     UNION SELECT tenant FROM tasks WHERE stage < 3 AND NOT message_only AND owner = $1";

pub(super) async fn owners_named<D: DatabaseSession>(db: &D, name: &str) -> Result<Vec<Caller>, PostgresFault> {
    let rows = db.rows(OWNERS_NAMED, &[&columns::sought(name)]).await?;
    columns::each(rows, |row| Ok(Caller::new(row.try_get::<_, String>(0)?, name)))
}

/// A filter as conditions that begin with `AND`. One agent may stand in the place of those that the filter names.
fn conditions(first: &str, filter: &ListFilter, agent: Option<&str>, values: &mut QueryValues) -> String {
    let mut sql = format!(" AND {first}");
    let mut add = |condition: String| sql.push_str(&format!(" AND {condition}"));
    if let Some(owner) = &filter.owner {
        add(format!("tenant = {}", values.put_name(&owner.tenant)));
        add(format!("owner = {}", values.put_name(&owner.name)));
    }
    if let Some(tenant) = &filter.tenant {
        add(format!("tenant = {}", values.put_name(tenant)));
    }
    if let Some(caller) = &filter.caller {
        add(format!("owner = {}", values.put_name(caller)));
    }
    match (agent, filter.agents.as_deref()) {
        (Some(agent), _) => add(format!("agent = {}", values.put_name(agent))),
        (None, Some(agents)) => {
            let agents: Vec<String> = agents.iter().map(|agent| columns::sought(agent).into_owned()).collect();
            add(format!("agent = ANY({})", values.put(agents)));
        }
        (None, None) => {}
    }
    if let Some(context) = &filter.context_id {
        add(format!("context_id = {}", values.put_name(context.as_str())));
    }
    if let Some(state) = filter.state {
        add(format!("state = {}", values.put(i64::from(state.number()))));
    }
    if let Some(bound) = filter.status_at_or_after {
        add(format!("status_at >= {}", values.put(bound.micros())));
    }
    sql
}

/// The parts that a list is put together from, each in the order of lists: the ended tasks of each agent, or of all, and the
/// open ones.
fn parts(filter: &ListFilter, agents: &[String], values: &mut QueryValues) -> Vec<String> {
    let mut parts = Vec::new();
    if filter.owner.is_some() && agents.len() <= MOST_AGENTS {
        let of_agent = |agent: &String| format!("{ENDED}{}", conditions("NOT message_only", filter, Some(agent), values));
        parts.extend(agents.iter().map(of_agent));
    } else {
        parts.push(format!("{ENDED}{}", conditions("NOT message_only", filter, None, values)));
    }
    parts.push(format!("{OPEN}{}", conditions("NOT message_only", filter, None, values)));
    parts
}

/// The agents whose tasks an owner's list has.
async fn agents<D: DatabaseSession>(db: &D, filter: &ListFilter) -> Result<Vec<String>, PostgresFault> {
    let mut agents: Vec<String> = match (&filter.owner, &filter.agents) {
        (None, _) => return Ok(Vec::new()),
        (Some(_), Some(agents)) => agents.iter().map(|agent| agent.to_string()).collect(),
        (Some(owner), None) => ended_counts::agents_of(db, owner).await?,
    };
    agents.sort_unstable();
    agents.dedup();
    Ok(agents)
}

/// A page. Each part is limited by itself, so that no part is read further than the page can reach.
fn page_query(filter: &ListFilter, agents: &[String], after: Option<&ListCursor>, most: i64, values: &mut QueryValues) -> String {
    let parts = parts(filter, agents, values);
    let after = after.map(|cursor| {
        let (status_at, id) = (values.put(cursor.status_at.micros()), values.put_name(cursor.id.as_str()));
        format!(" AND (status_at, id) < ({status_at}, {id})")
    });
    let (after, most) = (after.unwrap_or_default(), values.put(most));
    let ordered = |source: String| format!("{source}{after} ORDER BY status_at DESC, id DESC LIMIT {most}");
    let parts: Vec<String> = parts.into_iter().map(|part| format!("(SELECT {COLUMNS} {})", ordered(part))).collect();
    format!("SELECT * FROM ({}) listed ORDER BY status_at DESC, id DESC LIMIT {most}", parts.join(" UNION ALL "))
}

/// Ended tasks are counted already, unless the list is of one context or of some time.
fn total_query(filter: &ListFilter, agents: &[String], values: &mut QueryValues) -> String {
    let mut sums = Vec::new();
    if filter.context_id.is_some() || filter.status_at_or_after.is_some() {
        sums.extend(parts(filter, agents, values).into_iter().map(|part| format!("(SELECT count(*) {part})")));
    } else {
        let counted = conditions("NOT message_only", filter, None, values);
        sums.push(format!("(SELECT coalesce(sum(tasks), 0)::bigint FROM ended_counts WHERE true{counted})"));
        let open = conditions("NOT message_only", filter, None, values);
        sums.push(format!("(SELECT count(*) {OPEN}{open})"));
    }
    format!("SELECT {}", sums.join(" + "))
}

pub(super) async fn list(
    session: &mut ClientWrapper,
    filter: &ListFilter,
    after: Option<&ListCursor>,
    most: usize,
) -> Result<TaskListing, PostgresFault> {
    if filter.agents.as_ref().is_some_and(Vec::is_empty) {
        return Ok(TaskListing { tasks: Vec::new(), total: 0 });
    }
    // One view for all, or the total could contradict the page.
    let view = readers::view(session).await?;
    let agents = agents(&view, filter).await?;
    let mut values = QueryValues::default();
    let sql = total_query(filter, &agents, &mut values);
    let total = view.rows_once(&sql, &values.borrowed()).await?;
    let total: i64 = total.first().ok_or_else(|| PostgresFault::unreadable("a count without a row"))?.try_get(0)?;
    let tasks = tasks_of_page(&view, filter, &agents, after, most).await?;
    view.commit().await?;
    Ok(TaskListing { tasks, total: total.max(0).cast_unsigned() })
}

/// The same page, without the total.
pub(super) async fn list_page(
    session: &mut ClientWrapper,
    filter: &ListFilter,
    after: Option<&ListCursor>,
    most: usize,
) -> Result<Vec<Stored>, PostgresFault> {
    if filter.agents.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let view = readers::view(session).await?;
    let agents = agents(&view, filter).await?;
    let tasks = tasks_of_page(&view, filter, &agents, after, most).await?;
    view.commit().await?;
    Ok(tasks)
}

async fn tasks_of_page<D: DatabaseSession>(
    db: &D,
    filter: &ListFilter,
    agents: &[String],
    after: Option<&ListCursor>,
    most: usize,
) -> Result<Vec<Stored>, PostgresFault> {
    let mut values = QueryValues::default();
    let sql = page_query(filter, agents, after, limit(most), &mut values);
    columns::each(db.rows_once(&sql, &values.borrowed()).await?, stored)
}
