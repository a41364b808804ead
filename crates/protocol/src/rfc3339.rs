//! Reads and writes RFC 3339 times in the Gregorian calendar, which is also used for the years before it began.

use std::fmt;

/// Days before the first of each month of a year without a leap day.
const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const DAYS_IN_400_YEARS: i64 = 146_097;
const SECONDS_IN_DAY: i64 = 86_400;
const NANOS_IN_SECOND: u32 = 1_000_000_000;

/// A point in time with nanoseconds, written in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime {
    /// Seconds since 1970.
    seconds: i64,
    /// From 1,000,000,000 on in a leap second, whose `seconds` are those of the second before it.
    nanos: u32,
}

/// The digits of a written second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondDigits {
    /// Three digits. Finer ones are dropped.
    Millis,
    /// Six digits. Finer ones are dropped.
    Micros,
    /// None, three, six or nine digits: as few as lose nothing.
    Shortest,
}

impl UtcTime {
    /// Makes the time of some seconds since 1970.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self { seconds, nanos: 0 }
    }

    /// Makes the time of some microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self { seconds: micros.div_euclid(1_000_000), nanos: micros.rem_euclid(1_000_000) as u32 * 1_000 }
    }

    /// Returns the microseconds since 1970. Finer digits are dropped, and a leap second counts as the one after it.
    pub const fn micros(self) -> i64 {
        self.seconds.saturating_mul(1_000_000).saturating_add((self.nanos / 1_000) as i64)
    }

    /// Reads a time with any offset. A space or `t` may stand for `T`, and digits after the ninth of a second are dropped.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const SHORT: &str = "it ends too early";
        let (head, rest) = text.as_bytes().split_first_chunk::<19>().ok_or(SHORT)?;
        let shape = [head[4], head[7], head[13], head[16]];
        if shape != *b"--::" || !matches!(head[10], b'T' | b't' | b' ') {
            return Err("it does not have the form 2026-11-15T09:30:00Z");
        }
        let (year, month, day) = (number(&head[..4])?, number(&head[5..7])?, number(&head[8..10])?);
        let (hour, minute, second) = (number(&head[11..13])?, number(&head[14..16])?, number(&head[17..])?);
        if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
            return Err("there is no such day");
        }
        if hour > 23 || minute > 59 || second > 60 {
            return Err("there is no such time of day");
        }
        let (nanos, rest) = match rest.strip_prefix(b".") {
            Some(rest) => fraction(rest)?,
            None => (0, rest),
        };
        let leap = if second == 60 { NANOS_IN_SECOND } else { 0 };
        let of_day = hour * 3_600 + minute * 60 + second.min(59);
        let seconds = days_since_1970(year, month, day) * SECONDS_IN_DAY + of_day - offset_seconds(rest)?;
        Ok(Self { seconds, nanos: nanos + leap })
    }

    /// Returns what writes the time, with `Z` for its offset.
    pub fn display(self, digits: SecondDigits) -> impl fmt::Display {
        fmt::from_fn(move |f| self.write(digits, f))
    }

    fn write(self, digits: SecondDigits, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of(self.seconds.div_euclid(SECONDS_IN_DAY));
        let of_day = self.seconds.rem_euclid(SECONDS_IN_DAY);
        let (hour, minute) = (of_day / 3_600, of_day / 60 % 60);
        let (second, nanos) = (of_day % 60 + i64::from(self.nanos / NANOS_IN_SECOND), self.nanos % NANOS_IN_SECOND);
        if digits == SecondDigits::Millis && (0..=9999).contains(&year) {
            // Each answer has one or more of these, so they are written without a formatter for each number.
            let mut text = *b"0000-00-00T00:00:00.000Z";
            let millis = i64::from(nanos / 1_000_000);
            let numbers =
                [(0..4, year), (5..7, month), (8..10, day), (11..13, hour), (14..16, minute), (17..19, second), (20..23, millis)];
            for (places, number) in numbers {
                write_digits(&mut text[places], number);
            }
            return str::from_utf8(&text).map_or(Err(fmt::Error), |text| f.write_str(text));
        }
        // ISO 8601 asks for a sign before years that do not have four digits.
        if (0..=9999).contains(&year) {
            write!(f, "{year:04}")?
        } else {
            write!(f, "{year:+05}")?
        }
        write!(f, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match digits {
            SecondDigits::Millis => write!(f, ".{:03}", nanos / 1_000_000)?,
            SecondDigits::Micros => write!(f, ".{:06}", nanos / 1_000)?,
            SecondDigits::Shortest if nanos == 0 => {}
            SecondDigits::Shortest if nanos.is_multiple_of(1_000_000) => write!(f, ".{:03}", nanos / 1_000_000)?,
            SecondDigits::Shortest if nanos.is_multiple_of(1_000) => write!(f, ".{:06}", nanos / 1_000)?,
            SecondDigits::Shortest => write!(f, ".{nanos:09}")?,
        }
        f.write_str("Z")
    }
}

