//! A loop of C connections: each sends its request again as soon as the answer is whole, or when the next one is due.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use futures::future::try_join_all;
use hdrhistogram::Histogram;
use memchr::memmem;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::figures::{Figures, ProcessorTime, RequestShape};
use crate::follow_up;
use crate::process;
use crate::reply::BenchReply;
use crate::request::{self, RequestKind};
use crate::slim::Exchange;

/// What to send, how often and for how long.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) address: String,
    pub(crate) path: String,
    pub(crate) kind: RequestKind,
    pub(crate) text: String,
    pub(crate) connections: usize,
    /// Requests by the second over all connections; as many as the server answers without it.
    pub(crate) rate: Option<f64>,
    pub(crate) warm_up: Duration,
    pub(crate) extent: Extent,
    /// The run ends here at the latest, whatever has been sent.
    pub(crate) at_most: Duration,
    /// How many events every stream must have.
    pub(crate) events: Option<usize>,
    pub(crate) server: Option<u32>,
    /// Webhooks that sends register, in turn.
    pub(crate) hooks: Vec<String>,
    /// Tasks that follow-ups go to, in turn. They are made before anything is measured.
    pub(crate) tasks: usize,
}

/// When a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Requests(u64),
    Time(Duration),
}

/// What the connections of one run share.
struct Run {
    /// Sent in turn.
    requests: Arc<[Bytes]>,
    turn: AtomicUsize,
    kind: RequestKind,
    events: Option<usize>,
    /// Requests that may still be started.
    left: AtomicU64,
    until: Option<Instant>,
    /// Time from one request of a connection to its next, where the rate is set.
    every: Option<Duration>,
    latency: Mutex<Histogram<u64>>,
    shape: Mutex<RequestShape>,
}

/// Runs the load and tells what it measured. Connections stay open from the warm-up to the end.
pub(crate) async fn run(load: &Load) -> Result<Figures> {
    let work = async {
        let mut streams = try_join_all((0..load.connections).map(|_| connect(&load.address)))
            .await
            .with_context(|| format!("connecting to {}", load.address))?;
        let mut requests: Arc<[Bytes]> = requests(load).into();
        if load.kind == RequestKind::FollowUp {
            requests = follow_up::to_tasks(load, &requests, &mut streams).await?.into();
        }
        if !load.warm_up.is_zero() {
            (streams, _) = pass(load, &requests, Extent::Time(load.warm_up), streams).await?;
        }
        let (_, figures) = pass(load, &requests, load.extent, streams).await?;
        Ok(figures)
    };
    match tokio::time::timeout(load.at_most, work).await {
        Ok(figures) => figures,
        Err(_) => bail!("not done after {:?}", load.at_most),
    }
}

