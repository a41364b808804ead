//! Requests by the second: both servers up, short rounds in turn, and the median of the rounds' ratios.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use super::{Match, Rate, Row};
use crate::contestant::{Contestant, Setting, Sizes, StoreKind};
use crate::figures::Figures;
use crate::ground::Ground;
use crate::report::{MeasuredRow, Pair, RowTarget, Unit, median};
use crate::request::RequestKind;
use crate::server::Server;

/// Tasks kept while the rate is measured, as in the rows on memory. Keeping more costs a send cache misses: with 10,000
/// kept, about 2 µs.
const RETAINED: u32 = 1_000;
/// Events of every stream, on both sides.
const EVENTS: usize = 10;
/// How much longer than the yardstick's the slowest hundredth may take.
const P99_AT_MOST: f64 = 2.0;
/// How much longer a call through a mounted router may take.
const MOUNTED_AT_MOST: f64 = 1.15;

/// What the subject answers with, asked once before anything is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe {
    pub(crate) sizes: Sizes,
    /// What to ask the conformance agent for so that the whole stream has ten events.
    chunks: usize,
}

/// Asks the subject for one answer of each kind.
pub(crate) fn probe(ground: &Ground, subject: &Contestant) -> Result<Probe> {
    let echo = subject.start(ground, setting(RequestKind::Send, StoreKind::Memory))?;
    let once = |kind, server: &Server, text: &str| {
        let extent = ["--requests", "1", "--warm-up", "0", "--connections", "1"];
        drive(ground, &subject.url(server, kind), kind, text, server, &extent)
    };
    let answer = once(RequestKind::Send, &echo, "hello")?.body_bytes;
    let card = once(RequestKind::Card, &echo, "")?.body_bytes;
    drop(echo);
    let conformance = subject.start(ground, setting(RequestKind::Stream, StoreKind::Memory))?;
    let told = once(RequestKind::Stream, &conformance, &format!("stream {EVENTS}"))?;
    // The task itself and its states are events too.
    let around = told.events.saturating_sub(EVENTS);
    let chunks = EVENTS.checked_sub(around).context("too many events")?;
    let stream = once(RequestKind::Stream, &conformance, &format!("stream {chunks}"))?;
    ensure!(stream.events == EVENTS, "a stream of {} events", stream.events);
    Ok(Probe { sizes: Sizes { answer, card, stream: stream.body_bytes }, chunks })
}

/// A row of requests by the second.
pub(super) fn measure(row: &Row, rate: Rate, this: &Match<'_>) -> Result<MeasuredRow> {
    let rounds = rounds(this, rate, this.subject)?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    // With few callers the slowest hundredth of durable answers is the disk's, which the yardstick does not wait for.
    let is_of_disk = rate.store == StoreKind::Sqlite && rate.connections < 256;
    let p99_target = rate.least.filter(|_| !is_of_disk).map(|_| P99_AT_MOST);
    let target = rate.least.map(RowTarget::RatioAtLeast);
    Ok(MeasuredRow { target, p99_target, processor_target: rate.processor_at_most, ..line })
}

/// The median time of one caller, behind Chancery's router and behind a bare handler of the same agent.
pub(super) fn measure_mounted(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let rate = Rate { kind: RequestKind::Send, store: StoreKind::Memory, connections: 1, least: None, processor_at_most: None };
    let rounds = rounds(this, rate, &Contestant::Mounted)?;
    let line = line(row, &rounds, Unit::Microseconds, |figures| figures.p50_us);
    Ok(MeasuredRow { target: Some(RowTarget::RatioAtMost(MOUNTED_AT_MOST)), ..line })
}

/// Figures of both sides, round by round.
fn rounds(this: &Match<'_>, rate: Rate, subject: &Contestant) -> Result<Vec<[Figures; 2]>> {
    rounds_of(this, rate, [this.yardstick, subject])
}

pub(super) fn rounds_of(this: &Match<'_>, rate: Rate, sides: [&Contestant; 2]) -> Result<Vec<[Figures; 2]>> {
    let setting = setting(rate.kind, rate.store);
    let servers = [sides[0].start(this.ground, setting)?, sides[1].start(this.ground, setting)?];
    let text = match rate.kind {
        RequestKind::Stream => format!("stream {}", this.probe.chunks),
        RequestKind::Send | RequestKind::Card | RequestKind::Task | RequestKind::FollowUp | RequestKind::Traced => {
            rate.kind.usual_text().to_owned()
        }
    };
    let connections = rate.connections.to_string();
    let (seconds, warm_up) = (this.effort.seconds.to_string(), this.effort.warm_up.to_string());
    let mut extent = vec!["--connections", &connections, "--seconds", &seconds, "--warm-up", &warm_up];
    let events = EVENTS.to_string();
    if rate.kind == RequestKind::Stream {
        extent.extend(["--events", &events]);
    }
    let one = |side: usize| {
        let url = sides[side].url(&servers[side], rate.kind);
        drive(this.ground, &url, rate.kind, &text, &servers[side], &extent)
    };
    in_turn(this.effort.rounds, one)
}

