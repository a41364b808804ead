//! The rows of the report, what each has to reach, and which part measures it.

mod context;
mod evidence;
mod gateway;
mod growth;
mod handoff;
mod hop_token;
mod identity;
mod idle;
mod ledger;
mod long;
mod open;
mod postgres;
mod push;
mod rate;
mod send_counts;
mod slim;

use anyhow::Result;

use crate::contestant::{Contestant, StoreKind};
use crate::credentials::Credential;
use crate::ground::Ground;
use crate::report::MeasuredRow;
use crate::request::RequestKind;
use crate::sdk::Sdk;

use self::gateway::Pace;
use self::long::ListKind;
pub(crate) use self::rate::{Probe, probe};

/// How long and how often to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) seconds: f64,
    pub(crate) warm_up: f64,
    pub(crate) subscriptions: usize,
    /// Requests until memory should have stopped growing; twice as many follow.
    pub(crate) filling: u64,
}

impl Effort {
    pub(crate) const FULL: Self = Self { rounds: 7, seconds: 2.0, warm_up: 0.4, subscriptions: 10_000, filling: 60_000 };
    pub(crate) const QUICK: Self = Self { rounds: 3, seconds: 0.7, warm_up: 0.2, subscriptions: 10_000, filling: 20_000 };
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    measure: Measure,
}

#[derive(Debug, Clone, Copy)]
enum Measure {
    Rate(Rate),
    Gateway(Rate),
    GatewaySdk(Sdk),
    GatewayHalfLoad,
    GatewayEvent(Pace),
    GatewayOpen,
    Idle,
    /// Of so many connections.
    SendCounts(usize),
    GetLong,
    List(ListKind),
    Growth(StoreKind),
    Mounted,
    SignCard,
    VerifyCard,
    MintHopToken,
    VerifyHopToken,
    ChildContext,
    Credential(Credential),
    Ledger(ledger::LedgerLoad),
    Guards,
    Traced,
    Convert,
    Recording(usize),
    /// Of so many connections.
    Postgres(usize),
    SlimRate,
    SlimBytes,
    /// Of so many vectors.
    Handoff(u64),
    Deliver,
    FirstByte(push::TimeQuantile),
    SendCost,
    RegisterCost {
        told: bool,
    },
    Hanging,
}

/// A row of requests by the second.
#[derive(Debug, Clone, Copy)]
struct Rate {
    kind: RequestKind,
    store: StoreKind,
    connections: usize,
    /// Share of the yardstick's rate to reach; rows without one are shown for the reader.
    least: Option<f64>,
    /// How many times the yardstick's processor time a request may take.
    processor_at_most: Option<f64>,
}

/// What both sides and all rows share.
#[derive(Debug)]
pub(crate) struct Match<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) yardstick: &'a Contestant,
    pub(crate) subject: &'a Contestant,
    pub(crate) effort: Effort,
    pub(crate) probe: Probe,
}

const fn rate(name: &'static str, title: &'static str, rate: Rate) -> Row {
    Row { name, title, measure: Measure::Rate(rate) }
}

const fn send(store: StoreKind, connections: usize, least: Option<f64>) -> Rate {
    Rate { kind: RequestKind::Send, store, connections, least, processor_at_most: None }
}

/// Sends to a node with its defaults, on disk.
const fn durable(connections: usize, least: f64, processor_at_most: Option<f64>) -> Rate {
    Rate { processor_at_most, ..send(StoreKind::Sqlite, connections, Some(least)) }
}

const fn stream(least: Option<f64>) -> Rate {
    Rate { kind: RequestKind::Stream, ..send(StoreKind::Memory, 64, least) }
}

const fn gateway(name: &'static str, title: &'static str, rate: Rate) -> Row {
    Row { name, title, measure: Measure::Gateway(rate) }
}

const fn gateway_sdk(name: &'static str, title: &'static str, sdk: Sdk) -> Row {
    Row { name, title, measure: Measure::GatewaySdk(sdk) }
}

const fn event(name: &'static str, title: &'static str, pace: Pace) -> Row {
    Row { name, title, measure: Measure::GatewayEvent(pace) }
}

const fn credential(name: &'static str, title: &'static str, kind: Credential) -> Row {
    Row { name, title, measure: Measure::Credential(kind) }
}

const fn ledger(name: &'static str, title: &'static str, kind: ledger::LedgerLoad) -> Row {
    Row { name, title, measure: Measure::Ledger(kind) }
}

const fn handoff(name: &'static str, title: &'static str, vectors: u64) -> Row {
    Row { name, title, measure: Measure::Handoff(vectors) }
}

