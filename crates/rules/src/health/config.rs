//! The `[health]` section: when a peer is left alone, and for how long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::routing::Share;
use crate::setting::{more_than_one, more_than_zero, one_to_hundred, up_to_half};

/// All of the section. Each part knows its own keys; no key belongs to two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthConfig {
    /// The circuit breakers.
    pub breaker: BreakerConfig,
    /// The ejection of replicas that are worse than the others.
    pub outliers: OutlierConfig,
    /// The checks of replicas that fail.
    pub checks: CheckConfig,
}

/// Settings of circuit breakers, in `[health]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerConfig {
    /// Failures in a row that open the breaker.
    #[serde(deserialize_with = "more_than_zero")]
    pub failures: u32,
    /// The share of failures within the window that opens it too.
    #[serde(deserialize_with = "one_to_hundred")]
    pub failure_percent: u32,
    /// With fewer results than this in the window the share says nothing.
    #[serde(deserialize_with = "more_than_zero")]
    pub failure_percent_of: u32,
    /// How far back results count.
    #[serde(deserialize_with = "more_than_zero")]
    pub window_ms: u64,
    /// How long an open breaker lets nothing through; doubled each time the probe after it fails.
    #[serde(deserialize_with = "more_than_zero")]
    pub cooldown_ms: u64,
    /// It is doubled up to this.
    #[serde(deserialize_with = "more_than_zero")]
    pub max_cooldown_ms: u64,
    /// A probe of which nothing is heard for this long has failed.
    #[serde(deserialize_with = "more_than_zero")]
    pub probe_ms: u64,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failures: 5,
            failure_percent: 50,
            failure_percent_of: 20,
            window_ms: 60_000,
            cooldown_ms: 5_000,
            max_cooldown_ms: 300_000,
            probe_ms: 60_000,
        }
    }
}

impl BreakerConfig {
    /// Returns the time in which failures count.
    pub fn window(&self) -> Duration {
        Duration::from_millis(self.window_ms)
    }

    pub(super) fn probe(&self) -> Duration {
        Duration::from_millis(self.probe_ms)
    }

    /// After this many openings in a row. The first cooldown is never cut short by a smaller limit.
    pub(super) fn cooldown(&self, openings: u32) -> Duration {
        doubled(self.cooldown_ms, self.max_cooldown_ms, openings)
    }

    pub(super) fn is_too_much(&self, (results, failed): (u32, Share)) -> bool {
        results >= self.failure_percent_of && failed >= Share::percent(self.failure_percent)
    }
}

/// Settings of the ejection of replicas, in `[health]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutlierConfig {
    /// Out goes who fails this many percentage points more often than its siblings do.
    #[serde(deserialize_with = "one_to_hundred")]
    pub eject_failure_points: u32,
    /// Out goes who takes this many times as long as its siblings.
    #[serde(deserialize_with = "more_than_one")]
    pub eject_latency_multiple: u32,
    /// No peer this fast is too slow, regardless of its siblings.
    pub eject_latency_above_ms: u64,
    /// With fewer results than this in the window no peer is compared.
    #[serde(deserialize_with = "more_than_zero")]
    pub eject_results: u32,
    /// For how long; doubled each time it happens again soon.
    #[serde(deserialize_with = "more_than_zero")]
    pub eject_ms: u64,
    /// It is doubled up to this.
    #[serde(deserialize_with = "more_than_zero")]
    pub max_eject_ms: u64,
    /// No more of a pool than this is out at once. 0 turns ejection off.
    #[serde(deserialize_with = "up_to_half")]
    pub ejected_percent: u32,
}

impl Default for OutlierConfig {
    fn default() -> Self {
        Self {
            eject_failure_points: 30,
            eject_latency_multiple: 5,
            eject_latency_above_ms: 1_000,
            eject_results: 10,
            eject_ms: 30_000,
            max_eject_ms: 300_000,
            ejected_percent: 50,
        }
    }
}

