//! The time of an event: what the packet says in RFC 3339, in UTC, or a fixed time if it says nothing that can be read.

use chancery_protocol::rfc3339::{SecondDigits, UtcTime};

/// 2023-11-16T02:00:00Z, the same for every packet without a time, so that conversion is repeatable.
const DEFAULT_TIME: UtcTime = UtcTime::from_seconds(1_700_100_000);

/// Neither a missing time nor an unreadable one counts as a loss or leaves a note.
pub(super) fn event_time(timestamp: Option<&str>) -> String {
    let time = timestamp.and_then(|text| UtcTime::parse(text).ok()).unwrap_or(DEFAULT_TIME);
    time.display(SecondDigits::Shortest).to_string()
}
