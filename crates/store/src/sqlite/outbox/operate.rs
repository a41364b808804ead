//! What operators see and do, and what goes because of its age.

use std::sync::Arc;

use chancery_core::push::{Lane, LaneFilter, LaneState, LaneSweep, OutboxLoad, StateChange, SweptLanes};
use chancery_protocol::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::conditions::WhereClause;
use super::{origins, register, rows};
use crate::lanes;
use crate::rows::lane_words::state_of_name;
use crate::sqlite::fault::SqliteFault;

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// What a filter says, to stand at the end of a query for lanes.
fn conditions(filter: &LaneFilter, after: u64, most: usize) -> (String, Vec<Value>) {
    let mut all = WhereClause::of("WHERE l.lane > ?", after.cast_signed());
    let text = |text: &Arc<str>| text.as_ref().to_owned();
    all.and("t.tenant = ?", filter.tenant.as_ref().map(text));
    all.and("o.origin = ?", filter.origin.as_ref().map(text));
    all.and("t.id = ?", filter.task.as_ref().map(|task| task.as_str().to_owned()));
    all.and("r.id = ?", filter.registration.as_ref().map(text));
    all.and("l.lane = ?", filter.lane.map(u64::cast_signed));
    all.and("l.state = ?", filter.state.as_ref().map(|state| state_of_name(state)));
    let (mut sql, mut values) = all.into_parts();
    sql.push_str(" ORDER BY l.lane LIMIT ?");
    values.push(Value::Integer(limit(most)));
    (sql, values)
}

pub(super) fn lanes(connection: &Connection, filter: &LaneFilter, after: u64, most: usize) -> Result<Vec<Lane>, SqliteFault> {
    let (which, values) = conditions(filter, after, most);
    Ok(rows::many(connection, &which, params_from_iter(values))?.into_iter().map(|found| found.lane).collect())
}

pub(super) fn change_state(
    connection: &Connection,
    filter: &LaneFilter,
    change: StateChange,
    now: Timestamp,
    after: u64,
    most: usize,
) -> Result<Vec<(u64, LaneState)>, SqliteFault> {
    let mut changed = Vec::new();
    let mut after = after;
    while changed.len() < most {
        let (which, values) = conditions(filter, after, PAGE);
        let page = rows::many(connection, &which, params_from_iter(values))?;
        let Some(last) = page.last().map(|found| found.lane.number()) else { break };
        after = last;
        for rows::LaneRow { mut lane, origin } in page {
            if changed.len() < most && lanes::change(&mut lane.cursor, change, now) {
                rows::put_cursor(connection, lane.number(), &lane.cursor)?;
                origins::reline(connection, origin)?;
                changed.push((lane.number(), lane.cursor.state));
            }
        }
    }
    Ok(changed)
}

const PAGE: usize = 256;

pub(super) const DRAINED: &str = "SELECT l.lane, l.origin, t.tenant, l.task FROM lanes l JOIN tasks t ON t.num = l.task
     WHERE l.ended_at < ?1 AND l.head > l.tail ORDER BY l.ended_at LIMIT ?2";
pub(super) const OLD_LETTERS: &str =
    "DELETE FROM dead_letters WHERE num IN (SELECT num FROM dead_letters WHERE last_at < ?1 ORDER BY last_at LIMIT ?2)";
/// They were given in the order of time, so no index is needed.
pub(super) const OLD_RECEIPTS: &str =
    "DELETE FROM receipts WHERE num IN (SELECT num FROM receipts ORDER BY num LIMIT ?2) AND at < ?1";

pub(super) fn sweep(connection: &Connection, plan: LaneSweep) -> Result<SweptLanes, SqliteFault> {
    let at_most = i64::try_from(plan.at_most).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(DRAINED)?;
    let drained = statement.query_map((plan.drained_before.micros(), at_most), |row| {
        Ok((row.get::<_, u64>(0)?, row.get(1)?, row.get::<_, String>(2)?, row.get::<_, i64>(3)?))
    })?;
    let drained = drained.collect::<Result<Vec<_>, _>>()?;
    for (lane, origin, tenant, task) in &drained {
        register::remove(connection, *lane, *origin, tenant)?;
        connection.prepare_cached("UPDATE tasks SET lanes = lanes - 1 WHERE num = ?1")?.execute([task])?;
    }
    let dead = connection.prepare_cached(OLD_LETTERS)?.execute((plan.dead_before.micros(), at_most))?;
    let receipts = connection.prepare_cached(OLD_RECEIPTS)?.execute((plan.receipts_before.micros(), at_most))?;
    Ok(SweptLanes { lanes: drained.len() as u64, dead: dead as u64, receipts: receipts as u64 })
}

pub(super) fn load(connection: &Connection) -> Result<OutboxLoad, SqliteFault> {
    let count = |sql: &str| connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, u64>(0)).map_err(SqliteFault::from);
    let mut due = connection.prepare_cached(
        "SELECT count(*), ifnull(sum(t.seq + 1 - l.head), 0) FROM lanes l JOIN tasks t ON t.num = l.task WHERE l.due_at IS NOT NULL",
    )?;
    let (pending, backlog_events) = due.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(OutboxLoad {
        lanes: count("SELECT ifnull(sum(lanes), 0) FROM push_tenants")?,
        pending,
        backlog_events,
        dead: count("SELECT count(*) FROM dead_letters")?,
    })
}
