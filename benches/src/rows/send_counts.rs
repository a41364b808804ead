//! Bytes that a durable send writes to the disk, of a node with its defaults: the record is on, and retention is at work.

use anyhow::Result;

use super::identity::line as plain_line;
use super::rate::{drive, setting};
use super::{Match, Row};
use crate::contestant::StoreKind;
use crate::process;
use crate::report::{MeasuredRow, Pair, Unit};
use crate::request::RequestKind;

/// Enough that retention deletes as many tasks as are made.
const FILLING: u64 = 3_000;

/// The yardstick writes nothing. Statements, rows, index entries and pages are counted by a test of the store.
pub(super) fn measure(row: &Row, connections: usize, this: &Match<'_>) -> Result<MeasuredRow> {
    let server = this.subject.start(this.ground, setting(RequestKind::Send, StoreKind::Sqlite))?;
    let url = this.subject.url(&server, RequestKind::Send);
    let send = |requests: u64, connections: usize| {
        let (requests, connections) = (requests.to_string(), connections.to_string());
        let extent = ["--requests", &requests, "--connections", &connections, "--warm-up", "0"];
        drive(this.ground, &url, RequestKind::Send, "hello", &server, &extent)
    };
    send(FILLING, 64)?;
    let requests = this.effort.filling / 20;
    let before = process::written_to_disk(server.pid())?;
    send(requests, connections)?;
    let bytes = (process::written_to_disk(server.pid())? - before) as f64 / requests as f64;
    let note = format!("{:.1} pages of 4 KiB for each of {requests} sends, checkpoints included", bytes / 4096.0);
    Ok(plain_line(row, Unit::Bytes, Pair { yardstick: 0.0, chancery: bytes }, f64::NAN, None, note))
}
