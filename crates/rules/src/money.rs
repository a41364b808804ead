//! Money, as whole millionths of a dollar.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

const MICROS: i64 = 1_000_000;
/// Decimals that are kept.
const DECIMALS: usize = 6;

/// An amount of micro-dollars: 1 USD is 1,000,000 of them.
///
/// Read from a decimal string or a number; written as a string with two to six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MicroUsd(pub i64);

/// Why something is not an amount of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoneyFault {
    /// The text is not a number.
    NotANumber,
    /// The amount is negative.
    Negative,
    /// The amount has more than six decimal places.
    TooFine,
    /// The amount is too large.
    TooMuch,
}

/// What to do with decimals after the sixth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finer {
    Refused,
    RoundedUp,
}

impl MicroUsd {
    /// No money.
    pub const ZERO: Self = Self(0);
    /// 9,000,000,000 USD: more than this is a mistake.
    pub const MOST: Self = Self(9_000_000_000 * MICROS);

    /// A plain decimal such as `0.05`: no sign, no exponent, at most six decimals.
    pub fn parse(text: &str) -> Result<Self, MoneyFault> {
        read(text, Finer::Refused)
    }

    /// The same for amounts that were computed with floats: a fraction of a millionth counts as a whole one.
    pub fn parse_rounding_up(text: &str) -> Result<Self, MoneyFault> {
        read(text, Finer::RoundedUp)
    }

    /// By the shortest decimal that stands for the number, which is the one that was written.
    pub fn from_f64(number: f64) -> Result<Self, MoneyFault> {
        from_f64(number, Finer::Refused)
    }

    /// Makes an amount of a number of dollars. A fraction of a millionth counts as one.
    pub fn from_f64_rounding_up(number: f64) -> Result<Self, MoneyFault> {
        from_f64(number, Finer::RoundedUp)
    }

    /// Adds two amounts, or returns `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Subtracts an amount, or returns `None` on overflow.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Adds two amounts. A sum that would overflow stays at the maximum.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Subtracts an amount. A difference that would overflow stays at its limit.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// So many times as much.
    #[must_use]
    pub fn saturating_mul(self, times: u64) -> Self {
        let product = i128::from(self.0) * i128::from(times);
        Self(i64::try_from(product).unwrap_or(if product < 0 { i64::MIN } else { i64::MAX }))
    }
}

fn from_f64(number: f64, finer: Finer) -> Result<MicroUsd, MoneyFault> {
    if !number.is_finite() {
        return Err(MoneyFault::NotANumber);
    }
    if number < 0.0 {
        return Err(MoneyFault::Negative);
    }
    // Before it is written out: the largest have hundreds of digits. The sign of a zero says nothing.
    if number > MicroUsd::MOST.0 as f64 {
        return Err(MoneyFault::TooMuch);
    }
    read(&number.abs().to_string(), finer)
}

fn read(text: &str, finer: Finer) -> Result<MicroUsd, MoneyFault> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole.strip_prefix('-').unwrap_or(whole)) || !digits(decimals) {
        return Err(MoneyFault::NotANumber);
    }
    if whole.starts_with('-') {
        return Err(MoneyFault::Negative);
    }
    let (kept, dropped) = decimals.split_at(decimals.len().min(DECIMALS));
    if finer == Finer::Refused && !dropped.is_empty() {
        return Err(MoneyFault::TooFine);
    }
    // What does not fit a number is over the limit for certain.
    let dollars: i64 = whole.parse().map_err(|_| MoneyFault::TooMuch)?;
    let millionths: i64 = format!("{kept:0<DECIMALS$}").parse().map_err(|_| MoneyFault::NotANumber)?;
    let up = i64::from(dropped.bytes().any(|byte| byte != b'0'));
    dollars
        .checked_mul(MICROS)
        .and_then(|micros| micros.checked_add(millionths + up))
        .map(MicroUsd)
        .filter(|amount| *amount <= MicroUsd::MOST)
        .ok_or(MoneyFault::TooMuch)
}

impl FromStr for MicroUsd {
    type Err = MoneyFault;

    fn from_str(text: &str) -> Result<Self, MoneyFault> {
        Self::parse(text)
    }
}

impl fmt::Display for MicroUsd {
    /// At least two decimals, and as many as it takes to be exact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0.unsigned_abs() / MICROS as u64, self.0.unsigned_abs() % MICROS as u64);
        let sign = if self.0 < 0 { "-" } else { "" };
        let decimals = format!("{rest:06}");
        let exact = decimals.trim_end_matches('0');
        write!(f, "{sign}{whole}.{}", &decimals[..exact.len().max(2)])
    }
}

impl fmt::Display for MoneyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "an amount of USD is a decimal number such as \"0.05\"",
            Self::Negative => "an amount of USD is not negative",
            Self::TooFine => "an amount of USD has at most six decimals",
            Self::TooMuch => "an amount of USD is at most 9000000000",
        })
    }
}

impl std::error::Error for MoneyFault {}

