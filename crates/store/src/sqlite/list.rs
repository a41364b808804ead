//! Pages of tasks, newest status first.

use chancery_core::{ListCursor, ListFilter, Stored, TaskListing};
use chancery_protocol::{Caller, TaskState};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::ended_counts;
use super::fault::SqliteFault;
use super::find::{COLUMNS, stored};

/// A `WHERE` clause that grows by what the filter asks for, so that SQLite can choose an index for exactly that.
struct Conditions {
    sql: String,
    values: Vec<Value>,
}

impl Conditions {
    /// Of listed tasks.
    fn of(filter: &ListFilter) -> Self {
        Self::beside("message_only = 0", filter)
    }

    fn beside(first: &str, filter: &ListFilter) -> Self {
        let mut conditions = Self { sql: first.into(), values: Vec::new() };
        if let Some(owner) = &filter.owner {
            conditions.add("tenant = ?", owner.tenant.to_string());
            conditions.add("owner = ?", owner.name.to_string());
        }
        if let Some(tenant) = &filter.tenant {
            conditions.add("tenant = ?", tenant.to_string());
        }
        if let Some(caller) = &filter.caller {
            conditions.add("owner = ?", caller.to_string());
        }
        match filter.agents.as_deref() {
            Some([agent]) => conditions.add("agent = ?", agent.to_string()),
            Some(agents) => conditions.add_one_of("agent", agents.iter().map(|agent| agent.to_string())),
            None => {}
        }
        if let Some(context) = &filter.context_id {
            conditions.add("context_id = ?", context.to_string());
        }
        if let Some(state) = filter.state {
            conditions.add("state = ?", state.number());
        }
        if let Some(bound) = filter.status_at_or_after {
            conditions.add("status_at >= ?", bound.micros());
        }
        conditions
    }

    fn add(&mut self, condition: &str, value: impl Into<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.values.push(value.into());
    }

    fn add_one_of(&mut self, column: &str, values: impl Iterator<Item = String>) {
        let before = self.values.len();
        self.values.extend(values.map(Value::from));
        let places = vec!["?"; self.values.len() - before].join(", ");
        self.sql.push_str(&format!(" AND {column} IN ({places})"));
    }

    fn starting_after(&mut self, cursor: &ListCursor) {
        self.sql.push_str(" AND (status_at, id) < (?, ?)");
        self.values.extend([cursor.status_at.micros().into(), cursor.id.to_string().into()]);
    }
}

/// The owners of this name. Ended tasks are counted by owner, and there are few open ones.
pub(super) const OWNERS_NAMED: &str = "SELECT tenant FROM ended_counts WHERE owner = ?1
     UNION SELECT tenant FROM tasks INDEXED BY tasks_open WHERE stage < 3 AND message_only = 0 AND owner = ?1";

pub(super) fn owners_named(connection: &Connection, name: &str) -> Result<Vec<Caller>, SqliteFault> {
    let mut tenants = connection.prepare_cached(OWNERS_NAMED)?;
    let owners = tenants.query_map([name], |row| Ok(Caller::new(row.get::<_, String>(0)?, name)))?;
    Ok(owners.collect::<Result<_, _>>()?)
}

/// An index has the tasks of each agent in the order of lists; those of so many agents are put together from it.
const MOST_AGENTS: usize = 32;

const ENDED_IN_ORDER: &str = "tasks INDEXED BY tasks_finished WHERE stage = 3";
const ENDED_NOT_COMPLETED: &str = "tasks INDEXED BY tasks_not_completed WHERE stage = 3 AND state <> 3";
const ENDED_OF_AGENT: &str = "tasks INDEXED BY tasks_listed WHERE stage = 3";
const OPEN: &str = "tasks INDEXED BY tasks_open WHERE stage < 3";

