//! Points in time, as microseconds since 1970, written as RFC 3339 in UTC.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, SecondsFormat, Timelike as _, Utc};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        DateTime::parse_from_rfc3339(text)
            .map(|time| Self(time.timestamp_micros()))
            .map_err(|fault| format!("not an RFC 3339 time: {fault}"))
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
        let time = DateTime::<Utc>::from_timestamp_micros(self.0).unwrap_or_default();
        match digits_of(&time).as_ref().map(|text| str::from_utf8(text)) {
            Some(Ok(text)) => f.write_str(text),
            _ => f.write_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true)),
        }
    }
}

/// A time of a year with four digits, written without a string in between: each answer has one or more.
fn digits_of(time: &DateTime<Utc>) -> Option<[u8; 24]> {
    let year = u32::try_from(time.year()).ok().filter(|year| *year <= 9999)?;
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let mut write = |last: usize, count: usize, number: u32| {
        let mut rest = number;
        for place in text[..=last].iter_mut().rev().take(count) {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    };
    write(3, 4, year);
    write(6, 2, time.month());
    write(9, 2, time.day());
    write(12, 2, time.hour());
    write(15, 2, time.minute());
    write(18, 2, time.second());
    write(22, 3, time.timestamp_subsec_millis());
    Some(text)
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

    #[test]
    fn every_time_is_written_as_the_library_writes_it() {
        let long_ago = -62_167_219_200_000_000;
        let after_9999 = 253_402_300_800_000_000;
        let times = (0..2_000).map(|step| i64::from(step) * 157_784_630_123_457 + long_ago);
        let edges = [0, -1, 999, 1_000, long_ago - 1, long_ago, after_9999 - 1, after_9999, i64::MIN, i64::MAX];
        for micros in times.chain(edges) {
            let time = DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default();
            assert_eq!(Timestamp(micros).to_string(), time.to_rfc3339_opts(SecondsFormat::Millis, true), "{micros}");
        }
    }
}
