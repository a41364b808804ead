//! The time of an event: what the packet says in RFC 3339, in UTC, or a fixed time if it says nothing that can be read.

use chrono::{DateTime, SecondsFormat, Utc};

/// 2023-11-16T02:00:00Z, the same for every packet without a time, so that conversion is repeatable.
const DEFAULT_SECONDS: i64 = 1_700_100_000;

/// Neither a missing time nor an unreadable one counts as a loss or leaves a note.
pub(super) fn event_time(timestamp: Option<&str>) -> String {
    let said = timestamp.and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let time = said.map_or_else(default_time, |time| time.with_timezone(&Utc));
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn default_time() -> DateTime<Utc> {
    DateTime::from_timestamp_secs(DEFAULT_SECONDS).unwrap_or_default()
}