fn write_digits(places: &mut [u8], mut number: i64) {
    for place in places.iter_mut().rev() {
        *place = b'0' + number.rem_euclid(10) as u8;
        number /= 10;
    }
}

fn number(digits: &[u8]) -> Result<i64, &'static str> {
    digits.iter().try_fold(0, |sum, digit| {
        if digit.is_ascii_digit() { Ok(sum * 10 + i64::from(digit - b'0')) } else { Err("a digit is missing") }
    })
}

/// Returns the nanoseconds of a fraction, and the text after its digits.
fn fraction(text: &[u8]) -> Result<(u32, &[u8]), &'static str> {
    let (digits, rest) = text.split_at(text.iter().take_while(|digit| digit.is_ascii_digit()).count());
    if digits.is_empty() {
        return Err("a digit is missing after the point");
    }
    let nanos = (0..9).fold(0, |sum, at| sum * 10 + u32::from(digits.get(at).map_or(0, |digit| digit - b'0')));
    Ok((nanos, rest))
}

fn offset_seconds(text: &[u8]) -> Result<i64, &'static str> {
    const WRONG: &str = "its offset is neither Z nor of the form +02:00";
    if matches!(text, b"Z" | b"z") {
        return Ok(0);
    }
    // U+2212, the minus of typographers, counts as well.
    let signs: [(&[u8], i64); 3] = [(b"+", 1), (b"-", -1), ("\u{2212}".as_bytes(), -1)];
    let signed = signs.iter().find_map(|(prefix, sign)| Some((*sign, text.strip_prefix(*prefix)?)));
    let (sign, [h1, h2, b':', m1, m2]) = signed.ok_or(WRONG)? else { return Err(WRONG) };
    let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
    if hours > 23 || minutes > 59 { Err("its offset is a day or more") } else { Ok(sign * (hours * 3_600 + minutes * 60)) }
}

const fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days between the first of January of the year 1 and that of `year`.
const fn days_before_year(year: i64) -> i64 {
    let years = year - 1;
    years * 365 + years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400)
}

fn days_before_month(year: i64, month: i64) -> i64 {
    let before = usize::try_from(month - 1).ok().and_then(|at| BEFORE_MONTH.get(at)).copied().unwrap_or_default();
    before + i64::from(month > 2 && is_leap(year))
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    days_before_year(year) - days_before_year(1970) + days_before_month(year, month) + day - 1
}

/// Returns the year, month and day that begin `days` days after 1970 began.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + days_before_year(1970);
    // Years differ in length, so the mean year may name a neighbour of the right one.
    let guess = 1 + (days * 400).div_euclid(DAYS_IN_400_YEARS);
    let year = (guess - 1..=guess + 1).rev().find(|year| days_before_year(*year) <= days).unwrap_or(guess);
    let of_year = days - days_before_year(year);
    let month = (1..=12).rev().find(|month| days_before_month(year, *month) <= of_year).unwrap_or(1);
    (year, month, of_year - days_before_month(year, month) + 1)
}
