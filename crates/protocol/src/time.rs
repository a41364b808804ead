//! Points in time, as microseconds since 1970, written as RFC 3339 in UTC.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::rfc3339::{SecondDigits, UtcTime};

/// A point in time, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Makes the time of some microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Reads an RFC 3339 time with any offset. Digits finer than a microsecond are dropped.
    pub fn parse(text: &str) -> Result<Self, String> {
        UtcTime::parse(text).map(|time| Self(time.micros())).map_err(|fault| format!("not an RFC 3339 time: {fault}"))
    }

    /// Returns the RFC 3339 form in UTC with microseconds, so that nothing of the time is lost.
    pub fn to_micros_text(self) -> String {
        UtcTime::from_micros(self.0).display(SecondDigits::Micros).to_string()
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    /// At the end of time it stays there.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    /// Milliseconds and `Z`, as the specification prefers. Finer digits are dropped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&UtcTime::from_micros(self.0).display(SecondDigits::Millis), f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_offsets_are_read_and_utc_is_written() {
        let time = Timestamp::parse("2026-11-15T09:30:00.123456+02:00").unwrap();
        assert_eq!(time.to_string(), "2026-11-15T07:30:00.123Z");
        assert!(Timestamp::parse("yesterday").is_err());
    }
}
