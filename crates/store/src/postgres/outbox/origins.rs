//! The lines that lanes wait in, and how many lanes there are.

use std::collections::BTreeSet;

use chancery_core::push::WebhookOrigin;
use chancery_protocol::Timestamp;

use crate::postgres::columns::{self, Columns as _, DatabaseSession, sought};
use crate::postgres::fault::PostgresFault;

/// Adds a lane to an origin, and makes the origin if it is missing. Returns the origin's number.
pub(super) async fn join<D: DatabaseSession>(db: &D, origin: &WebhookOrigin) -> Result<i64, PostgresFault> {
    let sql = "INSERT INTO push_origins (tenant, origin, lanes, parked_until) VALUES ($1, $2, 1, 0)
               ON CONFLICT (tenant, origin) DO UPDATE SET lanes = push_origins.lanes + 1 RETURNING num";
    columns::number(db, sql, &[&&*origin.tenant, &&*origin.origin]).await
}

/// One lane less. The last takes the origin along.
pub(super) async fn leave<D: DatabaseSession>(db: &D, origin: i64) -> Result<(), PostgresFault> {
    db.execute("UPDATE push_origins SET lanes = lanes - 1 WHERE num = $1", &[&origin]).await?;
    db.execute("DELETE FROM push_origins WHERE num = $1 AND lanes = 0", &[&origin]).await?;
    reline(db, origin).await
}

/// Sets when origins are due. One index seek finds the first lane of each, regardless of how many lanes wait.
const RELINE: &str = "UPDATE push_origins SET due_at = CASE WHEN first IS NOT NULL THEN greatest(first, parked_until) END
     FROM (SELECT num AS moved, (SELECT min(due_at) FROM lanes WHERE lanes.origin = o.num AND due_at IS NOT NULL) AS first
           FROM push_origins o WHERE o.num = ANY($1)) lines
     WHERE push_origins.num = lines.moved";

/// After lanes of an origin have moved.
pub(super) async fn reline<D: DatabaseSession>(db: &D, origin: i64) -> Result<(), PostgresFault> {
    reline_all(db, &BTreeSet::from([origin])).await
}

/// The same for several.
pub(super) async fn reline_all<D: DatabaseSession>(db: &D, origins: &BTreeSet<i64>) -> Result<(), PostgresFault> {
    if !origins.is_empty() {
        let origins: Vec<i64> = origins.iter().copied().collect();
        db.execute(RELINE, &[&origins]).await?;
    }
    Ok(())
}

pub(super) async fn park<D: DatabaseSession>(db: &D, origin: &WebhookOrigin, until: Timestamp) -> Result<(), PostgresFault> {
    let sql = "UPDATE push_origins SET parked_until = $3 WHERE tenant = $1 AND origin = $2 RETURNING num";
    let parked = columns::row(db, sql, &[&sought(&origin.tenant), &sought(&origin.origin), &until.micros()]).await?;
    match parked {
        Some(row) => reline(db, row.try_get(0)?).await,
        None => Ok(()),
    }
}

/// An origin that is due.
pub(super) struct DueOrigin {
    pub(super) num: i64,
    pub(super) due_at: Timestamp,
}

/// At most so many origins that are due by then and not excepted, the longest waiting first.
pub(super) async fn due<D: DatabaseSession>(
    db: &D,
    by: Timestamp,
    except: &[WebhookOrigin],
    most: i64,
) -> Result<Vec<DueOrigin>, PostgresFault> {
    let sql = "SELECT num, due_at FROM push_origins
               WHERE due_at <= $1 AND NOT EXISTS (
                   SELECT 1 FROM unnest($2::text[], $3::text[]) AS excepted (of_tenant, named)
                   WHERE of_tenant = tenant AND named = origin)
               ORDER BY due_at, tenant, origin LIMIT $4";
    let tenants: Vec<String> = except.iter().map(|origin| sought(&origin.tenant).into_owned()).collect();
    let names: Vec<String> = except.iter().map(|origin| sought(&origin.origin).into_owned()).collect();
    columns::each(db.rows(sql, &[&by.micros(), &tenants, &names, &most]).await?, |row| {
        Ok(DueOrigin { num: row.try_get(0)?, due_at: row.time(1)? })
    })
}

/// One lane of a tenant less.
pub(super) async fn uncount<D: DatabaseSession>(db: &D, tenant: &str) -> Result<(), PostgresFault> {
    db.execute("UPDATE push_tenants SET lanes = lanes - 1 WHERE tenant = $1", &[&tenant]).await?;
    db.execute("DELETE FROM push_tenants WHERE tenant = $1 AND lanes = 0", &[&tenant]).await?;
    Ok(())
}