async fn connect(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn pass(
    load: &Load,
    requests: &Arc<[Bytes]>,
    extent: Extent,
    streams: Vec<TcpStream>,
) -> Result<(Vec<TcpStream>, Figures)> {
    let cpu_before = processor(load)?;
    let start = Instant::now();
    let (left, until) = match extent {
        Extent::Requests(count) => (count, None),
        Extent::Time(span) => (u64::MAX, Some(start + span)),
    };
    let run = Arc::new(Run {
        requests: Arc::clone(requests),
        turn: AtomicUsize::new(0),
        kind: load.kind,
        events: load.events,
        left: AtomicU64::new(left),
        until,
        every: load.rate.map(|rate| Duration::try_from_secs_f64(load.connections as f64 / rate)).transpose()?,
        latency: Mutex::new(Histogram::new_with_bounds(1, 120_000_000_000, 3)?),
        shape: Mutex::default(),
    });
    // Connections take turns: they do not all send at once.
    let step = run.every.unwrap_or_default() / u32::try_from(streams.len())?.max(1);
    let starts = (0..).map(|place| start + step * place);
    let tasks: Vec<_> = streams
        .into_iter()
        .zip(starts)
        .map(|(stream, first)| {
            let run = Arc::clone(&run);
            match load.kind {
                RequestKind::Task => tokio::spawn(task_after_task(run, stream)),
                _ => tokio::spawn(again_and_again(run, stream, first)),
            }
        })
        .collect();
    let mut streams = Vec::with_capacity(tasks.len());
    for task in tasks {
        streams.push(task.await??);
    }
    let span = start.elapsed();
    let cpu_after = processor(load)?;
    let used = ProcessorTime {
        client: cpu_after.client - cpu_before.client,
        server: cpu_after.server.zip(cpu_before.server).map(|(after, before)| after - before),
    };
    let latency = run.latency.lock().expect("no connection panicked");
    let shape = *run.shape.lock().expect("no connection panicked");
    ensure!(!latency.is_empty(), "not one request was answered");
    Ok((streams, Figures::new(&latency, span, used, shape)))
}

fn requests(load: &Load) -> Vec<Bytes> {
    if load.hooks.is_empty() {
        return vec![request::bytes(load.kind, &load.address, &load.path, &load.text)];
    }
    load.hooks.iter().map(|hook| request::with_webhook(&load.address, &load.path, &load.text, hook)).collect()
}

fn processor(load: &Load) -> Result<ProcessorTime> {
    Ok(ProcessorTime { client: process::cpu_time(std::process::id())?, server: load.server.map(process::cpu_time).transpose()? })
}

/// One connection, until the run has no request left for it.
async fn again_and_again(run: Arc<Run>, mut stream: TcpStream, mut due: Instant) -> Result<TcpStream> {
    let mut reply = BenchReply::new();
    let proof = memmem::Finder::new(run.kind.proof());
    let mut now = Instant::now();
    while take_turn(&run, now) {
        if let Some(every) = run.every {
            // A request that comes due while its connection is busy has been waiting since then.
            let late = due <= now;
            tokio::time::sleep_until(due.into()).await;
            now = if late { due } else { Instant::now() };
            due += every;
        }
        let request = &run.requests[run.turn.fetch_add(1, Ordering::Relaxed) % run.requests.len()];
        stream.write_all(request).await.context("writing")?;
        reply.read_whole(&mut stream).await?;
        let done = Instant::now();
        let nanos = (done - now).as_nanos() as u64;
        if reply.status() != 200 || proof.find(reply.body()).is_none() {
            bail!("a bad answer: {}", excerpt(&reply));
        }
        let events = match run.kind {
            RequestKind::Stream => reply.events(),
            RequestKind::Send | RequestKind::Card | RequestKind::Task | RequestKind::FollowUp | RequestKind::Traced => 0,
        };
        if let Some(expected) = run.events {
            ensure!(events == expected, "{events} events: {}", excerpt(&reply));
        }
        run.latency.lock().expect("no connection panicked").saturating_record(nanos);
        now = done;
        let wire = request.len() + reply.head().len() + reply.body().len();
        *run.shape.lock().expect("no connection panicked") = RequestShape { body: reply.body().len(), events, wire };
    }
    Ok(stream)
}

/// The same over SWP, as fast as it goes.
async fn task_after_task(run: Arc<Run>, mut stream: TcpStream) -> Result<TcpStream> {
    let mut exchange = Exchange::new(&run.requests[0])?;
    let mut now = Instant::now();
    while take_turn(&run, now) {
        let (body, events) = exchange.run(&mut stream).await?;
        let done = Instant::now();
        run.latency.lock().expect("no connection panicked").saturating_record((done - now).as_nanos() as u64);
        now = done;
        *run.shape.lock().expect("no connection panicked") = RequestShape { body, events, wire: run.requests[0].len() + body };
    }
    Ok(stream)
}

fn take_turn(run: &Run, now: Instant) -> bool {
    if let Some(until) = run.until {
        return now < until;
    }
    run.left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

pub(crate) fn excerpt(reply: &BenchReply) -> String {
    let body = String::from_utf8_lossy(reply.body());
    let body: String = body.chars().take(600).collect();
    format!("{}{body}", String::from_utf8_lossy(reply.head()))
}
