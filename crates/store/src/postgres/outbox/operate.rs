//! What operators see and do, and what goes because of its age.

use std::collections::BTreeSet;

use chancery_core::push::{Lane, LaneFilter, LaneState, LaneSweep, OutboxLoad, StateChange, SweptLanes};
use chancery_protocol::Timestamp;

use super::{origins, register, rows};
use crate::lanes;
use crate::postgres::columns::{self, Columns as _, DatabaseSession, limit};
use crate::postgres::conditions::QueryValues;
use crate::postgres::fault::PostgresFault;
use crate::rows::lane_words::state_of_name;

/// What a filter says, to stand at the end of a query for lanes.
fn conditions(filter: &LaneFilter, after: u64, most: usize, values: &mut QueryValues) -> String {
    let mut sql = format!("WHERE l.lane > {}", values.put(after.cast_signed()));
    let mut and = |condition: String| sql.push_str(&format!(" AND {condition}"));
    if let Some(tenant) = &filter.tenant {
        and(format!("t.tenant = {}", values.put_name(tenant)));
    }
    if let Some(origin) = &filter.origin {
        and(format!("o.origin = {}", values.put_name(origin)));
    }
    if let Some(task) = &filter.task {
        and(format!("t.id = {}", values.put_name(task.as_str())));
    }
    if let Some(registration) = &filter.registration {
        and(format!("r.id = {}", values.put_name(registration)));
    }
    if let Some(lane) = filter.lane {
        and(format!("l.lane = {}", values.put(lane.cast_signed())));
    }
    if let Some(state) = &filter.state {
        and(format!("l.state = {}", values.put(state_of_name(state))));
    }
    format!("{sql} ORDER BY l.lane LIMIT {}", values.put(limit(most)))
}

async fn page<D: DatabaseSession>(
    db: &D,
    filter: &LaneFilter,
    after: u64,
    most: usize,
) -> Result<Vec<rows::LaneWithOrigin>, PostgresFault> {
    let mut values = QueryValues::default();
    let which = conditions(filter, after, most, &mut values);
    rows::many_once(db, &which, &values.borrowed()).await
}

pub(super) async fn lanes<D: DatabaseSession>(
    db: &D,
    filter: &LaneFilter,
    after: u64,
    most: usize,
) -> Result<Vec<Lane>, PostgresFault> {
    Ok(page(db, filter, after, most).await?.into_iter().map(|found| found.lane).collect())
}

/// So many lanes are looked at in one query.
const PAGE: usize = 256;

pub(super) async fn change_state<D: DatabaseSession>(
    db: &D,
    filter: &LaneFilter,
    change: StateChange,
    now: Timestamp,
    after: u64,
    most: usize,
) -> Result<Vec<(u64, LaneState)>, PostgresFault> {
    let (mut changed, mut moved) = (Vec::new(), BTreeSet::new());
    let mut after = after;
    while changed.len() < most {
        let page = page(db, filter, after, PAGE).await?;
        let Some(last) = page.last().map(|found| found.lane.number()) else { break };
        after = last;
        for rows::LaneWithOrigin { mut lane, origin } in page {
            if changed.len() < most && lanes::change(&mut lane.cursor, change, now) {
                rows::put_cursor(db, lane.number(), &lane.cursor).await?;
                moved.insert(origin);
                changed.push((lane.number(), lane.cursor.state));
            }
        }
    }
    origins::reline_all(db, &moved).await?;
    Ok(changed)
}

const DRAINED: &str = "SELECT l.lane, l.origin, t.tenant, l.task FROM lanes l JOIN tasks t ON t.num = l.task
     WHERE l.ended_at < $1 AND l.head > l.tail ORDER BY l.ended_at LIMIT $2";
const OLD_LETTERS: &str =
    "DELETE FROM dead_letters WHERE num IN (SELECT num FROM dead_letters WHERE last_at < $1 ORDER BY last_at LIMIT $2)";
/// They were given in the order of time, so no index is needed.
const OLD_RECEIPTS: &str = "DELETE FROM receipts WHERE num IN (SELECT num FROM receipts ORDER BY num LIMIT $2) AND at < $1";

pub(super) async fn sweep<D: DatabaseSession>(db: &D, plan: LaneSweep) -> Result<SweptLanes, PostgresFault> {
    let at_most = i64::try_from(plan.at_most).unwrap_or(i64::MAX);
    let drained = db.rows(DRAINED, &[&plan.drained_before.micros(), &at_most]).await?;
    for row in &drained {
        register::remove(db, row.try_get(0)?, row.try_get(1)?, &row.text(2)?).await?;
        db.execute("UPDATE tasks SET lanes = lanes - 1 WHERE num = $1", &[&row.try_get::<_, i64>(3)?]).await?;
    }
    let dead = db.execute(OLD_LETTERS, &[&plan.dead_before.micros(), &at_most]).await?;
    let receipts = db.execute(OLD_RECEIPTS, &[&plan.receipts_before.micros(), &at_most]).await?;
    Ok(SweptLanes { lanes: drained.len() as u64, dead, receipts })
}

const LOAD: &str = "SELECT (SELECT coalesce(sum(lanes), 0)::bigint FROM push_tenants), (SELECT count(*) FROM dead_letters),
            count(*), coalesce(sum(t.seq + 1 - l.head), 0)::bigint
     FROM lanes l JOIN tasks t ON t.num = l.task WHERE l.due_at IS NOT NULL";

pub(super) async fn load<D: DatabaseSession>(db: &D) -> Result<OutboxLoad, PostgresFault> {
    let row = columns::row(db, LOAD, &[]).await?.ok_or_else(|| PostgresFault::unreadable("a count without a row"))?;
    Ok(OutboxLoad { lanes: row.count(0)?, dead: row.count(1)?, pending: row.count(2)?, backlog_events: row.count(3)? })
}