impl OutlierConfig {
    pub(super) fn ejection(&self, times: u32) -> Duration {
        doubled(self.eject_ms, self.max_eject_ms, times)
    }

    /// For how long after its return an ejection is held against a peer.
    pub(super) fn remembered(&self) -> Duration {
        Duration::from_millis(self.max_eject_ms)
    }

    /// How many of a pool may be out: never more than half, and so never the last one.
    pub(super) fn most(&self, pool: usize) -> usize {
        (pool as u128 * u128::from(self.ejected_percent.min(50)) / 100) as usize
    }
}

/// Settings of the checks of replicas, in `[health]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckConfig {
    /// A peer that was silent for this long gets a health check. 0 turns the checks off.
    pub check_every_ms: u64,
}

impl Default for CheckConfig {
    fn default() -> Self {
        Self { check_every_ms: 30_000 }
    }
}

fn doubled(first_ms: u64, most_ms: u64, times: u32) -> Duration {
    let doubled = if times < u64::BITS { first_ms.saturating_mul(1 << times) } else { u64::MAX };
    Duration::from_millis(doubled.min(most_ms.max(first_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;

    fn reads<T: DeserializeOwned>(key: &str, value: i64) -> bool {
        serde_json::from_str::<T>(&format!("{{\"{key}\":{value}}}")).is_ok()
    }

    #[test]
    fn every_setting_is_taken_at_its_edge_and_refused_beyond() {
        for key in ["failures", "failure_percent_of", "window_ms", "cooldown_ms", "max_cooldown_ms", "probe_ms"] {
            assert!(!reads::<BreakerConfig>(key, 0) && reads::<BreakerConfig>(key, 1), "{key}");
        }
        for (value, taken) in [(0, false), (1, true), (100, true), (101, false), (-1, false)] {
            assert_eq!(reads::<BreakerConfig>("failure_percent", value), taken, "{value}");
            assert_eq!(reads::<OutlierConfig>("eject_failure_points", value), taken, "{value}");
        }
        for key in ["eject_results", "eject_ms", "max_eject_ms"] {
            assert!(!reads::<OutlierConfig>(key, 0) && reads::<OutlierConfig>(key, 1), "{key}");
        }
        assert!(!reads::<OutlierConfig>("eject_latency_multiple", 1) && reads::<OutlierConfig>("eject_latency_multiple", 2));
        assert!(reads::<OutlierConfig>("eject_latency_above_ms", 0));
        assert!(reads::<OutlierConfig>("ejected_percent", 0) && reads::<OutlierConfig>("ejected_percent", 50));
        assert!(!reads::<OutlierConfig>("ejected_percent", 51));
        assert!(reads::<CheckConfig>("check_every_ms", 0));
        assert!(!reads::<CheckConfig>("check_every", 1), "an unknown key");
    }

    #[test]
    fn waiting_doubles_up_to_its_limit() {
        let config = BreakerConfig { cooldown_ms: 5, max_cooldown_ms: 30, ..BreakerConfig::default() };
        let waits: Vec<_> = [0, 1, 2, 3, 63, 64, u32::MAX].map(|openings| config.cooldown(openings).as_millis()).to_vec();
        assert_eq!(waits, [5, 10, 20, 30, 30, 30, 30]);
        let endless = BreakerConfig { cooldown_ms: u64::MAX, max_cooldown_ms: 1, ..config };
        assert_eq!(endless.cooldown(9), Duration::from_millis(u64::MAX));
    }

    #[test]
    fn never_more_than_half_of_a_pool_may_be_out_and_never_the_last_one() {
        let config = OutlierConfig::default();
        assert_eq!([0, 1, 2, 3, 4, 5].map(|pool| config.most(pool)), [0, 0, 1, 1, 2, 2]);
        let set_in_code = OutlierConfig { ejected_percent: 100, ..OutlierConfig::default() };
        assert_eq!(set_in_code.most(4), 2);
        assert_eq!(OutlierConfig { ejected_percent: 0, ..config }.most(100), 0);
    }
}
