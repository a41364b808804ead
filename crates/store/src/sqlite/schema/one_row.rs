//! Carries tasks and their ledgers over into one table, and says how far it is.

use rusqlite::Connection;

use crate::sqlite::fault::SqliteFault;

const ROWS: &str = include_str!("v11_rows.sql");
const END: &str = include_str!("v11_end.sql");

/// So many numbers of tasks are carried over before the next line in the log.
const PART: i64 = 100_000;

/// Within the transaction of the step: a start that is broken off leaves the database as it was.
pub(super) fn carry_over(connection: &Connection) -> Result<(), SqliteFault> {
    let (first, last, tasks): (i64, i64, i64) =
        connection.query_row("SELECT ifnull(min(num), 0), ifnull(max(num), -1), count(*) FROM tasks", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let mut insert = connection.prepare(ROWS)?;
    let mut carried = 0;
    let mut from = first;
    while from <= last {
        carried += insert.execute((from, from.saturating_add(PART - 1)))?;
        tracing::info!(carried, tasks, "bringing the tasks to version 11 of the database");
        from = from.saturating_add(PART);
    }
    drop(insert);
    connection.execute_batch(END)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use chancery_core::{ListFilter, Store as _, SweepPlan};

    use super::super::STEPS;
    use super::*;
    use crate::sqlite::{SqliteOptions, SqliteStore};

    /// Three tasks as version 10 kept them: a root that ended in its second turn, one below it that works, one from before calls
    /// were governed.
    const TASKS_OF_VERSION_10: &str = r#"
        INSERT INTO tasks (num, id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes, message_only,
                           stage, client_task_id, key, lanes)
        VALUES (3, 'root', 'c1', 'planner', 'acme', 'ada', '1.0', 10, 3, 50, 1, 90, 0, 3, NULL, 'once', 0),
               (4, 'child', 'c2', 'echo', 'acme', 'planner', '1.0', 20, 2, 60, 1, 80, 0, 1, NULL, NULL, 0),
               (250000, 'old', 'c3', 'echo', 'acme', 'ada', '0.3', 30, 3, 40, 1, 70, 0, 3, 'mine', NULL, 0);
        INSERT INTO ledger (task, root, trace, parent, depth, settled_usd, settled_tokens, settled_tasks, reserved_usd, reserved_tokens,
                            reserved_tasks, overrun_usd, overrun_tokens, overrun_tasks, settled_at, estimated_by, known_by, facts,
                            earlier_usd, earlier_tokens, earlier_tasks, earlier_overrun_usd, earlier_overrun_tokens,
                            earlier_overrun_tasks)
        VALUES (3, NULL, x'00000000000000000000000000000007', NULL, 0, 9, 8, 1, 0, 0, 0, 2, 1, 0, 50, 2, 1,
                '{"p":["caller/ada"],"a":"root","s":"plan","v":[]}', 4, 3, 1, 1, 1, 0),
               (4, 'root', x'00000000000000000000000000000007', 'root', 1, 0, 0, 0, 5, 5, 1, 0, 0, 0, NULL, 0, NULL,
                '{"p":["caller/ada","planner"],"a":"root","v":[]}', 0, 0, 0, 0, 0, 0);
        INSERT INTO log VALUES (3 << 24 | 1, 1, '[]'), (4 << 24 | 1, 1, '[]'), (250000 << 24 | 1, 1, '[]');
        INSERT INTO links VALUES (4, 'acme', 'planner', 'echo', 'c2', 'peer', 'theirs', NULL);
    "#;

    #[tokio::test]
    async fn tasks_of_version_10_keep_their_state_their_costs_and_their_trees() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chancery.db");
        let mut connection = Connection::open(&path).unwrap();
        for (number, step) in STEPS[..10].iter().enumerate() {
            super::super::take_step(&mut connection, step, number + 1).unwrap();
        }
        connection.execute_batch(TASKS_OF_VERSION_10).unwrap();
        drop(connection);

        let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        let listed = store.list(&ListFilter::default(), None, 10).await.unwrap();
        let tasks: Vec<_> = listed.tasks.iter().map(|stored| (stored.task.id.as_str(), stored.progress.bytes)).collect();
        assert_eq!(tasks, [("child", 80), ("root", 90), ("old", 70)]);
        assert_eq!(listed.tasks[2].task.client_task_id.as_deref(), Some("mine"));
        let unfinished = store.unfinished().await.unwrap();
        assert_eq!(unfinished.iter().map(|stored| stored.task.id.as_str()).collect::<Vec<_>>(), ["child"]);

        let tree = store.tree(&"root".into()).await.unwrap();
        assert_eq!(tree.iter().map(|row| row.task.as_str()).collect::<Vec<_>>(), ["root", "child"]);
        let spend = tree[0].governed.spend;
        assert_eq!((spend.settled.usd.0, spend.overrun.usd.0, spend.earlier.settled.usd.0), (9, 2, 4));
        assert_eq!((spend.earlier.overrun.tokens, spend.settled_at.map(|at| at.micros())), (1, Some(50)));
        assert_eq!(tree[0].governed.kinship.skill.as_deref(), Some("plan"));
        assert_eq!((tree[1].governed.spend.reserved.tokens, tree[1].governed.kinship.depth), (5, 1));
        assert_eq!(store.roots(chancery_protocol::TraceId(7)).await.unwrap(), ["root".into()]);
        assert_eq!(store.governed(&"old".into()).await.unwrap(), None);
        assert_eq!(store.link(&"child".into()).await.unwrap().unwrap().task, Some("theirs".into()));

        // What is swept goes whole: the root stays, because something goes on below it.
        let sweep = SweepPlan { keep_at_most: Some(0), at_most: 9, ..SweepPlan::default() };
        assert_eq!(store.sweep(sweep).await.unwrap(), 1);
        assert!(store.find_any("old").await.unwrap().is_none() && store.find_any("root").await.unwrap().is_some());
    }

    #[test]
    fn a_start_that_fails_half_way_leaves_version_10_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        for (number, step) in STEPS[..10].iter().enumerate() {
            super::super::take_step(&mut connection, step, number + 1).unwrap();
        }
        connection.execute_batch(TASKS_OF_VERSION_10).unwrap();
        // The step makes an index of this name at its end.
        connection.execute_batch("CREATE INDEX tasks_open ON log (last_seq)").unwrap();
        assert!(super::super::migrate(&mut connection).is_err());
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!((count("PRAGMA user_version"), count("SELECT count(*) FROM ledger")), (10, 2));
        assert_eq!(count("SELECT count(*) FROM tasks"), 3);
    }
}