/// Measures side 0 and side 1 as often as there are rounds.
pub(super) fn in_turn(rounds: usize, one: impl Fn(usize) -> Result<Figures>) -> Result<Vec<[Figures; 2]>> {
    let mut measured = Vec::new();
    for round in 0..rounds {
        // Who goes first changes from round to round, so that a drift of the machine favours nobody.
        measured.push(if round % 2 == 0 {
            let yardstick = one(0)?;
            [yardstick, one(1)?]
        } else {
            let subject = one(1)?;
            [one(0)?, subject]
        });
    }
    Ok(measured)
}

/// What the rounds come to: the ratio is the median of the rounds' own, since neighbours in time suffer alike.
pub(super) fn line(row: &Row, rounds: &[[Figures; 2]], unit: Unit, value: fn(&Figures) -> f64) -> MeasuredRow {
    let both = |figure: fn(&Figures) -> f64| Pair {
        yardstick: median(rounds.iter().map(|[yardstick, _]| figure(yardstick))),
        chancery: median(rounds.iter().map(|[_, subject]| figure(subject))),
    };
    let ratios = |figure: fn(&Figures) -> f64| rounds.iter().map(move |[yardstick, subject]| figure(subject) / figure(yardstick));
    MeasuredRow {
        row: row.name.to_owned(),
        title: row.title.to_owned(),
        unit,
        value: both(value),
        ratio: median(ratios(value)),
        spread: (ratios(value).fold(f64::INFINITY, f64::min), ratios(value).fold(0.0, f64::max)),
        target: None,
        p50_us: Some(both(|figures| figures.p50_us)),
        p99_us: Some(both(|figures| figures.p99_us)),
        p99_ratio: Some(median(ratios(|figures| figures.p99_us))),
        p99_target: None,
        processor_target: None,
        processor_us: Some(both(|figures| figures.server_us.unwrap_or(f64::NAN))),
        note: doubt(rounds),
    }
}

/// Why the figures of a row may not be those of the servers.
fn doubt(rounds: &[[Figures; 2]]) -> Option<String> {
    let median_of = |figure: fn(&Figures) -> f64| median(rounds.iter().map(|[yardstick, _]| figure(yardstick)));
    let load = median_of(|yardstick| yardstick.client_busy);
    let server = median_of(|yardstick| yardstick.server_busy.unwrap_or(f64::NAN));
    // Without waits of its own the yardstick fills its core, or the load fills the other: if neither, others took both.
    if load > 0.95 {
        Some("the load was the limit".to_owned())
    } else if load + server < 0.65 {
        let percent = server * 100.0;
        Some(format!("the machine was busy, the yardstick got {percent:.0} % of its core: compare the cpu column"))
    } else {
        None
    }
}

pub(super) fn setting(kind: RequestKind, store: StoreKind) -> Setting {
    Setting {
        store,
        agent: match kind {
            RequestKind::Stream | RequestKind::FollowUp => "conformance",
            RequestKind::Send | RequestKind::Card | RequestKind::Task | RequestKind::Traced => "echo",
        },
        retained: RETAINED,
    }
}

/// Runs the load in a process of its own on its core.
pub(super) fn drive(
    ground: &Ground,
    url: &str,
    kind: RequestKind,
    text: &str,
    server: &Server,
    extent: &[&str],
) -> Result<Figures> {
    let mut command = ground.on_load_core();
    command.args(["load", "--json", "--url", url, "--text", text]);
    command.args(["--server-pid", &server.pid().to_string()]);
    command.args(match kind {
        RequestKind::Send => ["--kind", "send"],
        RequestKind::Stream => ["--kind", "stream"],
        RequestKind::Card => ["--kind", "card"],
        RequestKind::Task => ["--kind", "task"],
        RequestKind::FollowUp => ["--kind", "follow-up"],
        RequestKind::Traced => ["--kind", "traced"],
    });
    // A trace of this program's own frames would bury what the server did wrong.
    command.env("RUST_BACKTRACE", "0");
    let output = command.args(extent).stderr(Stdio::piped()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("figures of the load")
}