/// All rows, in the order of the report.
pub(crate) const ROWS: &[Row] = &[
    rate("send-memory-1", "blocking send, memory, 1", send(StoreKind::Memory, 1, Some(0.70))),
    rate("send-memory-64", "blocking send, memory, 64", send(StoreKind::Memory, 64, Some(0.70))),
    rate("send-memory-256", "blocking send, memory, 256", send(StoreKind::Memory, 256, Some(0.70))),
    rate("send-sqlite-1", "blocking send, SQLite, 1", durable(1, 0.13, None)),
    rate("send-sqlite-64", "blocking send, SQLite, 64", durable(64, 0.25, Some(3.3))),
    rate("send-sqlite-256", "blocking send, SQLite, 256", durable(256, 0.33, None)),
    Row { name: "send-postgres-64", title: "blocking send, PostgreSQL, beside SQLite, 64", measure: Measure::Postgres(64) },
    Row { name: "send-postgres-256", title: "the same, 256", measure: Measure::Postgres(256) },
    Row { name: "send-counts-1", title: "bytes written to disk by a send, 1", measure: Measure::SendCounts(1) },
    Row { name: "send-counts-64", title: "the same, 64 at once", measure: Measure::SendCounts(64) },
    Row { name: "get-long", title: "task of 5,000 entries read, beside one of 5", measure: Measure::GetLong },
    Row { name: "list-1m", title: "caller's list among 1,000,000 tasks, beside 1,000", measure: Measure::List(ListKind::Caller) },
    Row {
        name: "list-1m-operator",
        title: "operator's list among 1,000,000 tasks, beside 1,000",
        measure: Measure::List(ListKind::Operator),
    },
    Row {
        name: "list-1m-failed",
        title: "operator's list of the few that failed, the same",
        measure: Measure::List(ListKind::Failed),
    },
    rate("card-64", "agent card, 64", Rate { kind: RequestKind::Card, ..send(StoreKind::Memory, 64, Some(0.95)) }),
    rate("stream-64", "stream of 10 events, 64", stream(Some(0.50))),
    Row { name: "idle", title: "memory of an idle subscription", measure: Measure::Idle },
    Row { name: "growth-memory", title: "memory kept per request, memory", measure: Measure::Growth(StoreKind::Memory) },
    Row { name: "growth-sqlite", title: "memory kept per request, SQLite", measure: Measure::Growth(StoreKind::Sqlite) },
    Row { name: "mounted", title: "median behind a mounted router, 1", measure: Measure::Mounted },
    gateway("gateway-send-1", "send through a gateway, beside a proxy, 1", send(StoreKind::Memory, 1, Some(0.60))),
    gateway("gateway-send-64", "send through a gateway, beside a proxy, 64", send(StoreKind::Memory, 64, Some(0.60))),
    gateway("gateway-stream-64", "stream of 10 through a gateway, beside a proxy", stream(None)),
    gateway_sdk("gateway-python-64", "send through a gateway to a Python agent, beside a proxy", Sdk::Python),
    gateway_sdk("gateway-js-64", "send through a gateway to a JS agent, beside a proxy", Sdk::Js),
    gateway_sdk("gateway-rust-64", "send through a gateway to a Rust agent, beside a proxy", Sdk::Rust),
    Row { name: "gateway-p99", title: "p99 through a gateway at half load, beside none", measure: Measure::GatewayHalfLoad },
    event("gateway-events", "event through a gateway, in a burst", Pace::Burst),
    event("gateway-event", "event through a gateway, one at a time", Pace::Single),
    Row { name: "gateway-open", title: "memory of a proxied stream", measure: Measure::GatewayOpen },
    Row { name: "card-sign", title: "card signed, beside bare Ed25519", measure: Measure::SignCard },
    Row { name: "card-verify", title: "card verified, beside bare Ed25519", measure: Measure::VerifyCard },
    Row { name: "hop-token-mint", title: "hop token made, beside bare Ed25519", measure: Measure::MintHopToken },
    Row { name: "hop-token-verify", title: "hop token verified, beside bare Ed25519", measure: Measure::VerifyHopToken },
    Row { name: "task-context-child", title: "context of a child, beside a copied list", measure: Measure::ChildContext },
    credential("check-api-key", "API key checked, beside a send", Credential::ApiKey),
    credential("check-token", "token checked again, beside a send", Credential::KnownToken),
    credential("check-new-token", "new token checked, beside a send", Credential::NewToken),
    credential("check-certificate", "certificate checked, beside a send", Credential::Certificate),
    credential("check-signature", "signed request checked, beside a send", Credential::Signature),
    Row { name: "guards", title: "send with every guard on, beside one with none set", measure: Measure::Guards },
    Row { name: "lineage-traced", title: "send that brings a trace, beside one that brings none", measure: Measure::Traced },
    Row { name: "evidence-convert", title: "packet converted, beside its JSON read", measure: Measure::Convert },
    Row { name: "evidence-send-1", title: "send with a record, beside one without, 1", measure: Measure::Recording(1) },
    Row { name: "evidence-send-64", title: "the same, 64", measure: Measure::Recording(64) },
    Row { name: "evidence-send-256", title: "the same, 256", measure: Measure::Recording(256) },
    Row { name: "swp-send-64", title: "task over SWP, beside JSON-RPC, 64", measure: Measure::SlimRate },
    Row { name: "swp-bytes", title: "bytes of that task on the wire, beside JSON-RPC", measure: Measure::SlimBytes },
    handoff("handoff-1k", "1,000 vectors by reference, beside inline", 1_000),
    handoff("handoff-10k", "10,000 vectors by reference, beside inline", 10_000),
    handoff("handoff-100k", "100,000 vectors by reference, beside inline", 100_000),
    handoff("handoff-1m", "1,000,000 vectors by reference, beside inline", 1_000_000),
    Row { name: "push-deliver", title: "notifications of 1 KB, beside a bare client", measure: Measure::Deliver },
    Row { name: "push-first-byte", title: "state to first byte, median", measure: Measure::FirstByte(push::TimeQuantile::Half) },
    Row {
        name: "push-first-byte-p99",
        title: "state to first byte, p99",
        measure: Measure::FirstByte(push::TimeQuantile::Nearly),
    },
    Row { name: "push-send-cost", title: "message to a task with a webhook, beside one without", measure: Measure::SendCost },
    Row {
        name: "push-register-cost",
        title: "send that brings its webhook, beside one without",
        measure: Measure::RegisterCost { told: false },
    },
    Row { name: "push-send-told", title: "the same, and the webhook is told", measure: Measure::RegisterCost { told: true } },
    Row { name: "push-hanging", title: "webhooks beside 50 that hang, beside none", measure: Measure::Hanging },
    ledger("ledger-uncapped", "budget reserved and settled, no cap", ledger::UNCAPPED),
    ledger("ledger-capped", "budget reserved and settled, 3 caps", ledger::ONE_THREAD),
    ledger("ledger-capped-100k-entries", "the same, 100,000 in the window", ledger::MANY_ENTRIES),
    ledger("ledger-4-threads-one-tree", "the same, 4 threads on one tree", ledger::FOUR_THREADS),
];

