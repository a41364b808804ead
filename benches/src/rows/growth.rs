//! Memory kept per request once retention is reached: resident memory after N requests and after three times N.

use anyhow::Result;

use super::{Match, Row};
use crate::contestant::{Contestant, Setting, StoreKind};
use crate::report::{MeasuredRow, Pair, RowTarget, Unit};
use crate::request::RequestKind;

const RETAINED: u32 = 1_000;
/// Less than one id: anything truly kept for each request is more than this.
const AT_MOST_BYTES: f64 = 32.0;

pub(super) fn measure(row: &Row, store: StoreKind, this: &Match<'_>) -> Result<MeasuredRow> {
    let yardstick = kept(this, this.yardstick, store)?;
    let subject = kept(this, this.subject, store)?;
    Ok(MeasuredRow {
        row: row.name.to_owned(),
        title: row.title.to_owned(),
        unit: Unit::Bytes,
        value: Pair { yardstick: yardstick.bytes_each, chancery: subject.bytes_each },
        ratio: f64::NAN,
        spread: (f64::NAN, f64::NAN),
        target: Some(RowTarget::AtMost(AT_MOST_BYTES)),
        p50_us: None,
        p99_us: None,
        p99_ratio: None,
        p99_target: None,
        processor_target: None,
        processor_us: None,
        note: Some(format!(
            "resident after {} requests: yardstick {:.1} MB, chancery {:.1} MB",
            this.effort.filling * 3,
            yardstick.resident / 1e6,
            subject.resident / 1e6
        )),
    })
}

struct GrowthFigures {
    bytes_each: f64,
    resident: f64,
}

fn kept(this: &Match<'_>, side: &Contestant, store: StoreKind) -> Result<GrowthFigures> {
    let setting = Setting { store, agent: "echo", retained: RETAINED };
    let server = side.start(this.ground, setting)?;
    let url = side.url(&server, RequestKind::Send);
    let after = |requests: u64| {
        let requests = requests.to_string();
        let extent = ["--requests", &requests, "--connections", "64", "--warm-up", "0"];
        super::rate::drive(this.ground, &url, RequestKind::Send, "hello", &server, &extent)?;
        server.settled_memory()
    };
    let filled = after(this.effort.filling)? as f64;
    let more = this.effort.filling * 2;
    let resident = after(more)? as f64;
    Ok(GrowthFigures { bytes_each: (resident - filled) / more as f64, resident })
}
