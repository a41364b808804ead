//! Builds the indexes of version 14, and says how far it is.

use rusqlite::Connection;

use crate::sqlite::fault::SqliteFault;

/// The ids of tasks were half of each entry of two indexes. SQLite orders tasks of the same microsecond when it reads them.
/// Ended tasks that did not complete are few as a rule: an operator's list of them does not go through all the others.
const INDEXES: [(&str, &str); 3] = [
    ("tasks_open", "CREATE INDEX tasks_open ON tasks (tenant, owner, status_at) WHERE stage < 3"),
    ("tasks_listed", "CREATE INDEX tasks_listed ON tasks (tenant, owner, agent, status_at) WHERE stage = 3 AND message_only = 0"),
    ("tasks_not_completed", "CREATE INDEX tasks_not_completed ON tasks (state, status_at) WHERE stage = 3 AND state <> 3"),
];

/// Within the transaction of the step: a start that is broken off leaves the database as it was.
pub(super) fn build(connection: &Connection) -> Result<(), SqliteFault> {
    let tasks: u64 = connection.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))?;
    for (number, (index, sql)) in INDEXES.iter().enumerate() {
        if tasks > 0 {
            tracing::info!(
                index,
                number = number + 1,
                of = INDEXES.len(),
                tasks,
                "building an index of version 14 of the database"
            );
        }
        connection.execute_batch(sql)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use chancery_core::{ListFilter, Store as _, SweepPlan};
    use chancery_protocol::{Caller, TaskState};

    use super::super::STEPS;
    use super::*;
    use crate::sqlite::{SqliteOptions, SqliteStore};

    /// Four tasks as version 13 kept them: one that works, one that failed, and two that completed in the same microsecond.
    const TASKS_OF_VERSION_13: &str = r#"
        INSERT INTO tasks (num, id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes,
                           message_only, stage, trace, depth, facts, settled_usd, settled_tokens, settled_tasks, reserved_usd,
                           reserved_tokens, reserved_tasks, overrun_usd, overrun_tokens, overrun_tasks, settled_at, estimated_by)
        VALUES (1, 'works', 'c', 'echo', 'acme', 'ada', '1.0', 1, 2, 70, 1, 9, 0, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                NULL, NULL, NULL, NULL, NULL, NULL),
               (2, 'later', 'c', 'echo', 'acme', 'ada', '1.0', 1, 3, 60, 1, 9, 0, 3, x'00000000000000000000000000000007', 0,
                '{"p":["caller/ada"],"a":"root","v":[]}', 0, 0, 1, 0, 0, 0, 0, 0, 0, 60, 0),
               (3, 'earlier', 'c', 'echo', 'acme', 'ada', '1.0', 1, 3, 60, 1, 9, 0, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL),
               (4, 'failed', 'c', 'echo', 'acme', 'bob', '1.0', 1, 4, 50, 1, 9, 0, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        INSERT INTO ended_counts VALUES ('acme', 'ada', 'echo', 3, 2), ('acme', 'bob', 'echo', 4, 1);
    "#;

    fn of_version_13(mut connection: Connection) -> Connection {
        for (number, step) in STEPS[..13].iter().enumerate() {
            super::super::take_step(&mut connection, step, number + 1).unwrap();
        }
        connection.execute_batch(TASKS_OF_VERSION_13).unwrap();
        connection
    }

    #[tokio::test]
    async fn tasks_of_version_13_are_listed_and_swept_in_their_order_and_keep_their_costs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chancery.db");
        drop(of_version_13(Connection::open(&path).unwrap()));
        let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        let ada = ListFilter { owner: Some(Caller::new("acme", "ada")), ..ListFilter::default() };
        let failed = ListFilter { state: Some(TaskState::Failed), ..ListFilter::default() };
        let lists: [(ListFilter, &[&str]); 3] = [
            (ListFilter::default(), &["works", "later", "earlier", "failed"]),
            (ada, &["works", "later", "earlier"]),
            (failed, &["failed"]),
        ];
        for (filter, expected) in lists {
            let listed = store.list(&filter, None, 10).await.unwrap();
            let ids: Vec<_> = listed.tasks.iter().map(|stored| stored.task.id.as_str()).collect();
            assert_eq!((&ids[..], listed.total), (expected, expected.len() as u64));
        }
        let governed = store.governed(&"later".into()).await.unwrap().unwrap();
        assert_eq!((governed.spend.settled.tasks, governed.spend.settled.usd.0), (1, 0));

        let sweep = SweepPlan { keep_at_most: Some(1), at_most: 9, ..SweepPlan::default() };
        assert_eq!(store.sweep(sweep).await.unwrap(), 2);
        let left = store.list(&ListFilter::default(), None, 10).await.unwrap();
        assert_eq!(left.tasks.iter().map(|stored| stored.task.id.as_str()).collect::<Vec<_>>(), ["works", "later"]);
    }

    #[test]
    fn a_start_that_fails_half_way_leaves_version_13_as_it_was() {
        let mut connection = of_version_13(Connection::open_in_memory().unwrap());
        // The step makes an index of this name at its end.
        connection.execute_batch("CREATE INDEX tasks_not_completed ON log (last_seq)").unwrap();
        assert!(super::super::migrate(&mut connection).is_err());
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        let indexes = "SELECT count(*) FROM sqlite_schema WHERE name IN ('tasks_open', 'tasks_listed') AND sql LIKE '%, id)%'";
        assert_eq!((count("PRAGMA user_version"), count(indexes), count("SELECT count(*) FROM tasks")), (13, 2, 4));
    }
}
