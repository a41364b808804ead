//! The tables, version by version, and the way from any version to the newest.

mod one_row;
mod slim_indexes;

use chancery_core::StoreError;
use rusqlite::Connection;

use super::fault::SqliteFault;

/// Marks a database file as ours ("Chcy").
const APPLICATION_ID: i32 = 0x4368_6379;

/// Step `n` leads from version `n` to `n + 1`. Steps that were released never change; new ones are added at the end.
const STEPS: [&str; 14] = [
    include_str!("schema/v1.sql"),
    include_str!("schema/v2.sql"),
    include_str!("schema/v3.sql"),
    include_str!("schema/v4.sql"),
    include_str!("schema/v5.sql"),
    include_str!("schema/v6.sql"),
    include_str!("schema/v7.sql"),
    include_str!("schema/v8.sql"),
    include_str!("schema/v9.sql"),
    include_str!("schema/v10.sql"),
    include_str!("schema/v11.sql"),
    include_str!("schema/v12.sql"),
    include_str!("schema/v13.sql"),
    include_str!("schema/v14.sql"),
];

/// The version in which a task and its ledger became one row. Its rows are carried over in parts, between two halves of the step.
const ONE_ROW_PER_TASK: usize = 11;
/// The version in which indexes of tasks lost the ids of the tasks, and free tasks the columns of their cost.
const SLIM_INDEXES: usize = 14;

pub(super) const NEWEST: usize = STEPS.len();

/// Where a log row lies: the task's number, then the number of the row's first entry, in one integer. Rows of a task
/// are neighbours, new tasks come last, and no index is needed beside the table itself.
pub(super) const ENTRY_BITS: u32 = 24;
pub(super) const MOST_ENTRIES: u64 = (1 << ENTRY_BITS) - 1;

pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let version = version(connection)?;
    // A database that was just made has nothing to bring along.
    let is_old = version > 0;
    for (from, step) in STEPS.iter().enumerate().skip(version) {
        let to = from + 1;
        if is_old {
            tracing::info!(from, to, newest = NEWEST, "bringing the database to its next version");
        }
        take_step(connection, step, to).map_err(|fault| fault.while_doing(&format!("bringing the database to version {to}")))?;
    }
    if is_old && version < NEWEST {
        tracing::info!(was = version, is = NEWEST, "the database has the newest version");
    }
    Ok(())
}

