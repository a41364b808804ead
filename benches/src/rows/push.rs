//! Webhooks: how many notifications a second, how soon, what they cost a send, and what hanging receivers cost the others.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::gateway::program;
use super::rate::{in_turn, line, setting};
use super::{Match, Row};
use crate::contestant::{Contestant, Setting, StoreKind};
use crate::figures::Figures;
use crate::report::{MeasuredRow, Pair, RowTarget, Unit, median};
use crate::request::RequestKind;
use crate::server::Server;
use crate::webhooks::Arrived;

const LEAST_PER_SECOND: f64 = 5_000.0;
const FIRST_BYTE_P50_US: f64 = 3_000.0;
const FIRST_BYTE_P99_US: f64 = 20_000.0;
const SEND_COST: f64 = 0.05;
const HEALTHY_LEAST: f64 = 0.95;
const HEALTHY_P99: f64 = 2.0;
/// Makes the three notifications of one echoed message 1 KB each on average.
const TEXT_BYTES: usize = 1_000;
/// Echoed messages a second: each is told in three notifications.
const EVENTS: f64 = 3.0;
/// For each task, so that none of them grows long.
const MESSAGES: usize = 4;
const GIVE_UP: Duration = Duration::from_secs(120);

/// A node that tells webhooks, on the server's core, and the webhooks, on that of the load.
struct Stage<'a> {
    this: &'a Match<'a>,
    kind: RequestKind,
    node: Server,
    hooks: Server,
}

impl<'a> Stage<'a> {
    fn new(this: &'a Match<'a>, hanging: usize) -> Result<Self> {
        Self::of(this, RequestKind::Send, hanging)
    }

    fn of(this: &'a Match<'a>, kind: RequestKind, hanging: usize) -> Result<Self> {
        let node = Contestant::Notifying(program(this)?);
        // Everything is kept: what is forgotten with its task would not be told.
        let setting = Setting { retained: 1_000_000, ..setting(kind, StoreKind::Sqlite) };
        let node = node.start(this.ground, setting)?;
        let mut command = this.ground.on_load_core();
        command.args(["webhooks", "--hanging", &hanging.to_string()]);
        let log = this.ground.scratch().join(format!("webhooks-{}", node.pid()));
        Ok(Self { this, kind, node, hooks: Server::start_everywhere(command, log)? })
    }

    fn ask(&self, path: &str) -> Result<String> {
        let address = self.hooks.address();
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no answer of the webhooks")?;
        Ok(body.to_owned())
    }

    fn arrived(&self) -> Result<Arrived> {
        serde_json::from_str(&self.ask("/arrived")?).context("figures of the webhooks")
    }

    /// Everything that comes until nothing came for a while.
    fn all_arrived(&self, expected: u64) -> Result<Arrived> {
        let (began, mut all) = (Instant::now(), self.arrived()?);
        while all.count < expected {
            ensure!(began.elapsed() < GIVE_UP, "{} of {expected} notifications arrived", all.count);
            sleep(Duration::from_millis(100));
            let more = self.arrived()?;
            if more.count > 0 {
                all.seconds = began.elapsed().as_secs_f64();
                all.count += more.count;
                all.bytes += more.bytes;
            }
        }
        Ok(all)
    }

    /// Sends with a webhook at one of these origins, in turn.
    fn drive(&self, origins: Option<&str>, text: &str, extent: &[&str]) -> Result<Figures> {
        let port = self.hooks.address().rsplit(':').next().context("no port")?.to_owned();
        let mut extent = extent.to_vec();
        if let Some(origins) = origins {
            extent.extend(["--hook", &port, "--origins", origins]);
        }
        let url = format!("http://{}", self.node.address());
        super::rate::drive(self.this.ground, &url, self.kind, text, &self.node, &extent)
    }

    fn seconds(&self) -> String {
        self.this.effort.seconds.to_string()
    }
}

fn text() -> String {
    "x".repeat(TEXT_BYTES)
}

