//! Money, as whole millionths of a dollar.

use std::fmt;

/// An amount of micro-dollars: 1 USD is 1,000,000 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MicroUsd(pub i64);

impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0.unsigned_abs() / 1_000_000, self.0.unsigned_abs() % 1_000_000);
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{whole}.{rest:06}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_written_in_dollars_to_the_last_millionth() {
        for (micros, text) in [
            (0, "0.000000"),
            (50_000, "0.050000"),
            (-1, "-0.000001"),
            (12_000_001, "12.000001"),
            (i64::MIN, "-9223372036854.775808"),
        ] {
            assert_eq!(MicroUsd(micros).to_string(), text);
        }
    }
}
