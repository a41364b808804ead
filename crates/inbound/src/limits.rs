//! The named limits on connections, calls and their bytes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::trusted_proxies::TrustedProxies;

/// Part of the `[limits]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InboundLimits {
    /// Bytes of one request body, counted as they arrive.
    pub body_bytes: usize,
    /// Bytes of a request's head over HTTP/1.1, or of its header list over HTTP/2.
    pub header_bytes: usize,
    /// The largest number of headers of a request.
    pub header_count: usize,
    /// How long a connection may take to send a request's head; also how long it may sit idle between requests.
    pub header_read_ms: u64,
    /// How long a TLS handshake may take.
    pub tls_handshake_ms: u64,
    /// TLS handshakes of one address whose peers have sent nothing yet. One more takes the place of the oldest.
    pub tls_handshakes_per_address: usize,
    /// TLS handshakes of one address whose peers have sent their first message. One more takes the place of the oldest.
    pub tls_hellos_per_address: usize,
    /// Both for all addresses together: the one that has most makes room.
    pub tls_handshakes: usize,
    /// Bytes of bodies that are being read from one caller, or worked on; from one address, where callers have no credentials.
    pub reading_bytes_per_caller: u64,
    /// The same for all callers together.
    pub reading_bytes_per_node: u64,
    /// How long a request may take to send its body.
    pub body_read_ms: u64,
    /// How long a peer may take no byte of what is sent to it before the connection is closed.
    pub write_stall_ms: u64,
    /// The largest number of open connections.
    pub connections: usize,
    /// Connections of one address without a client certificate, and with each certificate.
    pub connections_per_address: usize,
    /// Proxies whose `X-Forwarded-For` says which address a call is from. Their own connections and handshakes have no
    /// limit per address.
    pub trusted_proxies: TrustedProxies,
    /// Calls in flight on one HTTP/2 connection.
    pub http2_streams: u32,
    /// Calls a second, on average, from one caller; 0 for no limit.
    pub calls_per_second_per_caller: u32,
    /// How many calls one caller may make at once after a pause.
    pub calls_burst_per_caller: u32,
    /// The rate of calls of one address. 0 sets no limit.
    pub calls_per_second_per_address: u32,
    /// The number of calls that one address can make at once.
    pub calls_burst_per_address: u32,
    /// Bytes of the id of a JSON-RPC call, which is repeated in its answer.
    pub json_rpc_id_bytes: usize,
    /// Agents in one page of the catalog.
    pub catalog_page: usize,
    /// How often an idle stream says that it is still there.
    pub stream_heartbeat_ms: u64,
    /// How often a blocking call that still waits for its agent sends white space, after its head; 0 for never.
    pub unary_keepalive_ms: u64,
    /// How long a client of the original protocol may listen for a task that it has not sent yet.
    pub listen_ms: u64,
    /// How long a stop waits for connections to finish.
    pub drain_ms: u64,
}

impl Default for InboundLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            header_bytes: 16 * 1024,
            header_count: 100,
            header_read_ms: 30_000,
            tls_handshake_ms: 10_000,
            tls_handshakes_per_address: 256,
            tls_hellos_per_address: 2_048,
            tls_handshakes: 4_096,
            reading_bytes_per_caller: 32 * 1024 * 1024,
            reading_bytes_per_node: 256 * 1024 * 1024,
            body_read_ms: 30_000,
            write_stall_ms: 30_000,
            connections: 20_000,
            connections_per_address: 256,
            trusted_proxies: TrustedProxies::default(),
            http2_streams: 128,
            calls_per_second_per_caller: 1_000,
            calls_burst_per_caller: 2_000,
            calls_per_second_per_address: 2_000,
            calls_burst_per_address: 4_000,
            json_rpc_id_bytes: 256,
            catalog_page: 100,
            stream_heartbeat_ms: 4_000,
            unary_keepalive_ms: 4_000,
            listen_ms: 60_000,
            drain_ms: 5_000,
        }
    }
}

impl InboundLimits {
    pub(crate) fn body_read(&self) -> Duration {
        Duration::from_millis(self.body_read_ms)
    }

    pub(crate) fn stream_heartbeat(&self) -> Duration {
        Duration::from_millis(self.stream_heartbeat_ms.max(1))
    }

    pub(crate) fn unary_keepalive(&self) -> Duration {
        Duration::from_millis(self.unary_keepalive_ms.max(1))
    }

    /// When the head of a blocking call's answer goes out at the latest: after three quarters of the interval, so that the head
    /// and the first white space each come before a client that waits a little more than one interval gives up.
    pub(crate) fn unary_head_delay(&self) -> Option<Duration> {
        (self.unary_keepalive_ms > 0).then(|| self.unary_keepalive().mul_f64(0.75).max(Duration::from_millis(1)))
    }
}
