//! Durable sends of a node on PostgreSQL, beside those of the same node on SQLite.

#[allow(dead_code, unreachable_pub, reason = "tests use the rest, from other crates")]
#[path = "../../../crates/testkit/src/postgres.rs"]
mod server;

use anyhow::Result;

use self::server::PostgresServer;
use super::gateway::program;
use super::rate::{line, rounds_of};
use super::{Match, Rate, Row};
use crate::contestant::{Contestant, StoreKind};
use crate::report::{MeasuredRow, RowTarget, Unit};
use crate::request::RequestKind;

/// The share of the rate of SQLite to reach where a batch has many callers.
const RATIO_AT_LEAST: f64 = 0.60;
const MANY_CALLERS: usize = 256;

/// Sends by the second. Both wait for the disk and keep the record. The database runs on this machine too, on any core.
pub(super) fn measure(row: &Row, connections: usize, this: &Match<'_>) -> Result<MeasuredRow> {
    let server = PostgresServer::start(true);
    let rate = Rate { kind: RequestKind::Send, store: StoreKind::Sqlite, connections, least: None, processor_at_most: None };
    let subject = Contestant::Database(program(this)?, server.make_database("sends"));
    let rounds = rounds_of(this, rate, [this.subject, &subject])?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    let target = (connections >= MANY_CALLERS).then_some(RowTarget::RatioAtLeast(RATIO_AT_LEAST));
    Ok(MeasuredRow { target, ..line })
}
