//! The lines that lanes wait in, and how many lanes there are.

use chancery_core::push::{LaneState, WebhookOrigin};
use chancery_protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use crate::sqlite::fault::SqliteFault;

/// Adds a lane to an origin, and makes the origin if it is missing. Returns the origin's number.
pub(super) fn join(connection: &Connection, origin: &WebhookOrigin) -> Result<i64, SqliteFault> {
    let sql = "INSERT INTO push_origins (tenant, origin, lanes, parked_until) VALUES (?1, ?2, 1, 0)
               ON CONFLICT (tenant, origin) DO UPDATE SET lanes = lanes + 1 RETURNING num";
    Ok(connection.prepare_cached(sql)?.query_row((&*origin.tenant, &*origin.origin), |row| row.get(0))?)
}

/// One lane less. The last takes the origin along.
pub(super) fn leave(connection: &Connection, origin: i64) -> Result<(), SqliteFault> {
    connection.prepare_cached("UPDATE push_origins SET lanes = lanes - 1 WHERE num = ?1")?.execute([origin])?;
    connection.prepare_cached("DELETE FROM push_origins WHERE num = ?1 AND lanes = 0")?.execute([origin])?;
    reline(connection, origin)
}

/// Sets when an origin is due. One index seek finds its first lane, regardless of how many lanes wait.
pub(super) const RELINE: &str = "UPDATE push_origins
     SET due_at = max((SELECT min(due_at) FROM lanes WHERE origin = ?1 AND due_at IS NOT NULL), parked_until) WHERE num = ?1";

/// After lanes of an origin have moved.
pub(super) fn reline(connection: &Connection, origin: i64) -> Result<(), SqliteFault> {
    connection.prepare_cached(RELINE)?.execute([origin])?;
    Ok(())
}

pub(super) fn park(connection: &Connection, origin: &WebhookOrigin, until: Timestamp) -> Result<(), SqliteFault> {
    let sql = "UPDATE push_origins SET parked_until = ?3 WHERE tenant = ?1 AND origin = ?2 RETURNING num";
    let parked = connection
        .prepare_cached(sql)?
        .query_row((&*origin.tenant, &*origin.origin, until.micros()), |row| row.get::<_, i64>(0))
        .optional()?;
    parked.map_or(Ok(()), |num| reline(connection, num))
}

pub(super) const DUE: &str =
    "SELECT num, tenant, origin, due_at FROM push_origins WHERE due_at <= ?1 ORDER BY due_at, tenant, origin";

/// Visits the origins that are due by then, the longest waiting first, until the callback stops it.
pub(super) fn due(
    connection: &Connection,
    by: Timestamp,
    mut visit: impl FnMut(i64, WebhookOrigin, Timestamp) -> Result<bool, SqliteFault>,
) -> Result<(), SqliteFault> {
    let mut statement = connection.prepare_cached(DUE)?;
    let mut rows = statement.query([by.micros()])?;
    while let Some(row) = rows.next()? {
        let text = |at: usize| row.get::<_, String>(at);
        let origin = WebhookOrigin { tenant: text(1)?.into(), origin: text(2)?.into() };
        if !visit(row.get(0)?, origin, Timestamp::from_micros(row.get(3)?))? {
            break;
        }
    }
    Ok(())
}

/// One lane of a tenant less.
pub(in crate::sqlite) fn uncount(connection: &Connection, tenant: &str) -> Result<(), SqliteFault> {
    connection.prepare_cached("UPDATE push_tenants SET lanes = lanes - 1 WHERE tenant = ?1")?.execute([tenant])?;
    connection.prepare_cached("DELETE FROM push_tenants WHERE tenant = ?1 AND lanes = 0")?.execute([tenant])?;
    Ok(())
}

/// Whether deliveries may still be made by lanes in this state.
pub(super) const GONE: i64 = crate::rows::lane_words::state_number(LaneState::Gone);
