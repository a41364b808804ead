//! How many deliveries at once and a second, and when an origin is left alone.

use serde::{Deserialize, Serialize};

use crate::health::BreakerConfig;
use crate::setting::more_than_zero;

/// Limits on deliveries at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlotLimits {
    /// Deliveries in flight at once, over all tenants.
    #[serde(deserialize_with = "more_than_zero")]
    pub in_flight: u32,
    /// Of one tenant.
    #[serde(deserialize_with = "more_than_zero")]
    pub in_flight_per_tenant: u32,
    /// To one origin, to begin with. It follows what the origin bears.
    #[serde(deserialize_with = "more_than_zero")]
    pub in_flight_per_origin: u32,
    /// To one origin, however much it bears.
    #[serde(deserialize_with = "more_than_zero")]
    pub max_in_flight_per_origin: u32,
    /// Requests a second to one host, of all tenants together. 0 turns it off.
    pub host_requests_per_second: u32,
}

impl Default for SlotLimits {
    fn default() -> Self {
        Self {
            in_flight: 1_024,
            in_flight_per_tenant: 256,
            in_flight_per_origin: 8,
            max_in_flight_per_origin: 32,
            host_requests_per_second: 50,
        }
    }
}

/// Webhooks are left alone for longer than peers: no call waits for them.
pub fn push_breaker() -> BreakerConfig {
    BreakerConfig {
        failures: 5,
        failure_percent: 50,
        failure_percent_of: 20,
        window_ms: 60_000,
        cooldown_ms: 30_000,
        max_cooldown_ms: 15 * 60_000,
        probe_ms: 30_000,
    }
}
