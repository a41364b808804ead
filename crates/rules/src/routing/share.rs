//! A part of a whole, counted in millionths so that any two can be compared.

use std::fmt;

/// From nothing to everything; never beyond, never undefined.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Share(u32);

const WHOLE: u32 = 1_000_000;

impl Share {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The whole.
    pub const ALL: Self = Self(WHOLE);

    /// Of nothing there is no part.
    pub fn of(part: u64, whole: u64) -> Self {
        let millionths = u128::from(part) * u128::from(WHOLE) / u128::from(whole.max(1));
        if whole == 0 { Self::NONE } else { Self(u32::try_from(millionths).unwrap_or(WHOLE).min(WHOLE)) }
    }

    /// Makes a share of a percentage.
    pub fn percent(percent: u32) -> Self {
        Self::of(percent.into(), 100)
    }

    /// Returns the share in millionths.
    pub fn millionths(self) -> u32 {
        self.0
    }

    /// By how much it is more than the other.
    pub(crate) fn above(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} %", self.0 / 10_000, self.0 / 1_000 % 10)
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_stays_between_nothing_and_all() {
        assert_eq!(Share::of(0, 0), Share::NONE);
        assert_eq!(Share::of(1, 0), Share::NONE);
        assert_eq!(Share::of(u64::MAX, 1), Share::ALL);
        assert_eq!(Share::of(u64::MAX, u64::MAX), Share::ALL);
        assert_eq!(Share::of(1, u64::MAX), Share::NONE);
        assert_eq!(Share::percent(50).to_string(), "50.0 %");
        assert_eq!(Share::percent(200), Share::ALL);
        assert_eq!(Share::percent(70).above(Share::percent(30)), Share::percent(40));
        assert_eq!(Share::NONE.above(Share::ALL), Share::NONE);
        assert!(Share::of(1, 3) < Share::of(2, 3));
    }
}
