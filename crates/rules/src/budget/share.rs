//! The share of a common cap that one call of unknown cost may hold.

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

const MILLION: u32 = 1_000_000;

/// `budget.unknown_share`: a part of a cap, in whole millionths. Written as a number above 0 and up to 1; a quarter by default.
///
/// The need of such a call is unknown, so in a scope of its own it holds all that is left. In a scope that
/// others are charged to as well (`global`, `tenant`) it would lock them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnknownShare(u32);

impl Default for UnknownShare {
    fn default() -> Self {
        Self(MILLION / 4)
    }
}

impl UnknownShare {
    /// None unless the share is above 0 and no more than all of it.
    pub fn new(share: f64) -> Option<Self> {
        let millionths = (share * f64::from(MILLION)).round();
        (millionths >= 1.0 && millionths <= f64::from(MILLION)).then_some(Self(millionths as u32))
    }

    /// So much of a cap, and of one above zero at least the smallest unit. `u64::MAX` is no cap and stays
    /// none.
    pub(super) fn of(self, cap: u64) -> u64 {
        if cap == u64::MAX {
            return cap;
        }
        let part = u128::from(cap) * u128::from(self.0) / u128::from(MILLION);
        u64::try_from(part).unwrap_or(cap).max(1).min(cap)
    }
}

impl Serialize for UnknownShare {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(f64::from(self.0) / f64::from(MILLION))
    }
}

impl<'de> Deserialize<'de> for UnknownShare {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(from)?;
        Self::new(share).ok_or_else(|| D::Error::custom("a share is more than 0 and at most 1, such as 0.25"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_above_nothing_and_at_most_all() {
        let read = |text: &str| serde_json::from_str::<UnknownShare>(text);
        for (text, millionths) in [("0.25", 250_000), ("0.000001", 1), ("1.0", MILLION), ("0.333333", 333_333)] {
            let share = read(text).unwrap();
            assert_eq!(share, UnknownShare(millionths));
            assert_eq!(read(&serde_json::to_string(&share).unwrap()).unwrap(), share, "written and read again");
        }
        assert_eq!(read("1").unwrap(), UnknownShare(MILLION));
        for text in ["0", "-0.25", "0.0000001", "1.000001", "2", "1e308", "-1e308"] {
            let fault = read(text).unwrap_err().to_string();
            assert!(fault.contains("more than 0 and at most 1"), "{text}: {fault}");
        }
        for text in ["\"a quarter\"", "null", "true"] {
            read(text).unwrap_err();
        }
    }

    #[test]
    fn a_part_of_a_cap_is_exact_and_never_nothing() {
        let quarter = UnknownShare::default();
        for (cap, part) in
            [(10_000_000, 2_500_000), (7, 1), (3, 1), (1, 1), (0, 0), (u64::MAX, u64::MAX), (u64::MAX - 1, u64::MAX / 4)]
        {
            assert_eq!(quarter.of(cap), part, "{cap}");
        }
        let all = UnknownShare::new(1.0).unwrap();
        assert_eq!([all.of(0), all.of(9), all.of(u64::MAX - 1)], [0, 9, u64::MAX - 1]);
        assert_eq!(UnknownShare::new(f64::NAN), None);
    }
}
