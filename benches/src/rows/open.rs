//! Memory of a gateway with thousands of proxied streams open: for each of them, while they stay open, and after they closed.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::gateway::behind;
use super::idle::StreamHolder;
use super::rate::drive;
use super::{Match, Row};
use crate::contestant::{Contestant, Setting, StoreKind};
use crate::report::{MeasuredRow, Pair, RowTarget, Unit};
use crate::request::RequestKind;

/// Two sockets each: one to the caller, one to the agent.
const STREAMS: usize = 4_000;
const AT_MOST_BYTES: f64 = 64_000.0;
const WATCHED: Duration = Duration::from_secs(5);
/// Connections to the agent are kept for the next call for half a minute, and memory beside them is not free before they go.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(60);
/// What may be kept of a closed stream. A task that stayed would be more.
const LEFT_AT_MOST: f64 = 0.25;
/// Memory may move so far by itself while nothing happens.
const FLAT_WITHIN: f64 = 0.02;

struct OpenTaskFigures {
    bytes_each: f64,
    /// Resident before, when all are open, a while later, and after all have closed.
    resident: [f64; 4],
}

pub(super) fn measure(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let behind = behind(this, RequestKind::Stream)?;
    let proxy = held(this, &behind.proxy)?;
    let gateway = held(this, &behind.gateway)?;
    let [before, open, later, closed] = gateway.resident;
    ensure!(later - open <= FLAT_WITHIN * open, "memory grows while the streams are open: {open} bytes, then {later}");
    let left = (closed - before) / (open - before);
    ensure!(left <= LEFT_AT_MOST, "{:.0} % of {open} bytes stays {GIVEN_BACK_WITHIN:?} after they closed", left * 100.0);
    let ratio = gateway.bytes_each / proxy.bytes_each;
    let mega = |bytes: f64| bytes / 1e6;
    Ok(MeasuredRow {
        row: row.name.to_owned(),
        title: format!("{} ({STREAMS} open)", row.title),
        unit: Unit::Bytes,
        value: Pair { yardstick: proxy.bytes_each, chancery: gateway.bytes_each },
        ratio,
        spread: (ratio, ratio),
        target: Some(RowTarget::AtMost(AT_MOST_BYTES)),
        p50_us: None,
        p99_us: None,
        p99_ratio: None,
        p99_target: None,
        processor_target: None,
        processor_us: None,
        note: Some(format!(
            "resident: {:.1} MB before, {:.1} MB open, {:.1} MB {} s later, {:.1} MB after they closed",
            mega(before),
            mega(open),
            mega(later),
            WATCHED.as_secs(),
            mega(closed)
        )),
    })
}

fn held(this: &Match<'_>, side: &Contestant) -> Result<OpenTaskFigures> {
    let setting = Setting { store: StoreKind::Memory, agent: "conformance", retained: 100 };
    let server = side.start(this.ground, setting)?;
    let url = side.url(&server, RequestKind::Send);
    // What is made once on first use belongs to no stream.
    let extent = ["--requests", "5000", "--connections", "64", "--warm-up", "0"];
    drive(this.ground, &url, RequestKind::Send, "complete", &server, &extent)?;
    let before = server.settled_memory()? as f64;
    let holder = StreamHolder::start(this, &url, STREAMS, &["--text", "sleep 3600000"])?;
    let open = server.settled_memory()? as f64;
    sleep(WATCHED);
    let later = server.settled_memory()? as f64;
    holder.end()?;
    let closed = server.memory_below(before + LEFT_AT_MOST * (open - before), GIVEN_BACK_WITHIN)?;
    Ok(OpenTaskFigures { bytes_each: (open - before) / STREAMS as f64, resident: [before, open, later, closed] })
}
