//! The tables, version by version, and the way from any version to the newest.

use chancery_core::StoreError;
use deadpool_postgres::ClientWrapper;

use super::fault::PostgresFault;
use super::flight::BEGIN;
use super::requirements::{self, DatabaseMarks};

/// One numbered step. Steps that were released never change; new ones are added at the end, and only add.
struct SchemaStep {
    version: i64,
    /// The oldest version of the program's knowledge that can still work with the tables after this step.
    compatible_from: i64,
    sql: &'static str,
}

const STEPS: [SchemaStep; 2] = [
    SchemaStep { version: 1, compatible_from: 1, sql: include_str!("schema/v1.sql") },
    // A program that knows nothing of leases would shut out every member at its start.
    SchemaStep { version: 2, compatible_from: 2, sql: include_str!("schema/v2.sql") },
];

/// The newest version that this program knows.
const NEWEST: i64 = STEPS[STEPS.len() - 1].version;

/// A start that migrates holds this advisory lock ("Chcy" and 1), so that two starts do not migrate at once.
const MIGRATION_LOCK: i64 = 0x4368_6379_0000_0001;

/// How often a migration waits for a lock before the start fails.
const LOCK_ATTEMPTS: usize = 5;

/// Checks the database and brings it to the newest version.
pub(super) async fn prepare(session: &ClientWrapper) -> Result<(), StoreError> {
    let marks = requirements::check(session).await?;
    for attempt in 1.. {
        match migrate(session, &marks).await {
            Err(Migration::Fault(fault))
                if attempt < LOCK_ATTEMPTS && fault.code().is_some_and(|code| code.code() == "55P03") =>
            {
                tracing::warn!(attempt, "another session holds a lock that the migration needs; trying again");
            }
            Err(Migration::Fault(fault)) => return Err(fault.while_doing("bringing the database to the newest version")),
            Err(Migration::Refused(refusal)) => return Err(refusal),
            Ok(()) => break,
        }
    }
    Ok(())
}

/// Checks the database, and whether it can be brought to the newest version. Changes nothing.
pub(super) async fn look(session: &ClientWrapper) -> Result<(), StoreError> {
    let marks = requirements::check(session).await?;
    match read_version(session, &marks).await {
        Ok(_) => Ok(()),
        Err(Migration::Refused(refusal)) => Err(refusal),
        Err(Migration::Fault(fault)) => Err(fault.while_doing("reading the version of the database")),
    }
}

/// Why a migration did not happen.
enum Migration {
    Fault(PostgresFault),
    Refused(StoreError),
}

impl<F: Into<PostgresFault>> From<F> for Migration {
    fn from(fault: F) -> Self {
        Self::Fault(fault.into())
    }
}

/// All steps in one transaction: a start that is broken off leaves the database as it was.
async fn migrate(session: &ClientWrapper, marks: &DatabaseMarks) -> Result<(), Migration> {
    let begin = format!("{BEGIN}; SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
    session.batch_execute(&begin).await?;
    let outcome = take_steps(session, marks).await;
    session.batch_execute(if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    outcome
}

async fn take_steps(session: &ClientWrapper, marks: &DatabaseMarks) -> Result<(), Migration> {
    let version = read_version(session, marks).await?;
    if version.is_none() {
        let table = "CREATE TABLE schema_steps (
                         version bigint PRIMARY KEY, compatible_from bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())";
        session.batch_execute(table).await?;
    }
    for step in STEPS.iter().filter(|step| step.version > version.unwrap_or(0)) {
        session.batch_execute(step.sql).await?;
        let done = "INSERT INTO schema_steps (version, compatible_from) VALUES ($1, $2)";
        session.execute(done, &[&step.version, &step.compatible_from]).await?;
    }
    Ok(())
}

/// The version of the tables, or nothing in a database without tables of ours. Refuses the tables of other programs, those of a
/// program that knows more, and tables that the role would have to make and may not.
async fn read_version(session: &ClientWrapper, marks: &DatabaseMarks) -> Result<Option<i64>, Migration> {
    let refuse = |words: String| Err(Migration::Refused(StoreError::new(words)));
    let ours = session.query_one("SELECT to_regclass('schema_steps') IS NOT NULL, to_regclass('tasks') IS NOT NULL", &[]).await?;
    let (has_steps, has_tasks): (bool, bool) = (ours.try_get(0)?, ours.try_get(1)?);
    if !has_steps && has_tasks {
        return refuse(
            "the database has a table `tasks` of some other program, and was left as it is: give the store a database of its own"
                .into(),
        );
    }
    let (mut version, mut compatible_from) = (0, 0);
    if has_steps {
        let newest =
            session.query_opt("SELECT version, compatible_from FROM schema_steps ORDER BY version DESC LIMIT 1", &[]).await?;
        if let Some(newest) = newest {
            (version, compatible_from) = (newest.try_get::<_, i64>(0)?, newest.try_get::<_, i64>(1)?);
        }
    }
    if compatible_from > NEWEST {
        return refuse(format!(
            "the database has version {version}, which programs that know version {compatible_from} can use; this one knows {NEWEST}: \
             start it with a newer program; it was left as it is"
        ));
    }
    if version < NEWEST && !marks.may_create {
        let role = &marks.role;
        return refuse(format!(
            "role {role} may not create tables, and the database needs version {NEWEST} of them: run GRANT CREATE ON SCHEMA … TO {role}"
        ));
    }
    Ok(has_steps.then_some(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_without_gaps_and_none_demands_more_than_it_makes() {
        for (step, number) in STEPS.iter().zip(1..) {
            assert_eq!(step.version, number);
            assert!(step.compatible_from <= step.version);
        }
    }
}