/// The parts that a list is put together from, each in the order of lists: the ended tasks of each agent, or of all, and the open ones.
fn parts(filter: &ListFilter, agents: &[String]) -> Vec<(&'static str, Conditions)> {
    let mut parts = Vec::new();
    if filter.owner.is_some() && agents.len() <= MOST_AGENTS {
        parts.extend(agents.iter().map(|agent| {
            let of_agent = ListFilter { agents: Some(vec![agent.as_str().into()]), ..filter.clone() };
            (ENDED_OF_AGENT, Conditions::of(&of_agent))
        }));
    } else {
        let completed = filter.state.is_none_or(|state| state == TaskState::Completed);
        parts.push((if completed { ENDED_IN_ORDER } else { ENDED_NOT_COMPLETED }, Conditions::of(filter)));
    }
    parts.push((OPEN, Conditions::of(filter)));
    parts
}

/// The agents whose tasks an owner's list has.
fn agents(connection: &Connection, filter: &ListFilter) -> Result<Vec<String>, SqliteFault> {
    let mut agents: Vec<String> = match (&filter.owner, &filter.agents) {
        (None, _) => return Ok(Vec::new()),
        (Some(_), Some(agents)) => agents.iter().map(|agent| agent.to_string()).collect(),
        (Some(owner), None) => ended_counts::agents_of(connection, owner)?,
    };
    agents.sort_unstable();
    agents.dedup();
    Ok(agents)
}

/// A page without its limit, which is the last parameter, and the values of the other parameters.
pub(super) fn page_query(filter: &ListFilter, agents: &[String], after: Option<&ListCursor>) -> (String, Vec<Value>) {
    let mut values = Vec::new();
    let parts = parts(filter, agents).into_iter().map(|(source, mut matching)| {
        if let Some(cursor) = after {
            matching.starting_after(cursor);
        }
        values.append(&mut matching.values);
        format!("SELECT {COLUMNS} FROM {source} AND {}", matching.sql)
    });
    let sql = parts.collect::<Vec<_>>().join(" UNION ALL ");
    (format!("{sql} ORDER BY status_at DESC, id DESC LIMIT ?"), values)
}

/// Queries whose answers add up to the number of tasks in a list. Ended tasks are counted already, unless the list is of one context
/// or of some time.
fn total_queries(filter: &ListFilter, agents: &[String]) -> Vec<(String, Vec<Value>)> {
    let of_part =
        |(source, matching): (&str, Conditions)| (format!("SELECT count(*) FROM {source} AND {}", matching.sql), matching.values);
    if filter.context_id.is_some() || filter.status_at_or_after.is_some() {
        return parts(filter, agents).into_iter().map(of_part).collect();
    }
    let ended = Conditions::beside("tasks > 0", filter);
    let counted = format!("SELECT ifnull(sum(tasks), 0) FROM ended_counts WHERE {}", ended.sql);
    vec![(counted, ended.values), of_part((OPEN, Conditions::of(filter)))]
}

