//! Webhook receivers for the push rows: many origins in one process that take what comes, hold it back, or never answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::HOST;
use axum::http::{HeaderMap, Uri};
use chancery::protocol::Timestamp;
use chancery_receiver::{MachineClock, ReceiverClock as _};
use clap::Args;
use hdrhistogram::Histogram;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::yardstick;

/// The secret that notifications are signed with, beside the node's own key.
pub(crate) const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
/// What every notification is answered, so that a load that looks for it can be sent here too.
const ANSWER: &str = "TASK_STATE_COMPLETED";

#[derive(Debug, Clone, Args)]
pub(crate) struct WebhooksCommand {
    #[arg(long)]
    listen: String,
    /// The first so many origins never answer
    #[arg(long, default_value_t = 0)]
    hanging: usize,
}

/// What arrived since the last time somebody asked.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Arrived {
    pub(crate) count: u64,
    /// From the first to the last.
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
    /// From the time in the notification to its arrival, of those that have one.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

struct Tally {
    count: u64,
    bytes: u64,
    span: Option<(Instant, Instant)>,
    late: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self> {
        Ok(Self { count: 0, bytes: 0, span: None, late: Histogram::new_with_bounds(1, 120_000_000, 3)? })
    }

    fn told(&self) -> Arrived {
        let quantile = |quantile| self.late.value_at_quantile(quantile) as f64;
        Arrived {
            count: self.count,
            seconds: self.span.map_or(0.0, |(first, last)| (last - first).as_secs_f64()),
            bytes: self.bytes,
            p50_us: quantile(0.50),
            p99_us: quantile(0.99),
        }
    }
}

struct Inside {
    hanging: usize,
    held: watch::Sender<bool>,
    waiting: AtomicUsize,
    tally: Mutex<Tally>,
}

/// Serves until the process is ended.
pub(crate) async fn serve(options: &WebhooksCommand) -> Result<()> {
    let (held, _) = watch::channel(false);
    let tally = Mutex::new(Tally::new()?);
    let inside = Inside { hanging: options.hanging, held, waiting: AtomicUsize::new(0), tally };
    yardstick::listen(&options.listen, Router::new().fallback(receive).with_state(Arc::new(inside))).await
}

async fn receive(State(inside): State<Arc<Inside>>, uri: Uri, headers: HeaderMap, body: Bytes) -> String {
    match uri.path() {
        "/hold" => drop(inside.held.send_replace(true)),
        "/go" => drop(inside.held.send_replace(false)),
        "/waiting" => return inside.waiting.load(Ordering::Relaxed).to_string(),
        "/arrived" => return inside.arrived(),
        _ => inside.take(&headers, &body).await,
    }
    ANSWER.to_owned()
}

impl Inside {
    async fn take(&self, headers: &HeaderMap, body: &Bytes) {
        let came = MachineClock.now();
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if number_of(host).is_some_and(|number| number < self.hanging) {
            std::future::pending::<()>().await;
        }
        let mut held = self.held.subscribe();
        if *held.borrow_and_update() {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            // The sender is in `self`, so this ends only when it is told to.
            let _ = held.wait_for(|held| !held).await;
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        let now = Instant::now();
        let mut tally = self.tally.lock().expect("nobody panicked");
        tally.count += 1;
        tally.bytes += body.len() as u64;
        tally.span = Some((tally.span.map_or(now, |(first, _)| first), now));
        if let Some(then) = time_in(body) {
            tally.late.saturating_record(u64::try_from(came.micros() - then.micros()).unwrap_or(0));
        }
    }

    fn arrived(&self) -> String {
        let mut tally = self.tally.lock().expect("nobody panicked");
        let told = serde_json::to_string(&tally.told()).unwrap_or_default();
        if let Ok(empty) = Tally::new() {
            *tally = empty;
        }
        told
    }
}

/// The time of the state that the notification tells of.
fn time_in(body: &[u8]) -> Option<Timestamp> {
    const NAME: &[u8] = b"\"timestamp\":\"";
    let from = memmem::find(body, NAME)? + NAME.len();
    let text = body.get(from..)?.split(|byte| *byte == b'"').next()?;
    Timestamp::parse(std::str::from_utf8(text).ok()?).ok()
}

/// Each address of the loopback is an origin of its own, all at one port.
pub(crate) fn url(number: usize, port: &str) -> String {
    format!("http://127.1.{}.{}:{port}/hook", number / 250, number % 250 + 1)
}

fn number_of(host: &str) -> Option<usize> {
    let rest = host.strip_prefix("127.1.")?.split(':').next()?;
    let (high, low) = rest.split_once('.')?;
    Some(high.parse::<usize>().ok()? * 250 + low.parse::<usize>().ok()?.checked_sub(1)?)
}

/// `FIRST..END`: which origins are registered, in turn.
pub(crate) fn origins(text: &str) -> Result<std::ops::Range<usize>> {
    let (first, end) = text.split_once("..").context("origins are FIRST..END")?;
    Ok(first.parse()?..end.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_known_by_its_address() {
        for number in [0, 1, 249, 250, 999] {
            let url = url(number, "80");
            let host = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/hook")).expect("a host");
            assert_eq!(number_of(host), Some(number));
        }
        assert_eq!(number_of("127.0.0.1:80"), None);
        assert_eq!(origins("3..9").expect("a range"), 3..9);
    }

    #[test]
    fn the_time_is_found_in_what_is_told() {
        let body = br#"{"statusUpdate":{"status":{"state":"x","timestamp":"2026-11-15T10:00:00.125Z"}}}"#;
        assert_eq!(time_in(body).map(|time| time.micros() % 1_000_000), Some(125_000));
        assert_eq!(time_in(b"{}"), None);
    }
}
