//! What is frozen, by whom and why.

use std::sync::Arc;

use chancery_core::{Freeze, FreezeScope};
use chancery_protocol::Timestamp;
use rusqlite::{Connection, Row};

use super::fault::SqliteFault;
use crate::rows::freezes::{named, scope_named};

pub(super) fn list(connection: &Connection) -> Result<Vec<Freeze>, SqliteFault> {
    let mut statement = connection.prepare_cached("SELECT scope, name, by, at, why FROM freezes")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(freeze(row)?);
    }
    found.sort_unstable_by(|left, right| left.scope.cmp(&right.scope));
    Ok(found)
}

pub(super) fn keep(connection: &Connection, freeze: &Freeze) -> Result<(), SqliteFault> {
    let (scope, name) = named(&freeze.scope);
    connection
        .prepare_cached(
            "INSERT INTO freezes (scope, name, by, at, why) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (scope, name) DO UPDATE SET by = ?3, at = ?4, why = ?5",
        )?
        .execute((scope, name, &*freeze.by, freeze.at.micros(), freeze.why.as_deref()))?;
    Ok(())
}

/// Answers whether it was frozen.
pub(super) fn remove(connection: &Connection, scope: &FreezeScope) -> Result<bool, SqliteFault> {
    let removed = connection.prepare_cached("DELETE FROM freezes WHERE scope = ?1 AND name = ?2")?.execute(named(scope))?;
    Ok(removed > 0)
}

fn freeze(row: &Row<'_>) -> Result<Freeze, SqliteFault> {
    let text = |at: usize| row.get::<_, String>(at).map(Arc::<str>::from);
    let scope = scope_named(&text(0)?, text(1)?)?;
    let why = row.get::<_, Option<String>>(4)?.map(Arc::from);
    Ok(Freeze { scope, by: text(2)?, at: Timestamp::from_micros(row.get(3)?), why })
}
