//! How many tasks have ended, by owner, agent and state: added up in memory for a transaction, written once at its end.

use std::collections::HashMap;
use std::sync::Arc;

use chancery_core::TaskRecord;
use chancery_protocol::{AgentName, Caller, TaskState};
use foldhash::fast::RandomState;
use rusqlite::{Connection, Row};

use super::fault::SqliteFault;
use super::row_reader::RowReader;

/// Whose ended tasks are counted together.
type CountedBy = (Caller, AgentName, i32);

/// What the jobs of a transaction have changed so far.
#[derive(Debug, Default)]
pub(super) struct CountChanges(HashMap<CountedBy, i64, RandomState>);

impl CountChanges {
    /// Adds to, or takes from, the tasks of an owner and an agent that have ended in a state.
    pub(super) fn add(&mut self, task: &TaskRecord, state: TaskState, change: i64) {
        self.add_to((task.owner.clone(), Arc::clone(&task.agent), state.number()), change);
    }

    /// Takes away a task by its row: `tenant`, `owner` and `agent` from `owner` on, and `state` and `message_only` from `state` on.
    pub(super) fn remove_row(
        &mut self,
        row: &Row<'_>,
        owner: usize,
        state: usize,
        reader: &mut RowReader,
    ) -> rusqlite::Result<()> {
        if !row.get::<_, bool>(state + 1)? {
            let caller = Caller { tenant: reader.name(row, owner)?, name: reader.name(row, owner + 1)? };
            self.add_to((caller, reader.name(row, owner + 2)?, row.get(state)?), -1);
        }
        Ok(())
    }

    fn add_to(&mut self, counted: CountedBy, change: i64) {
        *self.0.entry(counted).or_default() += change;
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Writes the changes, as the last part of their transaction.
    pub(super) fn write(&mut self, connection: &Connection) -> Result<(), SqliteFault> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut change = connection.prepare_cached(
            "INSERT INTO ended_counts VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (tenant, owner, agent, state) DO UPDATE SET tasks = tasks + excluded.tasks",
        )?;
        let mut remove = connection.prepare_cached(
            "DELETE FROM ended_counts WHERE tenant = ?1 AND owner = ?2 AND agent = ?3 AND state = ?4 AND tasks = 0",
        )?;
        for ((owner, agent, state), by) in self.0.drain().filter(|(_, by)| *by != 0) {
            let counted = (&*owner.tenant, &*owner.name, &*agent, state);
            change.execute((counted.0, counted.1, counted.2, counted.3, by))?;
            if by < 0 {
                remove.execute(counted)?;
            }
        }
        Ok(())
    }
}

/// The agents at which tasks of an owner have ended.
pub(super) fn agents_of(connection: &Connection, owner: &Caller) -> Result<Vec<String>, SqliteFault> {
    let mut statement =
        connection.prepare_cached("SELECT DISTINCT agent FROM ended_counts WHERE tenant = ?1 AND owner = ?2 ORDER BY agent")?;
    let rows = statement.query_map((&*owner.tenant, &*owner.name), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Owners, agents and states whose count differs from their tasks.
pub(super) const WRONG: &str = "SELECT count(*) FROM (
         SELECT tenant, owner, agent, state, tasks FROM ended_counts
         UNION ALL
         SELECT tenant, owner, agent, state, -count(*) FROM tasks WHERE stage = 3 AND message_only = 0
         GROUP BY tenant, owner, agent, state)
     GROUP BY tenant, owner, agent, state HAVING sum(tasks) <> 0 LIMIT 1";
