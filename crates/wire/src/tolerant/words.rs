//! States, roles and times in the spellings that are met.

use chancery_protocol::{Role, TaskState, Timestamp};

/// A state by any version's name for it: case, prefix and separators do not matter.
pub(super) fn state(word: &str) -> Option<TaskState> {
    let letters = letters(word);
    let name = letters.strip_prefix("taskstate").unwrap_or(&letters);
    Some(match name {
        "unspecified" | "unknown" => TaskState::Unspecified,
        "submitted" => TaskState::Submitted,
        "working" => TaskState::Working,
        "completed" => TaskState::Completed,
        "failed" => TaskState::Failed,
        "canceled" | "cancelled" => TaskState::Canceled,
        "inputrequired" => TaskState::InputRequired,
        "rejected" => TaskState::Rejected,
        "authrequired" => TaskState::AuthRequired,
        _ => return None,
    })
}

pub(super) fn role(word: &str) -> Option<Role> {
    let letters = letters(word);
    match letters.strip_prefix("role").unwrap_or(&letters) {
        "user" => Some(Role::User),
        "agent" => Some(Role::Agent),
        _ => None,
    }
}

/// The letters of a name, so that `TASK_STATE_INPUT_REQUIRED` and `input-required` can be compared.
pub(super) fn letters(word: &str) -> String {
    let letters = word.chars().filter(|one| !matches!(one, '_' | '-' | ' ' | '.' | '+'));
    letters.map(|one| one.to_ascii_lowercase()).collect()
}

/// A time as RFC 3339 writes it, and whether it named its zone. Nothing for what is no time.
pub(super) fn time(text: &str) -> Option<(String, bool)> {
    let text = text.trim();
    let reads = |text: &str| Timestamp::parse(text).is_ok();
    if reads(text) {
        return Some((text.to_owned(), true));
    }
    let with_colon = offset_with_colon(text).filter(|text| reads(text));
    if let Some(text) = with_colon {
        return Some((text, true));
    }
    let as_utc = format!("{text}Z");
    reads(&as_utc).then_some((as_utc, false))
}

/// `+0200` and `+02` as `+02:00`.
fn offset_with_colon(text: &str) -> Option<String> {
    let (time, digits) = text.rsplit_once(['+', '-'])?;
    let sign = text.get(time.len()..=time.len())?;
    let digits = digits.as_bytes().iter().all(u8::is_ascii_digit).then_some(digits)?;
    match digits.len() {
        2 => Some(format!("{time}{sign}{digits}:00")),
        4 => Some(format!("{time}{sign}{}:{}", &digits[..2], &digits[2..])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_roles_are_known_in_every_spelling() {
        for word in ["TASK_STATE_INPUT_REQUIRED", "input-required", "input_required", "InputRequired"] {
            assert_eq!(state(word), Some(TaskState::InputRequired), "{word}");
        }
        for one in TaskState::ALL {
            assert_eq!(state(one.name()), Some(one));
        }
        assert_eq!((state("cancelled"), state("TASK_STATE_CANCELLED")), (Some(TaskState::Canceled), Some(TaskState::Canceled)));
        assert_eq!((state("done"), state("")), (None, None), "a word that no version has is not guessed at");
        assert_eq!((role("ROLE_AGENT"), role("agent"), role("User")), (Some(Role::Agent), Some(Role::Agent), Some(Role::User)));
        assert_eq!(role("king"), None);
    }

    #[test]
    fn times_are_read_with_any_zone_or_none() {
        for (text, read) in [
            ("2026-11-16T15:34:05.623625Z", Some(("2026-11-16T15:34:05.623625Z", true))),
            ("2026-11-16T15:34:05+02:00", Some(("2026-11-16T15:34:05+02:00", true))),
            ("2026-11-16T15:34:05+0200", Some(("2026-11-16T15:34:05+02:00", true))),
            ("2026-11-16T15:34:05.5-07", Some(("2026-11-16T15:34:05.5-07:00", true))),
            ("2026-11-16T15:34:05.623625", Some(("2026-11-16T15:34:05.623625Z", false))),
            ("2026-11-16 15:34:05", Some(("2026-11-16 15:34:05Z", false))),
            ("", None),
            ("yesterday", None),
            ("+é02", None),
        ] {
            assert_eq!(time(text), read.map(|(text, zone)| (text.to_owned(), zone)), "{text}");
        }
    }
}
