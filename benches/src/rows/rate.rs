//! Requests by the second: both servers up, short rounds in turn, and the median of the rounds' ratios.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use super::{Match, Rate, Row};
use crate::contestant::{Contestant, Setting, Sizes, Store};
use crate::figures::Figures;
use crate::ground::Ground;
use crate::report::{Line, Pair, Target, Unit, median};
use crate::request::Kind;
use crate::server::Server;

/// Tasks kept while the rate is measured: enough never to be the subject, few enough to stay in bounds.
const RETAINED: u32 = 10_000;
/// Events of every stream, on both sides.
const EVENTS: usize = 10;
/// How much longer than the yardstick's the slowest hundredth may take.
const P99_AT_MOST: f64 = 2.0;

/// What the subject answers with, asked once before anything is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe {
    pub(crate) sizes: Sizes,
    /// What to ask the conformance agent for so that the whole stream has ten events.
    chunks: usize,
}

/// Asks the subject for one answer of each kind.
pub(crate) fn probe(ground: &Ground, subject: &Contestant) -> Result<Probe> {
    let echo = subject.start(ground, setting(Kind::Send, Store::Memory))?;
    let once = |kind, server: &Server, text: &str| {
        let extent = ["--requests", "1", "--warm-up", "0", "--connections", "1"];
        drive(ground, &subject.url(server, kind), kind, text, server, &extent)
    };
    let answer = once(Kind::Send, &echo, "hello")?.body_bytes;
    let card = once(Kind::Card, &echo, "")?.body_bytes;
    drop(echo);
    let conformance = subject.start(ground, setting(Kind::Stream, Store::Memory))?;
    let told = once(Kind::Stream, &conformance, &format!("stream {EVENTS}"))?;
    // The task itself and its states are events too.
    let around = told.events.saturating_sub(EVENTS);
    let chunks = EVENTS.checked_sub(around).context("too many events")?;
    let stream = once(Kind::Stream, &conformance, &format!("stream {chunks}"))?;
    ensure!(stream.events == EVENTS, "a stream of {} events", stream.events);
    Ok(Probe { sizes: Sizes { answer, card, stream: stream.body_bytes }, chunks })
}

pub(super) fn measure(row: &Row, rate: Rate, this: &Match<'_>) -> Result<Line> {
    let setting = setting(rate.kind, rate.store);
    let sides = [this.yardstick, this.subject];
    let servers = [this.yardstick.start(this.ground, setting)?, this.subject.start(this.ground, setting)?];
    let text = match rate.kind {
        Kind::Stream => format!("stream {}", this.probe.chunks),
        Kind::Send | Kind::Card => "hello".to_owned(),
    };
    let connections = rate.connections.to_string();
    let (seconds, warm_up) = (this.effort.seconds.to_string(), this.effort.warm_up.to_string());
    let extent = ["--connections", &connections, "--seconds", &seconds, "--warm-up", &warm_up];
    let mut rounds: Vec<[Figures; 2]> = Vec::new();
    for round in 0..this.effort.rounds {
        let one = |side: usize| {
            let url = sides[side].url(&servers[side], rate.kind);
            drive(this.ground, &url, rate.kind, &text, &servers[side], &extent)
        };
        // Who goes first changes from round to round, so that a drift of the machine favours nobody.
        rounds.push(if round % 2 == 0 {
            let yardstick = one(0)?;
            [yardstick, one(1)?]
        } else {
            let subject = one(1)?;
            [one(0)?, subject]
        });
    }
    Ok(line(row, rate, &rounds))
}

fn line(row: &Row, rate: Rate, rounds: &[[Figures; 2]]) -> Line {
    let both = |figure: fn(&Figures) -> f64| Pair {
        yardstick: median(rounds.iter().map(|[yardstick, _]| figure(yardstick))),
        chancery: median(rounds.iter().map(|[_, subject]| figure(subject))),
    };
    let ratios = |figure: fn(&Figures) -> f64| rounds.iter().map(move |[yardstick, subject]| figure(subject) / figure(yardstick));
    let rates = ratios(|figures| figures.per_second);
    let p99_ratio = median(ratios(|figures| figures.p99_us));
    let busiest = rounds.iter().flatten().map(|figures| figures.client_busy);
    let note = (busiest.fold(0.0, f64::max) > 0.95).then(|| "the load was the limit".to_owned());
    Line {
        row: row.name.to_owned(),
        title: row.title.to_owned(),
        unit: Unit::PerSecond,
        value: both(|figures| figures.per_second),
        ratio: median(rates.clone()),
        spread: (rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max)),
        target: rate.least.map(Target::RatioAtLeast),
        p50_us: Some(both(|figures| figures.p50_us)),
        p99_us: Some(both(|figures| figures.p99_us)),
        p99_ratio: Some(p99_ratio),
        p99_target: rate.least.map(|_| P99_AT_MOST),
        processor_us: Some(both(|figures| figures.server_us.unwrap_or(f64::NAN))),
        note,
    }
}

fn setting(kind: Kind, store: Store) -> Setting {
    Setting {
        store,
        agent: match kind {
            Kind::Stream => "conformance",
            Kind::Send | Kind::Card => "echo",
        },
        retained: RETAINED,
    }
}

/// Runs the load in a process of its own on its core.
pub(super) fn drive(ground: &Ground, url: &str, kind: Kind, text: &str, server: &Server, extent: &[&str]) -> Result<Figures> {
    let mut command = ground.on_load_core();
    command.args(["load", "--json", "--url", url, "--text", text]);
    command.args(["--server-pid", &server.pid().to_string()]);
    command.args(match kind {
        Kind::Send => ["--kind", "send"],
        Kind::Stream => ["--kind", "stream"],
        Kind::Card => ["--kind", "card"],
    });
    // A trace of this program's own frames would bury what the server did wrong.
    command.env("RUST_BACKTRACE", "0");
    let output = command.args(extent).stderr(Stdio::piped()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("figures of the load")
}
