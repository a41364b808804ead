//! Times are read and written as `chrono` reads and writes them.

use chancery_protocol::Timestamp;
use chancery_protocol::rfc3339::{SecondDigits, UtcTime};
use chrono::{DateTime, SecondsFormat, Utc};
use proptest::prelude::*;

/// The seconds of all years that have four digits.
const FOUR_DIGITS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

fn compare(text: &str) {
    let (ours, theirs) = (UtcTime::parse(text), DateTime::parse_from_rfc3339(text));
    assert_eq!(ours.is_ok(), theirs.is_ok(), "{text:?}: {ours:?}, {theirs:?}");
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return };
    let theirs = theirs.with_timezone(&Utc);
    assert_eq!(ours.micros(), theirs.timestamp_micros(), "{text:?}");
    for (digits, format) in [
        (SecondDigits::Millis, SecondsFormat::Millis),
        (SecondDigits::Micros, SecondsFormat::Micros),
        (SecondDigits::Shortest, SecondsFormat::AutoSi),
    ] {
        assert_eq!(ours.display(digits).to_string(), theirs.to_rfc3339_opts(format, true), "{text:?}");
    }
}

proptest! {
    #[test]
    fn every_moment_is_written_and_read_back(seconds in FOUR_DIGITS, nanos in 0u32..1_000_000_000, whole in 0u32..4) {
        let nanos = nanos / 1_000u32.pow(whole.min(3)) * 1_000u32.pow(whole.min(3));
        let time = DateTime::<Utc>::from_timestamp(seconds, nanos).unwrap();
        compare(&time.to_rfc3339_opts(SecondsFormat::AutoSi, true));
        let micros = time.timestamp_micros();
        let text = Timestamp::from_micros(micros).to_micros_text();
        prop_assert_eq!(Timestamp::parse(&text), Ok(Timestamp::from_micros(micros)));
    }

    #[test]
    fn years_without_four_digits_have_a_sign(micros in any::<i64>()) {
        if let Some(time) = DateTime::<Utc>::from_timestamp_micros(micros) {
            let text = UtcTime::from_micros(micros).display(SecondDigits::Micros).to_string();
            prop_assert_eq!(text, time.to_rfc3339_opts(SecondsFormat::Micros, true));
        }
    }

    #[test]
    fn what_is_almost_a_time_is_read_or_refused_alike(
        text in "[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,12})?([Zz]|[+\u{2212}-][0-2][0-9]:[0-6][0-9]|)"
    ) {
        compare(&text);
    }

    #[test]
    fn a_changed_letter_is_read_or_refused_alike(at in 0usize..29, letter in any::<char>(), cut in 0usize..40) {
        let mut letters: Vec<char> = "2024-02-29T23:59:60.123+05:30".chars().collect();
        letters[at] = letter;
        letters.truncate(cut);
        compare(&letters.into_iter().collect::<String>());
    }
}

#[test]
fn every_day_of_four_centuries_is_right() {
    for day in 0..146_097 * 2 {
        let seconds = -11_676_096_000 + day * 86_400;
        let theirs = DateTime::<Utc>::from_timestamp(seconds, 0).unwrap().to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let ours = UtcTime::from_seconds(seconds);
        assert_eq!(ours.display(SecondDigits::Shortest).to_string(), theirs);
        assert_eq!(UtcTime::parse(&theirs), Ok(ours));
    }
}

#[test]
fn leap_seconds_and_odd_offsets_are_read_alike() {
    for text in [
        "2016-12-31T23:59:60Z",
        "2016-12-31T23:59:60.999999999Z",
        "2017-01-01T05:29:60+05:30",
        "2016-12-31T23:59:61Z",
        "2026-11-15T09:30:00-00:00",
        "2026-11-15T09:30:00+23:59",
        "2026-11-15T09:30:00+24:00",
        "2026-11-15T09:30:00+2:00",
        "2026-11-15T09:30:00 Z",
        "2026-11-15T09:30:00.Z",
        "0000-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2000-02-29T00:00:00Z",
        "2026-00-10T00:00:00Z",
        "2026-13-10T00:00:00Z",
        "",
    ] {
        compare(text);
    }
}