impl Row {
    /// Measures the row on both sides.
    pub(crate) fn measure(&self, this: &Match<'_>) -> Result<MeasuredRow> {
        match self.measure {
            Measure::Rate(rate) => rate::measure(self, rate, this),
            Measure::Gateway(rate) => gateway::throughput(self, rate, this),
            Measure::GatewaySdk(sdk) => gateway::before_sdk(self, sdk, this),
            Measure::GatewayHalfLoad => gateway::half_load(self, this),
            Measure::GatewayEvent(pace) => gateway::event(self, pace, this),
            Measure::GatewayOpen => open::measure(self, this),
            Measure::Idle => idle::measure(self, this),
            Measure::SendCounts(connections) => send_counts::measure(self, connections, this),
            Measure::GetLong => long::get(self, this),
            Measure::List(kind) => long::list(self, kind, this),
            Measure::Growth(store) => growth::measure(self, store, this),
            Measure::Mounted => rate::measure_mounted(self, this),
            Measure::SignCard => identity::sign(self, this),
            Measure::VerifyCard => identity::verify(self, this),
            Measure::MintHopToken => hop_token::mint(self, this),
            Measure::VerifyHopToken => hop_token::verify(self, this),
            Measure::ChildContext => context::measure(self, this),
            Measure::Credential(kind) => identity::credential(self, kind, this),
            Measure::Ledger(kind) => ledger::measure(self, kind, this),
            Measure::Guards => gateway::guards(self, this),
            Measure::Traced => gateway::traced(self, this),
            Measure::Convert => evidence::convert(self, this),
            Measure::Recording(connections) => evidence::recording(self, connections, this),
            Measure::Postgres(connections) => postgres::measure(self, connections, this),
            Measure::SlimRate => slim::throughput(self, this),
            Measure::SlimBytes => slim::bytes(self, this),
            Measure::Handoff(vectors) => handoff::measure(self, vectors, this),
            Measure::Deliver => push::deliver(self, this),
            Measure::FirstByte(share) => push::first_byte(self, share, this),
            Measure::SendCost => push::send_cost(self, this),
            Measure::RegisterCost { told } => push::register_cost(self, told, this),
            Measure::Hanging => push::hanging(self, this),
        }
    }
}
