//! What a database must be for the store: the version of its server, its encoding, its settings, and the rights of the role.

use std::sync::Arc;

use chancery_core::StoreError;
use deadpool_postgres::ClientWrapper;

use super::columns::{self, Columns as _};
use super::fault::PostgresFault;

/// The lowest server version with all that the store uses.
const LOWEST_SERVER: i64 = 14;

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

const OURS: [&str; 8] = ["schema_steps", "tasks", "log", "nodes", "writers", "forwarded_calls", "lanes", "record"];

/// What the database says of itself and of the role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DatabaseMarks {
    /// The major version of the server.
    version: i64,
    encoding: Arc<str>,
    isolation: Arc<str>,
    schema: Option<Arc<str>>,
    /// Whether the role may make tables in the schema.
    pub(super) may_create: bool,
    pub(super) role: Arc<str>,
    database: Arc<str>,
    fsync: Arc<str>,
    /// Tables that are there and closed to the role, separated by commas.
    forbidden: Arc<str>,
}

/// Reads what the database is, and refuses one in which the store could not work. A warning is logged if it may lose commits.
pub(super) async fn check(session: &ClientWrapper) -> Result<DatabaseMarks, StoreError> {
    let marks = read(session).await.map_err(|fault| fault.while_doing("reading the settings of the database"))?;
    if let Some(refusal) = marks.refusal() {
        return Err(StoreError::new(refusal));
    }
    if &*marks.fsync == "off" {
        tracing::warn!("the database runs with fsync = off: a crash of its machine loses what was confirmed");
    }
    Ok(marks)
}

async fn read(session: &ClientWrapper) -> Result<DatabaseMarks, PostgresFault> {
    let row = columns::row(session, MARKS, &[]).await?;
    let row = row.ok_or_else(|| PostgresFault::unreadable("the database answers without its settings"))?;
    let forbidden = columns::row(session, FORBIDDEN, &[&&OURS[..]]).await?;
    let forbidden = forbidden.map(|row| row.text(0)).transpose()?;
    Ok(DatabaseMarks {
        version: row.try_get(0)?,
        encoding: row.text(1)?,
        isolation: row.text(2)?,
        schema: row.text_or_none(3)?,
        may_create: row.try_get(4)?,
        role: row.text(5)?,
        database: row.text(6)?,
        fsync: row.text(7)?,
        forbidden: forbidden.unwrap_or_default(),
    })
}

impl DatabaseMarks {
    /// Why the store cannot work in the database, and what to do.
    fn refusal(&self) -> Option<String> {
        let Self { version, encoding, isolation, role, database, forbidden, .. } = self;
        if *version < LOWEST_SERVER {
            return Some(format!(
                "the server is PostgreSQL {version}, and the store needs {LOWEST_SERVER} or newer: upgrade the server"
            ));
        }
        if &**encoding != "UTF8" {
            return Some(format!(
                "database {database} has encoding {encoding}, which cannot hold every name: create one with \
                 CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
            ));
        }
        if &**isolation != "read committed" {
            return Some(format!(
                "default_transaction_isolation is '{isolation}', under which a write could miss a commit that it waited for: run \
                 ALTER DATABASE {database} SET default_transaction_isolation = 'read committed'"
            ));
        }
        if self.schema.is_none() {
            return Some(format!(
                "role {role} has no schema in database {database}: run CREATE SCHEMA AUTHORIZATION {role}, or set search_path"
            ));
        }
        (!forbidden.is_empty()).then(|| {
            format!(
                "role {role} may not read and write these tables: {forbidden}; run GRANT ALL ON ALL TABLES IN SCHEMA … TO {role}, \
                 or use the role that owns them"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks() -> DatabaseMarks {
        DatabaseMarks {
            version: LOWEST_SERVER,
            encoding: "UTF8".into(),
            isolation: "read committed".into(),
            schema: Some("public".into()),
            may_create: true,
            role: "chancery".into(),
            database: "tasks".into(),
            fsync: "on".into(),
            forbidden: "".into(),
        }
    }

    #[test]
    fn each_thing_that_a_database_lacks_is_named_with_what_to_do() {
        assert_eq!(marks().refusal(), None);
        for (lacking, what, remedy) in [
            (DatabaseMarks { version: 13, ..marks() }, "the server is PostgreSQL 13", "upgrade the server"),
            (DatabaseMarks { encoding: "LATIN1".into(), ..marks() }, "has encoding LATIN1", "ENCODING 'UTF8'"),
            (DatabaseMarks { isolation: "serializable".into(), ..marks() }, "is 'serializable'", "ALTER DATABASE tasks"),
            (
                DatabaseMarks { schema: None, ..marks() },
                "has no schema in database tasks",
                "CREATE SCHEMA AUTHORIZATION chancery",
            ),
            (DatabaseMarks { forbidden: "log, tasks".into(), ..marks() }, "these tables: log, tasks", "GRANT ALL ON ALL TABLES"),
        ] {
            let refusal = lacking.refusal().unwrap();
            assert!(refusal.contains(what) && refusal.contains(remedy), "{refusal}");
        }
    }
}
