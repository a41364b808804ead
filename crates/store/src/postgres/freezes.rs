//! What is frozen, by whom and why.

use chancery_core::{Freeze, FreezeScope};

use super::columns::{self, Columns as _, DatabaseSession, sought};
use super::fault::PostgresFault;
use crate::rows::freezes::{named, scope_named};

pub(super) async fn list<D: DatabaseSession>(db: &D) -> Result<Vec<Freeze>, PostgresFault> {
    let found = db.rows("SELECT scope, name, by, at, why FROM freezes", &[]).await?;
    let mut found = columns::each(found, |row| {
        let scope = scope_named(&row.text(0)?, row.text(1)?)?;
        Ok(Freeze { scope, by: row.text(2)?, at: row.time(3)?, why: row.free_text_or_none(4)? })
    })?;
    found.sort_unstable_by(|left, right| left.scope.cmp(&right.scope));
    Ok(found)
}

pub(super) async fn keep<D: DatabaseSession>(db: &D, freeze: &Freeze) -> Result<(), PostgresFault> {
    let (scope, name) = named(&freeze.scope);
    let sql = "INSERT INTO freezes (scope, name, by, at, why) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (scope, name) DO UPDATE SET by = excluded.by, at = excluded.at, why = excluded.why";
    let why = freeze.why.as_deref().map(str::as_bytes);
    db.execute(sql, &[&scope, &name, &&*freeze.by, &freeze.at.micros(), &why]).await?;
    Ok(())
}

/// Answers whether it was frozen.
pub(super) async fn remove<D: DatabaseSession>(db: &D, scope: &FreezeScope) -> Result<bool, PostgresFault> {
    let (scope, name) = named(scope);
    Ok(db.execute("DELETE FROM freezes WHERE scope = $1 AND name = $2", &[&scope, &sought(name)]).await? > 0)
}
