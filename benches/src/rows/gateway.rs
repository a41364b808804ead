//! Chancery in front of an agent: beside a plain proxy in front of the same agent, and beside calling the agent itself.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::rate::{drive, in_turn, line, rounds_of, setting};
use super::{Match, Rate, Row};
use crate::contestant::{Contestant, Store};
use crate::report::{Line, Pair, Target, Unit, median};
use crate::request::Kind;
use crate::sdk::{self, Sdk};
use crate::server::Server;

/// Microseconds that a call through the gateway may take longer, of all but the slowest hundredth.
const ADDED_AT_MOST: f64 = 2_000.0;
/// Microseconds of processor for one event that is passed on.
const EVENT_AT_MOST: f64 = 25.0;
/// The share of a blocking send that all guards together may take.
const GUARDS_AT_MOST: f64 = 0.10;
/// Of a proxy's rate, in front of an agent of another SDK.
const SDK_AT_LEAST: f64 = 0.60;
/// Such agents answer a few hundred calls a second: a shorter round would be counted in single calls.
const SDK_SECONDS: f64 = 2.0;
const CONNECTIONS: &str = "64";

/// How the events of a stream come from the agent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// As fast as it can: many arrive together.
    Burst,
    /// One at a time, as a model speaks.
    Single,
}

impl Pace {
    fn text(self) -> &'static str {
        match self {
            Self::Burst => "stream 200",
            Self::Single => "stream 100 4",
        }
    }
}

/// An agent, and both ways of standing in front of it.
pub(super) struct Behind {
    /// Held for its end.
    pub(super) agent: Server,
    pub(super) proxy: Contestant,
    pub(super) gateway: Contestant,
}

pub(super) fn behind(this: &Match<'_>, kind: Kind) -> Result<Behind> {
    let agent = this.subject.start(this.ground, setting(kind, Store::Memory))?;
    let address = agent.address().to_owned();
    Ok(Behind { agent, proxy: Contestant::Proxy(address.clone()), gateway: Contestant::Gateway(program(this)?, address) })
}

pub(super) fn program(this: &Match<'_>) -> Result<PathBuf> {
    match this.subject {
        Contestant::Chancery(program) => Ok(program.clone()),
        _ => bail!("only a built chancery can stand in front of another"),
    }
}

/// Requests by the second through the gateway, beside those through the proxy.
pub(super) fn throughput(row: &Row, rate: Rate, this: &Match<'_>) -> Result<Line> {
    let behind = behind(this, rate.kind)?;
    let rounds = rounds_of(this, rate, [&behind.proxy, &behind.gateway])?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    Ok(Line { target: rate.least.map(Target::RatioAtLeast), ..line })
}

/// The same in front of an agent that somebody else's SDK made.
pub(super) fn before_sdk(row: &Row, sdk: Sdk, this: &Match<'_>) -> Result<Line> {
    let agent = sdk.start(this.ground)?;
    let address = agent.address().to_owned();
    let sides = [Contestant::Proxy(address.clone()), Contestant::Gateway(program(this)?, address)];
    let setting = setting(Kind::Send, Store::Memory);
    let servers = [sides[0].start(this.ground, setting)?, sides[1].start(this.ground, setting)?];
    let (seconds, warm_up) = (this.effort.seconds.max(SDK_SECONDS).to_string(), this.effort.warm_up.to_string());
    let extent = ["--connections", CONNECTIONS, "--seconds", &seconds, "--warm-up", &warm_up];
    let rounds = in_turn(this.effort.rounds, |side| {
        let url = sides[side].url(&servers[side], Kind::Send);
        // The proxy passes the path on; the gateway has read in the card where the agent takes calls.
        let url = if side == 0 { format!("{url}/{}", sdk::PATH) } else { url };
        drive(this.ground, &url, Kind::Send, "hello", &servers[side], &extent)
    })?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    // It is the agent that fills the core here, so a yardstick that does not says nothing of the machine.
    Ok(Line { target: Some(Target::RatioAtLeast(SDK_AT_LEAST)), note: None, ..line })
}

