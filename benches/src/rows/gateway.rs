//! Chancery in front of an agent: beside a plain proxy in front of the same agent, and beside calling the agent itself.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::rate::{drive, in_turn, line, rounds_of, setting};
use super::{Match, Rate, Row};
use crate::contestant::{Contestant, StoreKind};
use crate::report::{MeasuredRow, Pair, RowTarget, Unit, median};
use crate::request::RequestKind;
use crate::sdk::{self, Sdk};
use crate::server::Server;

/// Microseconds that a call through the gateway may take longer, of all but the slowest hundredth.
const ADDED_AT_MOST: f64 = 2_000.0;
/// Microseconds of processor for one event that is passed on.
const EVENT_AT_MOST: f64 = 25.0;
/// The share of a blocking send that all guards together may take.
const GUARDS_AT_MOST: f64 = 0.10;
/// The share of a blocking send that reading its trace may take.
const TRACE_AT_MOST: f64 = 0.05;
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
pub(super) struct AgentWithProxies {
    /// Held for its end.
    pub(super) agent: Server,
    pub(super) proxy: Contestant,
    pub(super) gateway: Contestant,
}

pub(super) fn behind(this: &Match<'_>, kind: RequestKind) -> Result<AgentWithProxies> {
    let agent = this.subject.start(this.ground, setting(kind, StoreKind::Memory))?;
    let address = agent.address().to_owned();
    Ok(AgentWithProxies {
        agent,
        proxy: Contestant::Proxy(address.clone()),
        gateway: Contestant::Gateway(program(this)?, address),
    })
}

pub(super) fn program(this: &Match<'_>) -> Result<PathBuf> {
    match this.subject {
        Contestant::Chancery(program) => Ok(program.clone()),
        _ => bail!("only a built chancery can stand in front of another"),
    }
}

/// Requests by the second through the gateway, beside those through the proxy.
pub(super) fn throughput(row: &Row, rate: Rate, this: &Match<'_>) -> Result<MeasuredRow> {
    let behind = behind(this, rate.kind)?;
    let rounds = rounds_of(this, rate, [&behind.proxy, &behind.gateway])?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    Ok(MeasuredRow { target: rate.least.map(RowTarget::RatioAtLeast), ..line })
}

/// The same in front of an agent that somebody else's SDK made.
pub(super) fn before_sdk(row: &Row, sdk: Sdk, this: &Match<'_>) -> Result<MeasuredRow> {
    let agent = sdk.start(this.ground)?;
    let address = agent.address().to_owned();
    let sides = [Contestant::Proxy(address.clone()), Contestant::Gateway(program(this)?, address)];
    let setting = setting(RequestKind::Send, StoreKind::Memory);
    let servers = [sides[0].start(this.ground, setting)?, sides[1].start(this.ground, setting)?];
    let (seconds, warm_up) = (this.effort.seconds.max(SDK_SECONDS).to_string(), this.effort.warm_up.to_string());
    let extent = ["--connections", CONNECTIONS, "--seconds", &seconds, "--warm-up", &warm_up];
    let rounds = in_turn(this.effort.rounds, |side| {
        let url = sides[side].url(&servers[side], RequestKind::Send);
        // The proxy passes the path on; the gateway has read in the card where the agent takes calls.
        let url = if side == 0 { format!("{url}/{}", sdk::PATH) } else { url };
        drive(this.ground, &url, RequestKind::Send, "hello", &servers[side], &extent)
    })?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    // It is the agent that fills the core here, so a yardstick that does not says nothing of the machine.
    Ok(MeasuredRow { target: Some(RowTarget::RatioAtLeast(SDK_AT_LEAST)), note: None, ..line })
}

/// Requests by the second with every guard on, beside those where none is set: what is missing to 1 is the share of the guards.
pub(super) fn guards(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let rate = Rate { kind: RequestKind::Send, store: StoreKind::Memory, connections: 64, least: None, processor_at_most: None };
    let guarded = Contestant::Guarded(program(this)?);
    let rounds = rounds_of(this, rate, [this.subject, &guarded])?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    Ok(MeasuredRow { target: Some(RowTarget::RatioAtLeast(1.0 - GUARDS_AT_MOST)), ..line })
}

