//! Durations as people write them: `90s`, `10m`, `24h`, `7d`.

use std::time::Duration;

const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 60 * 60), ('d', 24 * 60 * 60)];
/// The longest duration that is accepted: a hundred years.
const MOST_SECONDS: u64 = 36_525 * 24 * 60 * 60;

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a number with s, m, h or d after it, as in 90s, 10m, 24h or 7d");
    let unit = text.chars().next_back().and_then(|last| UNITS.into_iter().find(|(unit, _)| *unit == last));
    let (unit, seconds) = unit.ok_or_else(bad)?;
    let number = text.strip_suffix(unit).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let number: u64 = number.and_then(|number| number.parse().ok()).ok_or_else(bad)?;
    let total = number.checked_mul(seconds).filter(|total| *total <= MOST_SECONDS);
    total.map(Duration::from_secs).ok_or_else(|| format!("{text} is more than a hundred years"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_make_a_duration() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("10m", 600), ("24h", 86_400), ("7d", 604_800), ("007d", 604_800)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        let fractions = ["", "s", "10", "1.5h", "-1s", "+1s", " 1s", "1 s", "1w", "1sd", "1H", "ten", "99999999999d", "1é"];
        for bad in fractions {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
