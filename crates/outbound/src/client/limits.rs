//! The named limits on calls to one agent: the `[a2a.client]` section.

use std::time::Duration;

use chancery_wire::JsonLimits;
use serde::{Deserialize, Serialize};

/// The limits of calls to other agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientLimits {
    /// Finding the agent's address and reaching it.
    pub connect_ms: u64,
    /// How long an agent may be silent: before its answer is whole, or between two parts of a stream, heartbeats included.
    pub read_ms: u64,
    /// How long a call waits here for its turn when the agent has calls enough.
    pub queue_ms: u64,
    /// Bytes of one answer.
    pub answer_bytes: usize,
    /// Bytes of one event of a stream.
    pub event_bytes: usize,
    /// Arrays and objects inside each other, in answers and events.
    pub json_depth: usize,
    /// Values in one answer or event.
    pub json_nodes: usize,
    /// Calls without an answer yet, per agent.
    pub calls_in_flight: usize,
    /// Open streams, per agent.
    pub streams: usize,
    /// How often a call that cannot have arrived is tried again.
    pub retries: u32,
    /// The pause before the first such try; it doubles with each.
    pub retry_pause_ms: u64,
    /// How often the client calls.
    pub rate_limit: RateLimit,
    /// Frames a second on one SWP connection. Who has more to say opens another.
    pub swp_frames: u32,
    /// SWP connections that are kept open for the next call.
    pub swp_idle: usize,
}

/// A token bucket per agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimit {
    /// Calls a second, on average; 0 for no limit.
    pub per_second: u32,
    /// Calls at once after a pause.
    pub burst: u32,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { per_second: 10_000, burst: 20_000 }
    }
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect_ms: 10_000,
            read_ms: 60_000,
            queue_ms: 5_000,
            answer_bytes: 16 * 1024 * 1024,
            event_bytes: 8 * 1024 * 1024,
            json_depth: 100,
            json_nodes: 1_000_000,
            calls_in_flight: 8_192,
            streams: 8_192,
            retries: 2,
            retry_pause_ms: 100,
            rate_limit: RateLimit::default(),
            swp_frames: 100,
            swp_idle: 64,
        }
    }
}

/// Names of members are the peer's own; these are only kept from being endless.
const KEY_BYTES: usize = 65_536;

impl ClientLimits {
    pub(super) fn connect(&self) -> Duration {
        milliseconds(self.connect_ms)
    }

    pub(super) fn read(&self) -> Duration {
        milliseconds(self.read_ms)
    }

    pub(super) fn queue(&self) -> Duration {
        milliseconds(self.queue_ms)
    }

    pub(super) fn retry_pause(&self, tried: u32) -> Duration {
        milliseconds(self.retry_pause_ms.saturating_mul(1 << tried.min(16)))
    }

    pub(super) fn json(&self) -> JsonLimits {
        JsonLimits { json_depth: self.json_depth, json_nodes: self.json_nodes, json_key_bytes: KEY_BYTES }
    }

    /// The settings that would refuse everything, which no operator intends.
    pub fn faults(&self) -> Vec<&'static str> {
        let zero = [
            ("connect_ms", self.connect_ms == 0),
            ("read_ms", self.read_ms == 0),
            ("answer_bytes", self.answer_bytes == 0),
            ("event_bytes", self.event_bytes == 0),
            ("json_depth", self.json_depth == 0),
            ("json_nodes", self.json_nodes == 0),
            ("calls_in_flight", self.calls_in_flight == 0),
            ("streams", self.streams == 0),
        ];
        zero.into_iter().filter(|(_, is_zero)| *is_zero).map(|(name, _)| name).collect()
    }
}

/// Never so long that it cannot be added to a time.
fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number.min(365 * 24 * 3_600 * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_setting_has_its_default_and_an_unknown_one_is_refused() {
        assert_eq!(serde_json::from_str::<ClientLimits>("{}").unwrap(), ClientLimits::default());
        let set = serde_json::from_str::<ClientLimits>(r#"{"rate_limit":{"per_second":5}}"#).unwrap();
        assert_eq!(set.rate_limit, RateLimit { per_second: 5, ..RateLimit::default() });
        assert!(serde_json::from_str::<ClientLimits>(r#"{"read":5}"#).unwrap_err().to_string().contains("read"));
    }

    #[test]
    fn a_limit_of_zero_is_a_fault() {
        assert_eq!(ClientLimits::default().faults(), [""; 0]);
        let none = ClientLimits { read_ms: 0, streams: 0, ..ClientLimits::default() };
        assert_eq!(none.faults(), ["read_ms", "streams"]);
    }

    #[test]
    fn the_pause_between_tries_doubles() {
        let limits = ClientLimits { retry_pause_ms: 100, ..ClientLimits::default() };
        let pauses: Vec<_> = (0..4).map(|tried| limits.retry_pause(tried).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800]);
        let _ = limits.retry_pause(u32::MAX);
    }
}
