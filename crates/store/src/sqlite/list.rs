//! Pages of tasks, newest status first.

use chancery_core::{ListCursor, ListFilter, TaskListing};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::fault::SqliteFault;
use super::find::{COLUMNS, stored};

/// A `WHERE` clause that grows by what the filter asks for, so that SQLite can choose an index for exactly that.
#[derive(Clone)]
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

    fn starting_after(mut self, cursor: &ListCursor) -> Self {
        self.sql.push_str(" AND (status_at, id) < (?, ?)");
        self.values.extend([cursor.status_at.micros().into(), cursor.id.to_string().into()]);
        self
    }
}

pub(super) fn list(
    connection: &mut Connection,
    filter: &ListFilter,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<TaskListing, SqliteFault> {
    let matching = Conditions::of(filter);
    // One view for both, or the total could contradict the page.
    let view = connection.transaction()?;
    let total = view
        .prepare_cached(&format!("SELECT count(*) FROM tasks WHERE {}", matching.sql))?
        .query_row(params_from_iter(&matching.values), |row| row.get(0))?;

    let page = match after {
        Some(cursor) => matching.starting_after(cursor),
        None => matching,
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE {} ORDER BY status_at DESC, id DESC LIMIT {limit}", page.sql);
    let mut tasks = Vec::new();
    let mut statement = view.prepare(&sql)?;
    let mut rows = statement.query(params_from_iter(&page.values))?;
    while let Some(row) = rows.next()? {
        tasks.push(stored(row)?);
    }
    Ok(TaskListing { tasks, total })
}
