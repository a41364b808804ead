//! Pages of tasks, newest status first.

use chancery_core::{ListCursor, ListFilter, Stored, TaskListing};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::fault::SqliteFault;
use super::find::{COLUMNS, stored};

/// A `WHERE` clause that grows by what the filter asks for, so that SQLite can choose an index for exactly that.
struct Conditions {
    sql: String,
    values: Vec<Value>,
}

impl Conditions {
    fn of(filter: &ListFilter) -> Self {
        let mut conditions = Self { sql: "message_only = 0".into(), values: Vec::new() };
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
        if let Some(agents) = &filter.agents {
            conditions.add_one_of("agent", agents.iter().map(|agent| agent.to_string()));
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

/// Which tasks come from where: those that ended from one index, those that are open from another, each in the order of lists.
fn sources(filter: &ListFilter) -> [&'static str; 2] {
    let ended = match (&filter.owner, &filter.tenant) {
        // Without a name of the index SQLite would take that of owners and sort what it finds there.
        (None, None) => "tasks INDEXED BY tasks_finished WHERE stage = 3",
        _ => "tasks WHERE stage = 3",
    };
    [ended, "tasks INDEXED BY tasks_open WHERE stage < 3"]
}

/// A page without its limit, which is the last parameter, and the values of the other parameters.
pub(super) fn page_query(filter: &ListFilter, after: Option<&ListCursor>) -> (String, Vec<Value>) {
    let mut matching = Conditions::of(filter);
    if let Some(cursor) = after {
        matching.starting_after(cursor);
    }
    let [ended, open] = sources(filter).map(|source| format!("SELECT {COLUMNS} FROM {source} AND {}", matching.sql));
    let values = [matching.values.clone(), matching.values].concat();
    (format!("{ended} UNION ALL {open} ORDER BY status_at DESC, id DESC LIMIT ?"), values)
}

pub(super) fn list(
    connection: &mut Connection,
    filter: &ListFilter,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<TaskListing, SqliteFault> {
    if lists_no_agent(filter) {
        return Ok(TaskListing { tasks: Vec::new(), total: 0 });
    }
    // One view for both, or the total could contradict the page.
    let view = connection.transaction()?;
    let matching = Conditions::of(filter);
    let mut total = 0;
    for source in sources(filter) {
        let sql = format!("SELECT count(*) FROM {source} AND {}", matching.sql);
        total += view.prepare_cached(&sql)?.query_row(params_from_iter(&matching.values), |row| row.get::<_, u64>(0))?;
    }
    Ok(TaskListing { tasks: page(&view, filter, after, limit)?, total })
}

/// A list of no agent's tasks is empty. SQLite knows that too, and then refuses to use an index that the query names.
fn lists_no_agent(filter: &ListFilter) -> bool {
    filter.agents.as_ref().is_some_and(Vec::is_empty)
}

/// A page, without how many match in all.
pub(super) fn page(
    connection: &Connection,
    filter: &ListFilter,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<Vec<Stored>, SqliteFault> {
    if lists_no_agent(filter) {
        return Ok(Vec::new());
    }
    let (sql, mut values) = page_query(filter, after);
    values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
    let mut tasks = Vec::new();
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(&values))?;
    while let Some(row) = rows.next()? {
        tasks.push(stored(row)?);
    }
    Ok(tasks)
}