/// Notifications a second from a backlog, beside a bare client on the same core that sends as many bytes unsigned.
pub(super) fn deliver(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let stage = Stage::new(this, 0)?;
    let tasks = (this.effort.seconds * 1_000.0) as u64;
    let (mut rates, mut bare, mut bytes, mut cpu) = (Vec::new(), Vec::new(), 0, Vec::new());
    for _ in 0..this.effort.rounds {
        stage.ask("/hold")?;
        let count = tasks.to_string();
        stage.drive(Some("0..64"), &text(), &["--connections", "64", "--requests", &count, "--warm-up", "0"])?;
        let waiting = || Ok::<_, anyhow::Error>(stage.ask("/waiting")?.parse::<u64>().unwrap_or(0));
        let began = Instant::now();
        while waiting()? < 128.min(tasks) {
            ensure!(began.elapsed() < GIVE_UP, "the node did not begin to tell");
            sleep(Duration::from_millis(20));
        }
        let before = crate::process::cpu_time(stage.node.pid())?;
        stage.ask("/go")?;
        let all = stage.all_arrived(3 * tasks)?;
        let used = crate::process::cpu_time(stage.node.pid())? - before;
        bytes = all.bytes / all.count.max(1);
        rates.push(all.count as f64 / all.seconds);
        cpu.push(used.as_secs_f64() * 1e6 / all.count as f64);
        bare.push(bare_client(&stage)?.per_second);
        stage.arrived()?;
    }
    let ratios: Vec<f64> = rates.iter().zip(&bare).map(|(told, bare)| told / bare).collect();
    let value = Pair { yardstick: median(bare.iter().copied()), chancery: median(rates.iter().copied()) };
    let spread = (ratios.iter().copied().fold(f64::INFINITY, f64::min), ratios.iter().copied().fold(0.0, f64::max));
    let note = format!("bodies of {bytes} bytes, HMAC and Ed25519, every receipt kept before the next; one core for the node");
    let line = super::identity::line(row, Unit::PerSecond, value, median(ratios.into_iter()), None, note);
    let cpu = Pair { yardstick: f64::NAN, chancery: median(cpu.into_iter()) };
    Ok(MeasuredRow { target: Some(RowTarget::AtLeast(LEAST_PER_SECOND)), spread, processor_us: Some(cpu), ..line })
}

/// The same receivers, called from the node's core by a loop that does nothing else.
fn bare_client(stage: &Stage<'_>) -> Result<Figures> {
    let ground = stage.this.ground;
    let mut command = ground.on_server_core(ground.own_program());
    let url = format!("http://{}", stage.hooks.address());
    command.args(["load", "--json", "--kind", "send", "--url", &url, "--text", &text(), "--seconds", &stage.seconds()]);
    let output = command.args(["--connections", "64", "--warm-up", "0.1"]).stderr(Stdio::piped()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("figures of the bare client")
}

/// Which part of the times is held against a target.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimeQuantile {
    Half,
    Nearly,
}

/// From the time of a state, before it is kept, to its arrival, at a thousand notifications a second; beside the answer its caller waits for.
pub(super) fn first_byte(row: &Row, share: TimeQuantile, this: &Match<'_>) -> Result<MeasuredRow> {
    let stage = Stage::new(this, 0)?;
    let rate = (1_000.0 / EVENTS).to_string();
    let mut rounds = Vec::new();
    for _ in 0..this.effort.rounds {
        let extent = ["--connections", "64", "--rate", &rate, "--seconds", &stage.seconds(), "--warm-up", "0.5"];
        let sent = stage.drive(Some("0..64"), &text(), &extent)?;
        rounds.push((sent, stage.arrived()?));
    }
    let of = |sent: fn(&Figures) -> f64, told: fn(&Arrived) -> f64| Pair {
        yardstick: median(rounds.iter().map(|(figures, _)| sent(figures))),
        chancery: median(rounds.iter().map(|(_, arrived)| told(arrived))),
    };
    let p50 = of(|sent| sent.p50_us, |told| told.p50_us);
    let p99 = of(|sent| sent.p99_us, |told| told.p99_us);
    let (value, most) = match share {
        TimeQuantile::Half => (p50, FIRST_BYTE_P50_US),
        TimeQuantile::Nearly => (p99, FIRST_BYTE_P99_US),
    };
    let note = "counted from before the state is on disk, in whole milliseconds".to_owned();
    let line = super::identity::line(row, Unit::Microseconds, value, value.chancery / value.yardstick, None, note);
    Ok(MeasuredRow { target: Some(RowTarget::AtMost(most)), p50_us: Some(p50), p99_us: Some(p99), ..line })
}