/// Requests by the second with every guard on, beside those where none is set: what is missing to 1 is the share of the guards.
pub(super) fn guards(row: &Row, this: &Match<'_>) -> Result<Line> {
    let rate = Rate { kind: Kind::Send, store: Store::Memory, connections: 64, least: None };
    let guarded = Contestant::Guarded(program(this)?);
    let rounds = rounds_of(this, rate, [this.subject, &guarded])?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    Ok(Line { target: Some(Target::RatioAtLeast(1.0 - GUARDS_AT_MOST)), ..line })
}

/// The slowest hundredth of calls at half of what the gateway can take, beside the same calls made to the agent itself.
pub(super) fn half_load(row: &Row, this: &Match<'_>) -> Result<Line> {
    let behind = behind(this, Kind::Send)?;
    let gateway = behind.gateway.start(this.ground, setting(Kind::Send, Store::Memory))?;
    let (seconds, warm_up) = (this.effort.seconds.to_string(), this.effort.warm_up.to_string());
    let extent = ["--connections", CONNECTIONS, "--seconds", &seconds, "--warm-up", &warm_up];
    let send = |server: &Server, extent: &[&str]| {
        let url = behind.gateway.url(server, Kind::Send);
        drive(this.ground, &url, Kind::Send, "hello", server, extent)
    };
    let full = median(in_turn(this.effort.rounds, |_| send(&gateway, &extent))?.iter().flatten().map(|run| run.per_second));
    let rate = (full / 2.0).to_string();
    let paced = [&extent[..], &["--rate", &rate]].concat();
    let rounds = in_turn(this.effort.rounds, |side| send(if side == 0 { &behind.agent } else { &gateway }, &paced))?;
    let added = median(rounds.iter().map(|[direct, through]| through.p99_us - direct.p99_us));
    let at_median = median(rounds.iter().map(|[direct, through]| through.p50_us - direct.p50_us));
    let line = line(row, &rounds, Unit::Microseconds, |figures| figures.p99_us);
    Ok(Line {
        // The difference of the medians is not the median of the differences; the latter is what neighbours in time tell.
        value: Pair { chancery: line.value.yardstick + added, ..line.value },
        target: Some(Target::AddedAtMost(ADDED_AT_MOST)),
        note: Some(format!(
            "{:.0} sends/s of {full:.0}: {at_median:.0} µs added at the median, {added:.0} µs at p99",
            full / 2.0
        )),
        ..line
    })
}

/// Processor time of the gateway for one event, everything that a stream costs shared out among its events.
pub(super) fn event(row: &Row, pace: Pace, this: &Match<'_>) -> Result<Line> {
    let behind = behind(this, Kind::Stream)?;
    let sides = [&behind.proxy, &behind.gateway];
    let setting = setting(Kind::Stream, Store::Memory);
    let servers = [sides[0].start(this.ground, setting)?, sides[1].start(this.ground, setting)?];
    let (seconds, warm_up) = (this.effort.seconds.to_string(), this.effort.warm_up.to_string());
    let extent = ["--connections", CONNECTIONS, "--seconds", &seconds, "--warm-up", &warm_up];
    let rounds = in_turn(this.effort.rounds, |side| {
        let url = sides[side].url(&servers[side], Kind::Stream);
        drive(this.ground, &url, Kind::Stream, pace.text(), &servers[side], &extent)
    })?;
    let line = line(row, &rounds, Unit::Microseconds, |figures| figures.server_us.unwrap_or(f64::NAN) / figures.events as f64);
    let direct =
        drive(this.ground, &behind.gateway.url(&behind.agent, Kind::Stream), Kind::Stream, pace.text(), &behind.agent, &extent)?;
    let by_second = |each: f64, events: usize| each * events as f64;
    let through = median(rounds.iter().map(|[_, gateway]| by_second(gateway.per_second, gateway.events)));
    let note = format!(
        "streams of {} events; events/s to the caller: {:.0} from the agent itself, {through:.0} through the gateway",
        direct.events,
        by_second(direct.per_second, direct.events)
    );
    Ok(Line { target: Some(Target::AtMost(EVENT_AT_MOST)), note: Some(note), ..line })
}
