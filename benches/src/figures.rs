//! What one run of load measured.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The figures of one run, as a child process hands them to its parent and as a person reads them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
    /// Bytes of one answer's body.
    pub(crate) body_bytes: usize,
    /// Events of one answer, 0 where it is not a stream.
    pub(crate) events: usize,
    /// Bytes of one request and its answer, heads and prefixes included.
    pub(crate) wire_bytes: usize,
    /// Share of one core the load itself used: near 1 means that the load was the limit.
    pub(crate) client_busy: f64,
    /// The same for the server, where its process is known.
    pub(crate) server_busy: Option<f64>,
    /// Processor time of the server for one request.
    pub(crate) server_us: Option<f64>,
}

/// One request and its answer, by size.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestShape {
    pub(crate) body: usize,
    pub(crate) events: usize,
    pub(crate) wire: usize,
}

/// Processor time used during the measured span.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessorTime {
    pub(crate) client: Duration,
    pub(crate) server: Option<Duration>,
}

impl Figures {
    pub(crate) fn new(latency: &Histogram<u64>, span: Duration, used: ProcessorTime, shape: RequestShape) -> Self {
        let requests = latency.len();
        let seconds = span.as_secs_f64();
        let micros = |quantile| latency.value_at_quantile(quantile) as f64 / 1000.0;
        Self {
            requests,
            seconds,
            per_second: requests as f64 / seconds,
            p50_us: micros(0.50),
            p90_us: micros(0.90),
            p99_us: micros(0.99),
            p999_us: micros(0.999),
            max_us: latency.max() as f64 / 1000.0,
            body_bytes: shape.body,
            events: shape.events,
            wire_bytes: shape.wire,
            client_busy: used.client.as_secs_f64() / seconds,
            server_busy: used.server.map(|time| time.as_secs_f64() / seconds),
            server_us: used.server.map(|time| time.as_secs_f64() * 1e6 / requests.max(1) as f64),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:.0} requests/s   ({} in {:.2} s; body {} bytes, {} events, {} bytes on the wire)",
            self.per_second, self.requests, self.seconds, self.body_bytes, self.events, self.wire_bytes
        )?;
        writeln!(
            f,
            "latency µs   p50 {:.0}   p90 {:.0}   p99 {:.0}   p99.9 {:.0}   max {:.0}",
            self.p50_us, self.p90_us, self.p99_us, self.p999_us, self.max_us
        )?;
        write!(f, "load used {:.0} % of a core", self.client_busy * 100.0)?;
        if let (Some(busy), Some(us)) = (self.server_busy, self.server_us) {
            write!(f, ", server {:.0} %: {us:.1} µs of processor a request", busy * 100.0)?;
        }
        Ok(())
    }
}
