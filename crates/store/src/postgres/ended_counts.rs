//! How many tasks have ended, by owner, agent and state: added up in memory for a transaction, written once at its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_core::TaskRecord;
use chancery_protocol::{AgentName, Caller, TaskState};
use tokio_postgres::Row;

use super::columns::{self, Columns as _, DatabaseSession, sought};
use super::fault::PostgresFault;

/// What ended tasks are counted by, in the order of the table's key: all writers lock its rows in one order.
type EndedKey = (Arc<str>, Arc<str>, AgentName, i64, bool);

/// What the jobs of a transaction have changed so far.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedChanges(BTreeMap<EndedKey, i64>);

impl EndedChanges {
    /// Adds to, or takes from, the tasks of an owner and an agent that have ended in a state.
    pub(super) fn add(&mut self, task: &TaskRecord, state: TaskState, message_only: bool, change: i64) {
        let Caller { tenant, name } = &task.owner;
        self.change(
            (Arc::clone(tenant), Arc::clone(name), Arc::clone(&task.agent), i64::from(state.number()), message_only),
            change,
        );
    }

    /// Takes away a task by its row: five columns from this place on, `tenant`, `owner`, `agent`, `state` and `message_only`.
    pub(super) fn remove_row(&mut self, row: &Row, at: usize) -> Result<(), PostgresFault> {
        let key = (row.text(at)?, row.text(at + 1)?, row.text(at + 2)?, row.try_get(at + 3)?, row.try_get(at + 4)?);
        self.change(key, -1);
        Ok(())
    }

    fn change(&mut self, key: EndedKey, by: i64) {
        *self.0.entry(key).or_default() += by;
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// The changes, in the order of the table's key.
    pub(super) fn changed(&self) -> Vec<(&EndedKey, i64)> {
        self.0.iter().map(|(key, by)| (key, *by)).filter(|(_, by)| *by != 0).collect()
    }
}

/// How many tasks have ended, with logs of a message alone.
pub(super) async fn finished<D: DatabaseSession>(db: &D) -> Result<u64, PostgresFault> {
    let sum = columns::number(db, "SELECT coalesce(sum(tasks), 0)::bigint FROM ended_counts", &[]).await?;
    Ok(sum.max(0).cast_unsigned())
}

/// The agents at which tasks of an owner have ended.
pub(super) async fn agents_of<D: DatabaseSession>(db: &D, owner: &Caller) -> Result<Vec<String>, PostgresFault> {
    let sql = "SELECT agent FROM ended_counts WHERE tenant = $1 AND owner = $2 AND NOT message_only
               GROUP BY agent HAVING sum(tasks) > 0 ORDER BY agent";
    columns::each(db.rows(sql, &[&sought(&owner.tenant), &sought(&owner.name)]).await?, |row| Ok(row.try_get(0)?))
}

/// Puts the counts of nodes that are gone together under one number, as part of a start.
pub(super) async fn gather<D: DatabaseSession>(db: &D, node: i64) -> Result<(), PostgresFault> {
    let sql = "WITH gone AS (DELETE FROM ended_counts WHERE node <> $1 RETURNING *)
               INSERT INTO ended_counts (node, tenant, owner, agent, state, message_only, tasks)
               SELECT $1, tenant, owner, agent, state, message_only, sum(tasks)::bigint FROM gone
               GROUP BY tenant, owner, agent, state, message_only HAVING sum(tasks) <> 0";
    db.execute(sql, &[&node]).await?;
    Ok(())
}

/// Adds the counts of a node that is gone to those of its successor. Part of a batch's transaction.
pub(super) async fn inherit<D: DatabaseSession>(db: &D, node: i64, gone: i64) -> Result<(), PostgresFault> {
    let sql = "WITH gone AS (DELETE FROM ended_counts WHERE node = $2 RETURNING *)
               INSERT INTO ended_counts (node, tenant, owner, agent, state, message_only, tasks)
               SELECT $1, tenant, owner, agent, state, message_only, tasks FROM gone
               ORDER BY tenant, owner, agent, state, message_only
               ON CONFLICT (tenant, owner, agent, state, message_only, node) DO UPDATE
               SET tasks = ended_counts.tasks + excluded.tasks";
    db.execute(sql, &[&node, &gone]).await?;
    Ok(())
}

/// Removes rows of a node that count nothing.
pub(super) async fn forget_empty<D: DatabaseSession>(db: &D, node: i64) -> Result<(), PostgresFault> {
    db.execute("DELETE FROM ended_counts WHERE node = $1 AND tasks = 0", &[&node]).await?;
    Ok(())
}
