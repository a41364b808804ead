//! Memory of a server with ten thousand idle subscriptions, for each of them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::{Match, Row};
use crate::contestant::{Contestant, Setting, StoreKind};
use crate::hold::OPEN;
use crate::process;
use crate::report::{MeasuredRow, Pair, RowTarget, Unit};
use crate::request::RequestKind;

const AT_MOST_BYTES: f64 = 26_000.0;
const WATCHED: Duration = Duration::from_secs(3);

/// What idle subscriptions cost one server.
struct Cost {
    bytes_each: f64,
    /// Share of a core while nothing happens.
    busy: f64,
}

pub(super) fn measure(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let yardstick = cost(this, this.yardstick)?;
    let subject = cost(this, this.subject)?;
    let ratio = subject.bytes_each / yardstick.bytes_each;
    Ok(MeasuredRow {
        row: row.name.to_owned(),
        title: format!("{} ({} open)", row.title, this.effort.subscriptions),
        unit: Unit::Bytes,
        value: Pair { yardstick: yardstick.bytes_each, chancery: subject.bytes_each },
        ratio,
        spread: (ratio, ratio),
        target: Some(RowTarget::AtMost(AT_MOST_BYTES)),
        p50_us: None,
        p99_us: None,
        p99_ratio: None,
        p99_target: None,
        processor_target: None,
        processor_us: None,
        note: Some(format!("idle processor: yardstick {:.1} %, chancery {:.1} %", yardstick.busy * 100.0, subject.busy * 100.0)),
    })
}

fn cost(this: &Match<'_>, side: &Contestant) -> Result<Cost> {
    let setting = Setting { store: StoreKind::Memory, agent: "conformance", retained: 10_000 };
    let server = side.start(this.ground, setting)?;
    // What is made once on first use belongs to no subscription.
    let url = side.url(&server, RequestKind::Send);
    let extent = ["--requests", "5000", "--connections", "64", "--warm-up", "0"];
    super::rate::drive(this.ground, &url, RequestKind::Send, "complete", &server, &extent)?;
    let before = server.settled_memory()?;

    let count = this.effort.subscriptions;
    let holder = StreamHolder::start(this, &side.idle_url(&server), count, &[])?;
    let after = server.settled_memory()?;
    let cpu = process::cpu_time(server.pid())?;
    sleep(WATCHED);
    let spent = process::cpu_time(server.pid())? - cpu;
    holder.end()?;
    Ok(Cost { bytes_each: after.saturating_sub(before) as f64 / count as f64, busy: spent.as_secs_f64() / WATCHED.as_secs_f64() })
}

/// The process that holds streams open.
pub(super) struct StreamHolder(Child);

impl StreamHolder {
    /// Comes back when all are open.
    pub(super) fn start(this: &Match<'_>, url: &str, count: usize, more: &[&str]) -> Result<Self> {
        let mut holder = this
            .ground
            .on_load_core()
            .args(["hold", "--url", url, "--subscriptions", &count.to_string()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        let output = holder.stdout.take().context("no output")?;
        BufReader::new(output).read_line(&mut said)?;
        if said.trim() != format!("{OPEN} {count}") {
            let mut reason = String::new();
            if let Some(mut errors) = holder.stderr.take() {
                errors.read_to_string(&mut reason)?;
            }
            holder.wait()?;
            bail!("the streams did not open: {}", reason.trim());
        }
        Ok(Self(holder))
    }

    /// Its input ends, and with it the holder and all it holds.
    pub(super) fn end(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        ensure!(self.0.wait()?.success(), "the streams did not close");
        Ok(())
    }
}