impl Serialize for MicroUsd {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MicroUsd {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct MicroUsdVisitor;
        impl Visitor<'_> for MicroUsdVisitor {
            type Value = MicroUsd;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount of USD, as a decimal string or a number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<MicroUsd, E> {
                MicroUsd::parse(text).map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<MicroUsd, E> {
                MicroUsd::from_f64(number).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<MicroUsd, E> {
                MicroUsd::parse(&number.to_string()).map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<MicroUsd, E> {
                MicroUsd::parse(&number.to_string()).map_err(E::custom)
            }
        }
        from.deserialize_any(MicroUsdVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MoneyFault::{Negative, NotANumber, TooFine, TooMuch};

    #[test]
    fn an_amount_is_written_in_dollars_to_the_last_millionth_that_is_not_nothing() {
        for (micros, text) in [
            (0, "0.00"),
            (500_000, "0.50"),
            (50_000, "0.05"),
            (1_234_000, "1.234"),
            (-1, "-0.000001"),
            (12_000_001, "12.000001"),
            (i64::MIN, "-9223372036854.775808"),
        ] {
            assert_eq!(MicroUsd(micros).to_string(), text);
        }
    }

    #[test]
    fn text_is_read_exactly_or_refused_with_the_reason() {
        for (text, read) in [
            ("0", Ok(0)),
            ("0.05", Ok(50_000)),
            ("5", Ok(5_000_000)),
            ("0.000001", Ok(1)),
            ("007.10", Ok(7_100_000)),
            ("9000000000", Ok(9_000_000_000_000_000)),
            ("9000000000.000001", Err(TooMuch)),
            ("99999999999999999999999999", Err(TooMuch)),
            ("9300000000000", Err(TooMuch)),
            ("0.0000001", Err(TooFine)),
            ("0.0500000", Err(TooFine)),
            ("-0.05", Err(Negative)),
            ("-1", Err(Negative)),
            ("", Err(NotANumber)),
            ("-", Err(NotANumber)),
            (".5", Err(NotANumber)),
            ("5.", Err(NotANumber)),
            ("1e3", Err(NotANumber)),
            ("+1", Err(NotANumber)),
            ("NaN", Err(NotANumber)),
            ("inf", Err(NotANumber)),
            ("1 000", Err(NotANumber)),
            ("1,5", Err(NotANumber)),
            ("٣", Err(NotANumber)),
        ] {
            assert_eq!(MicroUsd::parse(text), read.map(MicroUsd), "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for (number, read) in [
            (0.05, Ok(50_000)),
            (-0.0, Ok(0)),
            (1e9, Ok(1_000_000_000_000_000)),
            (9e9, Ok(9_000_000_000_000_000)),
            (9_000_000_001.0, Err(TooMuch)),
            (1e-7, Err(TooFine)),
            (0.1 + 0.2, Err(TooFine)),
            (1e308, Err(TooMuch)),
            (-1e308, Err(Negative)),
            (-0.01, Err(Negative)),
            (f64::NAN, Err(NotANumber)),
            (f64::INFINITY, Err(NotANumber)),
            (f64::NEG_INFINITY, Err(NotANumber)),
        ] {
            assert_eq!(MicroUsd::from_f64(number), read.map(MicroUsd), "{number}");
        }
    }

    #[test]
    fn what_was_computed_with_floats_counts_to_the_next_millionth() {
        assert_eq!(MicroUsd::from_f64_rounding_up(0.1 + 0.2), Ok(MicroUsd(300_001)));
        assert_eq!(MicroUsd::from_f64_rounding_up(1.2e-5), Ok(MicroUsd(12)));
        assert_eq!(MicroUsd::from_f64_rounding_up(1e-300), Ok(MicroUsd(1)));
        assert_eq!(MicroUsd::parse_rounding_up("0.0500000"), Ok(MicroUsd(50_000)));
        assert_eq!(MicroUsd::parse_rounding_up("0.9999999"), Ok(MicroUsd(1_000_000)));
        assert_eq!(MicroUsd::parse_rounding_up("9000000000.0000001"), Err(TooMuch));
        assert_eq!(MicroUsd::parse_rounding_up("-0.0000001"), Err(Negative));
    }

    #[test]
    fn json_takes_strings_and_numbers_and_writes_strings() {
        for (json, micros) in [("\"0.05\"", 50_000), ("0.05", 50_000), ("5", 5_000_000), ("5.0", 5_000_000), ("0", 0)] {
            assert_eq!(serde_json::from_str::<MicroUsd>(json).unwrap(), MicroUsd(micros), "{json}");
        }
        for json in ["-1", "-0.5", "1e308", "18446744073709551615", "\"NaN\"", "0.1234567", "true", "null", "[]"] {
            assert!(serde_json::from_str::<MicroUsd>(json).is_err(), "{json}");
        }
        let fault = serde_json::from_str::<MicroUsd>("0.1234567").unwrap_err().to_string();
        assert!(fault.contains("at most six decimals"), "{fault}");
        assert_eq!(serde_json::to_string(&MicroUsd(50_000)).unwrap(), "\"0.05\"");
    }

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(MicroUsd(i64::MAX).checked_add(MicroUsd(1)), None);
        assert_eq!(MicroUsd(i64::MIN).checked_sub(MicroUsd(1)), None);
        assert_eq!(MicroUsd(i64::MAX).saturating_add(MicroUsd(1)), MicroUsd(i64::MAX));
        assert_eq!(MicroUsd(3).saturating_sub(MicroUsd(5)), MicroUsd(-2));
        assert_eq!(MicroUsd(3).saturating_mul(u64::MAX), MicroUsd(i64::MAX));
        assert_eq!(MicroUsd(-3).saturating_mul(u64::MAX), MicroUsd(i64::MIN));
        assert_eq!(MicroUsd(3).saturating_mul(7), MicroUsd(21));
    }
}