fn take_step(connection: &mut Connection, step: &str, to: usize) -> Result<(), SqliteFault> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(step)?;
    if to == ONE_ROW_PER_TASK {
        one_row::carry_over(&transaction)?;
    }
    if to == SLIM_INDEXES {
        slim_indexes::build(&transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", to as i64)?;
    transaction.commit()?;
    Ok(())
}

/// The version a database has. One that we could not read, or should not touch, is refused.
pub(super) fn version(connection: &Connection) -> Result<usize, StoreError> {
    let (application, version, tables) =
        marks(connection).map_err(|fault| fault.while_doing("reading the version of the database"))?;
    if application != i64::from(APPLICATION_ID) && (application, version, tables) != (0, 0, 0) {
        return Err(StoreError::new("the file is a database of some other program; it was left as it is"));
    }
    match usize::try_from(version) {
        Ok(version) if version <= NEWEST => Ok(version),
        _ => Err(StoreError::new(format!(
            "the database has version {version}, but this program knows versions up to {NEWEST}: \
             start it with a newer program; it was left as it is"
        ))),
    }
}

fn marks(connection: &Connection) -> Result<(i64, i64, i64), SqliteFault> {
    let number = |sql| connection.query_row(sql, [], |row| row.get(0));
    Ok((number("PRAGMA application_id")?, number("PRAGMA user_version")?, number("SELECT count(*) FROM sqlite_schema")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_core::{ListCursor, ListFilter};
    use chancery_protocol::{Caller, Timestamp};

    use crate::sqlite::{decisions, find, keys, list, nonces, outbox, spent, sweep, trees};

    fn opened() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection
    }

    #[test]
    fn queries_use_the_indexes_made_for_them() {
        let connection = opened();
        let plan = |sql: &str| -> String {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            // A plan does not depend on what its parameters are, so they need no value.
            let lines = statement.raw_query().mapped(|row| row.get::<_, String>(3));
            lines.map(Result::unwrap).collect::<Vec<_>>().join("; ")
        };
        let unfinished = plan(&find::unfinished_query());
        assert!(unfinished.contains("tasks_open"), "{unfinished}");
        let finished = plan(&sweep::finished_query());
        assert!(finished.contains("tasks_finished") && !finished.contains("TEMP"), "{finished}");
        for goes_on in [&plan(sweep::GOES_ON), &finished] {
            assert!(goes_on.contains("ledger_trees") && !goes_on.contains("TEMP"), "{goes_on}");
        }
        let context = "SELECT peer FROM links WHERE tenant = 'a' AND owner = 'b' AND agent = 'c' AND context_id = 'd' \
                       ORDER BY task DESC LIMIT 1";
        let of_context = plan(context);
        assert!(of_context.contains("links_of_context") && !of_context.contains("TEMP"), "{of_context}");
        // A page comes in order from two indexes, of ended tasks and of open ones.
        let cursor = ListCursor { status_at: Timestamp::from_micros(5), id: "x".into() };
        let owner = ListFilter { owner: Some(Caller::new("acme", "ada")), ..ListFilter::default() };
        for (filter, index) in [(owner, "tasks_listed"), (ListFilter::default(), "tasks_finished")] {
            let agents = ["echo".to_owned(), "other".to_owned()];
            let listed = plan(&list::page_query(&filter, &agents, Some(&cursor)).0);
            assert!(listed.contains(index) && listed.contains("tasks_open"), "{listed}");
            let whole = listed.split("; ").any(|line| line == "SCAN tasks");
            // Only tasks of the same microsecond are put in order by themselves.
            let sorted = listed.replace("USE TEMP B-TREE FOR LAST TERM OF ORDER BY", "");
            assert!(!whole && (filter.owner.is_none() || !sorted.contains("TEMP")), "{listed}");
        }

        // Of the ledger: no table is gone through from one end to the other, and what is asked for in order comes in order.
        let counting = plan(&trees::ledger_query());
        for index in ["tasks_finished", "tasks_open", "ledger_trees"] {
            assert!(counting.contains(index), "{index}: {counting}");
        }
        let tree = plan(&trees::tree_query());
        assert!(tree.contains("ledger_trees") && !tree.contains("TEMP"), "{tree}");
        for sql in [trees::tree_page_query(), trees::tree_costs_query()] {
            let part = plan(&sql);
            assert!(part.contains("ledger_trees") && !part.contains("TEMP"), "{part}");
        }
        let roots = plan(trees::ROOTS);
        let shelf = "INDEX ledger_roots (<expr>=? AND trace=?)";
        assert!(roots.contains(shelf) && roots.contains("INDEX ledger_roots (<expr>>?)"), "{roots}");
        let of_task = plan(decisions::OF_TASK);
        assert!(of_task.contains("decisions_of_task") && !of_task.contains("TEMP"), "{of_task}");
        let spent = plan(spent::FORGET);
        assert!(spent.contains("spent_at"), "{spent}");
        let ended = plan(nonces::ENDED);
        assert!(ended.contains("nonces_ending") && !ended.contains("TEMP"), "{ended}");
        let expiring = plan(keys::EXPIRED);
        assert!(expiring.contains("keys_expiring") && !expiring.contains("TEMP"), "{expiring}");
        // Of the lanes: however many wait, a claim goes straight to those that are due.
        for (sql, index) in outbox::INDEXED {
            let plan = plan(sql);
            assert!(plan.contains(index) && !plan.contains("TEMP"), "{sql}: {plan}");
            for table in ["lanes", "l", "registrations", "r", "push_origins", "dead_letters", "tasks", "t"] {
                let goes_through = |line: &str| line == format!("SCAN {table}");
                assert!(!plan.split("; ").any(goes_through), "{sql}: {plan}");
            }
        }
        for plan in [finished, plan(sweep::GOES_ON), counting, tree, of_task, spent, plan(decisions::FORGET)] {
            // All open tasks are asked for at a start; that index has no others.
            let plan = plan.replace("SCAN tasks USING INDEX tasks_open", "");
            let scans = |table: &str| plan.contains(&format!("SCAN {table}"));
            assert!(!["tasks", "decisions", "spent"].into_iter().any(scans), "{plan}");
        }
    }

    #[test]
    fn a_new_database_gets_the_newest_version_and_a_second_start_changes_nothing() {
        let mut connection = opened();
        assert_eq!(version(&connection).unwrap(), NEWEST);
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), NEWEST);
    }

    #[test]
    fn every_earlier_version_is_brought_to_the_newest_and_keeps_its_tasks() {
        for from in 0..=NEWEST {
            let mut connection = Connection::open_in_memory().unwrap();
            for (number, step) in STEPS[..from].iter().enumerate() {
                take_step(&mut connection, step, number + 1).unwrap();
            }
            assert_eq!(version(&connection).unwrap(), from);
            if from > 0 {
                let task = "INSERT INTO tasks (id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq,
                                               bytes, message_only, stage)
                            VALUES ('t', 'c', 'echo', 'acme', 'ada', '1.0', 1, 3, 5, 1, 9, 0, 3)";
                connection.execute_batch(task).unwrap();
            }
            migrate(&mut connection).unwrap();
            assert_eq!(version(&connection).unwrap(), NEWEST);
            let found = crate::sqlite::find::find_any(&connection, "t").unwrap();
            assert_eq!(found.is_some(), from > 0);
            assert_eq!(trees::governed(&connection, &"t".into()).unwrap(), None);
        }
    }

    #[test]
    fn the_log_shows_how_far_a_migration_is() {
        let folder = tempfile::tempdir().unwrap();
        let log = |migration: &mut dyn FnMut()| {
            let path = folder.path().join("log");
            let file = std::sync::Arc::new(std::fs::File::create(&path).unwrap());
            let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(file).finish();
            // With one dispatcher, a thread of another test that meets an event first would switch it off for all threads.
            let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
            tracing::subscriber::with_default(subscriber, migration);
            std::fs::read_to_string(path).unwrap()
        };
        let mut connection = Connection::open_in_memory().unwrap();
        for (number, step) in STEPS[..10].iter().enumerate() {
            take_step(&mut connection, step, number + 1).unwrap();
        }
        // Two of the parts that are carried over at once have tasks.
        let tasks =
            "INSERT INTO tasks (num, id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes,
                                        message_only, stage)
                     SELECT value, 't' || value, 'c', 'echo', 'acme', 'ada', '1.0', 1, 3, 5, 1, 9, 0, 3
                     FROM json_each('[1, 2, 150000]')";
        connection.execute_batch(tasks).unwrap();
        let told = log(&mut || migrate(&mut connection).unwrap());
        let expected = [
            "next version from=10 to=11 newest=14",
            "version 11 of the database carried=2 tasks=3",
            "version 11 of the database carried=3 tasks=3",
            "next version from=11 to=12 newest=14",
            "next version from=12 to=13 newest=14",
            "next version from=13 to=14 newest=14",
            "version 14 of the database index=\"tasks_open\" number=1 of=3 tasks=3",
            "version 14 of the database index=\"tasks_listed\" number=2 of=3 tasks=3",
            "version 14 of the database index=\"tasks_not_completed\" number=3 of=3 tasks=3",
            "newest version was=10 is=14",
        ];
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{told}");
        assert!(lines.iter().zip(expected).all(|(line, expected)| line.ends_with(expected) && line.contains(" INFO ")), "{told}");

        assert_eq!(log(&mut || migrate(&mut connection).unwrap()), "", "a database of the newest version");
        assert_eq!(log(&mut || drop(opened())), "", "a new database");
    }

    #[test]
    fn keys_that_were_kept_with_their_tasks_are_found_in_their_own_table() {
        let mut connection = Connection::open_in_memory().unwrap();
        for (number, step) in STEPS[..7].iter().enumerate() {
            take_step(&mut connection, step, number + 1).unwrap();
        }
        for (id, key) in [("t1", "once"), ("t2", "message:m1")] {
            let task = "INSERT INTO tasks (id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq,
                                           bytes, message_only, stage, key, key_fingerprint, key_expires_at)
                        VALUES (?1, 'c', 'echo', 'acme', 'ada', '1.0', 1, 3, 5, 1, 9, 0, 3, ?2, zeroblob(32), 100)";
            connection.execute(task, [id, key]).unwrap();
        }
        migrate(&mut connection).unwrap();
        let owner = chancery_protocol::Caller::new("acme", "ada");
        let made_by = |key: &str, now| {
            let found = keys::look_up(&connection, &owner, key, chancery_protocol::Timestamp::from_micros(now)).unwrap();
            found.map(|found| found.task.to_string())
        };
        assert_eq!(made_by("once", 99).as_deref(), Some("t1"));
        assert_eq!(made_by("once", 100), None, "at its own time");
        assert_eq!(made_by("message:echo:m1", 99).as_deref(), Some("t2"), "under the name such keys have now");
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before_it() {
        let mut connection = opened();
        let broken = "CREATE TABLE half (done INTEGER); INSERT INTO nowhere VALUES (1);";
        assert!(take_step(&mut connection, broken, NEWEST + 1).is_err());
        assert_eq!(version(&connection).unwrap(), NEWEST);
        let half: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'half'", [], |row| row.get(0)).unwrap();
        assert_eq!(half, 0);
    }
}