/// Requests by the second that bring a trace, beside those that bring none, at one open node.
pub(super) fn traced(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let server = this.subject.start(this.ground, setting(RequestKind::Send, StoreKind::Memory))?;
    let (seconds, warm_up) = (this.effort.seconds.to_string(), this.effort.warm_up.to_string());
    let extent = ["--connections", CONNECTIONS, "--seconds", &seconds, "--warm-up", &warm_up];
    let kinds = [RequestKind::Send, RequestKind::Traced];
    let rounds = in_turn(this.effort.rounds, |side| {
        let url = this.subject.url(&server, kinds[side]);
        drive(this.ground, &url, kinds[side], kinds[side].usual_text(), &server, &extent)
    })?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    Ok(MeasuredRow { target: Some(RowTarget::RatioAtLeast(1.0 - TRACE_AT_MOST)), ..line })
}

/// The slowest hundredth of calls at half of what the gateway can take, beside the same calls made to the agent itself.
pub(super) fn half_load(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let behind = behind(this, RequestKind::Send)?;
    let gateway = behind.gateway.start(this.ground, setting(RequestKind::Send, StoreKind::Memory))?;
    let (seconds, warm_up) = (this.effort.seconds.to_string(), this.effort.warm_up.to_string());
    let extent = ["--connections", CONNECTIONS, "--seconds", &seconds, "--warm-up", &warm_up];
    let send = |server: &Server, extent: &[&str]| {
        let url = behind.gateway.url(server, RequestKind::Send);
        drive(this.ground, &url, RequestKind::Send, "hello", server, extent)
    };
    let full = median(in_turn(this.effort.rounds, |_| send(&gateway, &extent))?.iter().flatten().map(|run| run.per_second));
    let rate = (full / 2.0).to_string();
    let paced = [&extent[..], &["--rate", &rate]].concat();
    let rounds = in_turn(this.effort.rounds, |side| send(if side == 0 { &behind.agent } else { &gateway }, &paced))?;
    let added = median(rounds.iter().map(|[direct, through]| through.p99_us - direct.p99_us));
    let at_median = median(rounds.iter().map(|[direct, through]| through.p50_us - direct.p50_us));
    let line = line(row, &rounds, Unit::Microseconds, |figures| figures.p99_us);
    Ok(MeasuredRow {
        // The difference of the medians is not the median of the differences; the latter is what neighbours in time tell.
        value: Pair { chancery: line.value.yardstick + added, ..line.value },
        target: Some(RowTarget::AddedAtMost(ADDED_AT_MOST)),
        note: Some(format!(
            "{:.0} sends/s of {full:.0}: {at_median:.0} µs added at the median, {added:.0} µs at p99",
            full / 2.0
        )),
        ..line
    })
}

/// Processor time of the gateway for one event, everything that a stream costs shared out among its events.
pub(super) fn event(row: &Row, pace: Pace, this: &Match<'_>) -> Result<MeasuredRow> {
    let behind = behind(this, RequestKind::Stream)?;
    let sides = [&behind.proxy, &behind.gateway];
    let setting = setting(RequestKind::Stream, StoreKind::Memory);
    let servers = [sides[0].start(this.ground, setting)?, sides[1].start(this.ground, setting)?];
    let (seconds, warm_up) = (this.effort.seconds.to_string(), this.effort.warm_up.to_string());
    let extent = ["--connections", CONNECTIONS, "--seconds", &seconds, "--warm-up", &warm_up];
    let rounds = in_turn(this.effort.rounds, |side| {
        let url = sides[side].url(&servers[side], RequestKind::Stream);
        drive(this.ground, &url, RequestKind::Stream, pace.text(), &servers[side], &extent)
    })?;
    let line = line(row, &rounds, Unit::Microseconds, |figures| figures.server_us.unwrap_or(f64::NAN) / figures.events as f64);
    let direct = drive(
        this.ground,
        &behind.gateway.url(&behind.agent, RequestKind::Stream),
        RequestKind::Stream,
        pace.text(),
        &behind.agent,
        &extent,
    )?;
    let by_second = |each: f64, events: usize| each * events as f64;
    let through = median(rounds.iter().map(|[_, gateway]| by_second(gateway.per_second, gateway.events)));
    let note = format!(
        "streams of {} events; events/s to the caller: {:.0} from the agent itself, {through:.0} through the gateway",
        direct.events,
        by_second(direct.per_second, direct.events)
    );
    Ok(MeasuredRow { target: Some(RowTarget::AtMost(EVENT_AT_MOST)), note: Some(note), ..line })
}
