//! How long keys are kept and how often they are asked for.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwksLimits {
    /// Kept at least so long, whatever the answer says.
    pub least_age_s: u64,
    /// Kept at most so long.
    pub most_age_s: u64,
    /// Kept so long where the answer says nothing.
    pub usual_age_s: u64,
    /// How much longer they may be used while they cannot be renewed.
    pub stale_s: u64,
    /// An unknown key id makes us ask again at most this often.
    pub refresh_s: u64,
    /// After a failure nobody asks again for so long.
    pub retry_s: u64,
    /// The size of a key set or a discovery document.
    pub body_bytes: u64,
    /// How many URLs are remembered.
    pub sets: usize,
}

impl Default for JwksLimits {
    fn default() -> Self {
        Self {
            least_age_s: 60,
            most_age_s: 3_600,
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
        said.unwrap_or(self.usual_age_s).clamp(self.least_age_s.min(self.most_age_s), self.most_age_s)
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