/// Messages by the second to tasks that a webhook is told of, beside tasks without one. A receiver that never answers leaves only what the
/// task itself pays for.
pub(super) fn send_cost(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let stages = [Stage::of(this, RequestKind::FollowUp, 0)?, Stage::of(this, RequestKind::FollowUp, 1)?];
    let tasks = (this.effort.seconds * 1_000.0) as usize;
    let (count, all) = (tasks.to_string(), (tasks * MESSAGES).to_string());
    let extent = ["--connections", "64", "--tasks", &count, "--requests", &all, "--warm-up", "0"];
    let one = |side: usize| stages[side].drive((side == 1).then_some("0..1"), RequestKind::FollowUp.usual_text(), &extent);
    let rounds = in_turn(this.effort.rounds, one)?;
    let line = line(row, &rounds, Unit::PerSecond, |figures| figures.per_second);
    Ok(MeasuredRow { target: Some(RowTarget::RatioAtLeast(1.0 - SEND_COST)), ..line })
}

/// Sends by the second that bring a webhook each, beside those that bring none: what it costs to keep a registration.
pub(super) fn register_cost(row: &Row, told: bool, this: &Match<'_>) -> Result<MeasuredRow> {
    let (plain, with) = (Stage::new(this, 0)?, Stage::new(this, if told { 0 } else { 1 })?);
    let one = |side: usize| {
        let extent = ["--connections", "64", "--seconds", &plain.seconds(), "--warm-up", "0.3"];
        if side == 0 { plain.drive(None, "hello", &extent) } else { with.drive(Some("0..1"), "hello", &extent) }
    };
    let rounds = in_turn(this.effort.rounds, one)?;
    Ok(line(row, &rounds, Unit::PerSecond, |figures| figures.per_second))
}

/// Notifications of healthy receivers while fifty of a thousand hang, beside those while none does.
pub(super) fn hanging(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    const HANGING: usize = 50;
    let stages = [Stage::new(this, 0)?, Stage::new(this, HANGING)?];
    for (stage, hang) in stages.iter().zip([false, true]) {
        // Ten for each of the fifty, so that they have all the slots they can get.
        let first = format!("0..{HANGING}");
        stage.drive(Some(&first), "hello", &["--connections", "16", "--requests", "500", "--warm-up", "0"])?;
        // Those who take theirs must be done before others are measured.
        let arrived = if hang { stage.arrived()? } else { stage.all_arrived(3 * 500)? };
        ensure!(!hang || arrived.count == 0, "one that hangs took something");
    }
    let mut rounds = Vec::new();
    for round in 0..this.effort.rounds {
        let one = |side: usize| {
            let stage: &Stage<'_> = &stages[side];
            let healthy = format!("{HANGING}..1000");
            let rate = (1_000.0 / EVENTS).to_string();
            let extent = ["--connections", "64", "--rate", &rate, "--seconds", &stage.seconds(), "--warm-up", "0.3"];
            stage.drive(Some(&healthy), "hello", &extent)?;
            let arrived = stage.arrived()?;
            ensure!(arrived.count > 0, "nothing arrived");
            Ok(arrived)
        };
        rounds.push(if round % 2 == 0 {
            let alone = one(0)?;
            [alone, one(1)?]
        } else {
            let beside = one(1)?;
            [one(0)?, beside]
        });
    }
    if rounds.is_empty() {
        bail!("no rounds");
    }
    let pair = |figure: fn(&Arrived) -> f64| Pair {
        yardstick: median(rounds.iter().map(|[alone, _]| figure(alone))),
        chancery: median(rounds.iter().map(|[_, beside]| figure(beside))),
    };
    let ratio = |figure: fn(&Arrived) -> f64| median(rounds.iter().map(|[alone, beside]| figure(beside) / figure(alone)));
    let rate = |arrived: &Arrived| arrived.count as f64 / arrived.seconds;
    let note = "a thousand notifications a second for 950 receivers".to_owned();
    let line = super::identity::line(row, Unit::PerSecond, pair(rate), ratio(rate), None, note);
    Ok(MeasuredRow {
        target: Some(RowTarget::RatioAtLeast(HEALTHY_LEAST)),
        p50_us: Some(pair(|arrived| arrived.p50_us)),
        p99_us: Some(pair(|arrived| arrived.p99_us)),
        p99_ratio: Some(ratio(|arrived| arrived.p99_us)),
        p99_target: Some(HEALTHY_P99),
        ..line
    })
}
