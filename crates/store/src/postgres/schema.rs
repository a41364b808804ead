//! The tables, version by version, and the way from any version to the newest. Also what a database must be for them.

use chancery_core::StoreError;
use deadpool_postgres::ClientWrapper;

use super::columns::{self, Columns as _};
use super::fault::PostgresFault;
use super::flight::BEGIN;

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

/// The lowest server version with all that the store uses.
const LOWEST_SERVER: i64 = 14;

/// How often a migration waits for a lock before the start fails.
const LOCK_ATTEMPTS: usize = 5;

const MARKS: &str = "SELECT current_setting('server_version_num')::bigint / 10000,
            (SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()),
            current_setting('default_transaction_isolation'),
            current_schema(),
            coalesce(has_schema_privilege(current_schema(), 'USAGE') AND has_schema_privilege(current_schema(), 'CREATE'), false),
            current_user::text,
            current_database()::text,
            current_setting('fsync')";

/// Tables of ours that the role may not read or write, and those of others by the same names.
const FORBIDDEN: &str = "SELECT coalesce(string_agg(c.relname::text, ', ' ORDER BY c.relname), '') FROM pg_class c
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname = ANY($1)
       AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
                AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))";

const OURS: [&str; 7] = ["tasks", "log", "nodes", "writers", "forwarded_calls", "lanes", "record"];

/// Checks the database and brings it to the newest version.
pub(super) async fn prepare(session: &ClientWrapper) -> Result<(), StoreError> {
    let reading = |fault: PostgresFault| fault.while_doing("reading the settings of the database");
    let marks = columns::row(session, MARKS, &[]).await.map_err(reading)?;
    let marks = marks.ok_or_else(|| StoreError::new("the database answers without its settings"))?;
    let read = || -> Result<_, PostgresFault> {
        let names = (marks.text(1)?, marks.text(2)?, marks.text_or_none(3)?, marks.text(5)?, marks.text(6)?, marks.text(7)?);
        Ok((marks.try_get::<_, i64>(0)?, names, marks.try_get::<_, bool>(4)?))
    };
    let (version, (encoding, isolation, schema, role, database, fsync), may_create) = read().map_err(reading)?;
    if version < LOWEST_SERVER {
        return Err(StoreError::new(format!(
            "the server is PostgreSQL {version}, and the store needs {LOWEST_SERVER} or newer: upgrade the server"
        )));
    }
    if &*encoding != "UTF8" {
        return Err(StoreError::new(format!(
            "database {database} has encoding {encoding}, which cannot hold every name: create one with \
             CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )));
    }
    if &*isolation != "read committed" {
        return Err(StoreError::new(format!(
            "default_transaction_isolation is '{isolation}', under which a write could miss a commit that it waited for: run \
             ALTER DATABASE {database} SET default_transaction_isolation = 'read committed'"
        )));
    }
    if schema.is_none() {
        return Err(StoreError::new(format!(
            "role {role} has no schema in database {database}: run CREATE SCHEMA AUTHORIZATION {role}, or set search_path"
        )));
    }
    if &*fsync == "off" {
        tracing::warn!("the database runs with fsync = off: a crash of its machine loses what was confirmed");
    }
    for attempt in 1.. {
        match migrate(session, may_create, &role).await {
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
    let forbidden = columns::row(session, FORBIDDEN, &[&&OURS[..]]).await.and_then(|row| row.map(|row| row.text(0)).transpose());
    let forbidden = forbidden.map_err(reading)?.unwrap_or_default();
    if !forbidden.is_empty() {
        return Err(StoreError::new(format!(
            "role {role} may not read and write these tables: {forbidden}; run GRANT ALL ON ALL TABLES IN SCHEMA … TO {role}, or use \
             the role that owns them"
        )));
    }
    Ok(())
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
async fn migrate(session: &ClientWrapper, may_create: bool, role: &str) -> Result<(), Migration> {
    let begin = format!("{BEGIN}; SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
    session.batch_execute(&begin).await?;
    let outcome = take_steps(session, may_create, role).await;
    session.batch_execute(if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    outcome
}

async fn take_steps(session: &ClientWrapper, may_create: bool, role: &str) -> Result<(), Migration> {
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
    if version < NEWEST && !may_create {
        return refuse(format!(
            "role {role} may not create tables, and the database needs version {NEWEST} of them: run GRANT CREATE ON SCHEMA … TO {role}"
        ));
    }
    if !has_steps {
        let table = "CREATE TABLE schema_steps (
                         version bigint PRIMARY KEY, compatible_from bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())";
        session.batch_execute(table).await?;
    }
    for step in STEPS.iter().filter(|step| step.version > version) {
        session.batch_execute(step.sql).await?;
        let done = "INSERT INTO schema_steps (version, compatible_from) VALUES ($1, $2)";
        session.execute(done, &[&step.version, &step.compatible_from]).await?;
    }
    Ok(())
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
