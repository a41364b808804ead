//! How long keys of issuers are kept and how often they are fetched: the `[jwks]` section.

use serde::{Deserialize, Serialize};

/// How long keys of issuers are cached, and how often they are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwksLimits {
    /// A key set is cached for at least so long, regardless of its `Cache-Control`.
    pub min_age_s: u64,
    /// A key set is cached for at most so long. A withdrawn key is rejected after that at the latest.
    pub max_age_s: u64,
    /// A key set without `max-age` is cached for so long.
    pub usual_age_s: u64,
    /// How much longer a key set is used while it cannot be renewed: the issuer does not answer, or shows no usable key.
    pub stale_s: u64,
    /// A token with an unknown key id makes the node fetch the set again, at most this often. A new key is
    /// seen after that at the latest. Any client can send such a token, so 0 counts as 1.
    pub refresh_s: u64,
    /// After a fetch that failed there is no other for so long. 0 counts as 1.
    pub retry_s: u64,
    /// The size of a key set or a discovery document.
    pub body_bytes: u64,
    /// How many URLs are remembered.
    pub sets: usize,
}

impl Default for JwksLimits {
    fn default() -> Self {
        Self {
            min_age_s: 60,
            max_age_s: 3_600,
            usual_age_s: 300,
            stale_s: 3_600,
            refresh_s: 30,
            retry_s: 5,
            body_bytes: 256 * 1024,
            sets: 256,
        }
    }
}

impl JwksLimits {
    pub(super) fn age(&self, said: Option<u64>) -> u64 {
        said.unwrap_or(self.usual_age_s).clamp(self.min_age_s.min(self.max_age_s), self.max_age_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_outside_the_bounds_is_brought_inside() {
        let limits = JwksLimits::default();
        let ages = [None, Some(0), Some(59), Some(60), Some(61), Some(3_599), Some(3_600), Some(3_601), Some(u64::MAX)];
        assert_eq!(ages.map(|said| limits.age(said)), [300, 60, 60, 60, 61, 3_599, 3_600, 3_600, 3_600]);
    }
}