pub(super) fn list(
    connection: &mut Connection,
    filter: &ListFilter,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<TaskListing, SqliteFault> {
    // A list of no agent's tasks is empty. SQLite knows that too, and then refuses to use an index that the query names.
    if filter.agents.as_ref().is_some_and(Vec::is_empty) {
        return Ok(TaskListing { tasks: Vec::new(), total: 0 });
    }
    // One view for all, or the total could contradict the page.
    let view = connection.transaction()?;
    let agents = agents(&view, filter)?;
    let mut total = 0;
    for (sql, values) in total_queries(filter, &agents) {
        total += view.prepare_cached(&sql)?.query_row(params_from_iter(&values), |row| row.get::<_, u64>(0))?;
    }
    Ok(TaskListing { tasks: tasks_of_page(&view, filter, &agents, after, limit)?, total })
}

/// The same page, without the total.
pub(super) fn list_page(
    connection: &mut Connection,
    filter: &ListFilter,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<Vec<Stored>, SqliteFault> {
    if filter.agents.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let view = connection.transaction()?;
    let agents = agents(&view, filter)?;
    tasks_of_page(&view, filter, &agents, after, limit)
}

fn tasks_of_page(
    view: &Connection,
    filter: &ListFilter,
    agents: &[String],
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<Vec<Stored>, SqliteFault> {
    let (sql, mut values) = page_query(filter, agents, after);
    values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
    let mut tasks = Vec::new();
    let mut statement = view.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(&values))?;
    while let Some(row) = rows.next()? {
        tasks.push(stored(row)?);
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use chancery_protocol::{Caller, Timestamp};
    use rusqlite::StatementStatus;

    use super::*;
    use crate::sqlite::schema;

    /// A database with so many ended tasks of one owner at two agents, a few of another owner, and ten open ones.
    fn filled(tasks: i64) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let insert = "INSERT INTO tasks (id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes,
                                         message_only, stage)
                      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
                      SELECT format('t%07d', n), 'c', iif(n % 20 = 0, 'seldom', 'echo'), 'acme', iif(n <= 20, 'bob', 'ada'), '1.0', n,
                             iif(n % 10 = 0, 4, 3), n, 2, 9, 0, 3 FROM numbers";
        connection.execute(insert, [tasks]).unwrap();
        connection.execute_batch("UPDATE tasks SET stage = 1, state = 2 WHERE num > (SELECT max(num) - 10 FROM tasks)").unwrap();
        let count = "INSERT INTO ended_counts SELECT tenant, owner, agent, state, count(*) FROM tasks WHERE stage = 3
                     GROUP BY tenant, owner, agent, state";
        connection.execute_batch(count).unwrap();
        connection
    }

    /// What SQLite does for a page of twenty and the total, in steps of its machine.
    fn steps(connection: &Connection, filter: &ListFilter, after: Option<&ListCursor>) -> i64 {
        let agents = agents(connection, filter).unwrap();
        let (page, mut values) = page_query(filter, &agents, after);
        values.push(20.into());
        let mut steps = 0;
        for (sql, values) in total_queries(filter, &agents).into_iter().chain([(page, values)]) {
            let mut statement = connection.prepare(&sql).unwrap();
            let mut rows = statement.query(params_from_iter(&values)).unwrap();
            while rows.next().unwrap().is_some() {}
            drop(rows);
            steps += i64::from(statement.get_status(StatementStatus::VmStep));
        }
        steps
    }

    #[test]
    fn a_page_and_its_total_cost_the_same_whatever_the_number_of_tasks() {
        let (few, many) = (filled(1_000), filled(50_000));
        let all = ListFilter::default();
        let ada = ListFilter { owner: Some(Caller::new("acme", "ada")), ..all.clone() };
        let at = |agent: &str| ListFilter { agents: Some(vec![agent.into()]), ..ada.clone() };
        let failed = ListFilter { state: Some(TaskState::Failed), ..ada.clone() };
        for filter in [all, ada.clone(), at("echo"), at("seldom"), failed] {
            for status_at in [None, Some(500)] {
                let after = status_at.map(|at| ListCursor { status_at: Timestamp::from_micros(at), id: "x".into() });
                let (little, much) = (steps(&few, &filter, after.as_ref()), steps(&many, &filter, after.as_ref()));
                assert!(much * 2 <= little * 3, "{filter:?} after {after:?}: {little} steps, then {much}");
            }
        }
    }

    #[test]
    fn totals_from_counts_are_those_of_the_tasks() {
        let mut connection = filled(1_000);
        let all = ListFilter::default();
        let ada = ListFilter { owner: Some(Caller::new("acme", "ada")), ..all.clone() };
        let cases = [
            (all.clone(), 1_000),
            (ada.clone(), 980),
            (ListFilter { agents: Some(vec!["seldom".into()]), ..ada.clone() }, 49),
            (ListFilter { agents: Some(vec!["seldom".into(), "echo".into(), "echo".into()]), ..ada.clone() }, 980),
            (ListFilter { state: Some(TaskState::Working), ..ada.clone() }, 10),
            (ListFilter { caller: Some("bob".into()), ..all.clone() }, 20),
            (ListFilter { tenant: Some("acme".into()), state: Some(TaskState::Failed), ..all.clone() }, 99),
            (ListFilter { status_at_or_after: Some(Timestamp::from_micros(901)), ..ada.clone() }, 100),
            (ListFilter { context_id: Some("c".into()), ..ada }, 980),
        ];
        for (filter, total) in cases {
            let listed = list(&mut connection, &filter, None, 5_000).unwrap();
            assert_eq!((listed.total, listed.tasks.len() as u64), (total, total), "{filter:?}");
        }
    }
}
