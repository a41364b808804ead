//! Prints results on stdout and remarks on stderr, and escapes untrusted text that could control the
//! terminal.

use std::fmt::Write as _;
use std::io::Write as _;

use chancery::protocol::{Message, Part, PartContent, TaskState};
use serde_json::Value;

/// Writes to stdout. A reader that went away wants no more of it, which is not our failure.
pub(super) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

pub(super) fn print_line(text: &str) {
    print(&format!("{text}\n"));
}

/// Writes JSON text on one line of stdout.
pub(super) fn print_json(json: &str) {
    print_line(&safe_json(json));
}

/// The text with everything visible that a terminal would obey: control characters but for line ends and tabs, and the
/// marks that turn the direction of writing.
pub(super) fn safe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\n' || character == '\t' || !is_unsafe(character) {
            shown.push(character);
        } else {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        }
    }
    shown
}

/// The same on one line: line ends and tabs are made visible, too.
pub(super) fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unsafe(character) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// JSON text with the same characters as escapes. JSON already has those below U+0020 escaped, so the rest can only
/// stand inside strings, where an escape means the same.
fn safe_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // Between members, where they only lay the text out.
            '\n' | '\r' | '\t' => shown.push(' '),
            _ if is_unsafe(character) => {
                let _ = write!(shown, "\\u{:04x}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

fn is_unsafe(character: char) -> bool {
    character.is_control() || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What a message or artifact says, a line per part; what is not text is named.
pub(super) fn parts(parts: &[Part]) -> String {
    parts.iter().map(part).collect::<Vec<_>>().join("\n")
}

pub(super) fn part(part: &Part) -> String {
    let what = match &part.content {
        PartContent::Text(text) => return safe(text),
        PartContent::Raw(bytes) => format!("[file of {} bytes", bytes.len()),
        PartContent::Url(url) => format!("[link to {url}"),
        PartContent::Data(json) => return safe_json(json.text()),
    };
    let known = [&part.filename, &part.media_type].into_iter().flatten().map(|fact| format!(", {fact}"));
    safe(&format!("{what}{}]", known.collect::<String>()))
}

pub(super) fn message(message: &Message) -> String {
    parts(&message.parts)
}

/// `input-required` rather than `TASK_STATE_INPUT_REQUIRED`.
pub(super) fn state(state: TaskState) -> String {
    state_name(state.name())
}

pub(super) fn state_name(name: &str) -> String {
    safe(&name.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-"))
}

/// The entries of a list in an answer.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A member of an answer; `-` if it is not there.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => safe(text),
        other => safe(&other.to_string()),
    }
}

/// Whether an amount in an answer, money or a number, is zero or absent.
pub(super) fn is_nothing(amount: &Value) -> bool {
    match amount {
        Value::String(money) => money.bytes().all(|byte| matches!(byte, b'0' | b'.')),
        Value::Number(number) => number.as_u64() == Some(0),
        other => other.is_null(),
    }
}

/// Rows under each other, every column as wide as its widest entry.
pub(super) fn columns<const N: usize>(rows: Vec<[String; N]>) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_gets_through() {
        let nasty = "a\u{1b}[31mb\u{7}\u{9b}2Jc\rd\u{202e}e\u{7f}";
        assert_eq!(safe(nasty), "a\\u{1b}[31mb\\u{7}\\u{9b}2Jc\\u{d}d\\u{202e}e\\u{7f}");
        assert_eq!(safe("one\n\ttwo ü → 你"), "one\n\ttwo ü → 你");
    }

    #[test]
    fn json_stays_the_same_json_on_one_line() {
        let json = "{\n\t\"a\": \"\u{9b}\u{202e}\u{7f}x\\n\"}";
        let shown = safe_json(json);
        assert!(!shown.chars().any(is_unsafe), "{shown}");
        let (before, after): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(json).unwrap(), serde_json::from_str(&shown).unwrap());
        assert_eq!(before, after);
    }

    #[test]
    fn states_are_shown_in_plain_words() {
        assert_eq!(state(TaskState::InputRequired), "input-required");
    }

    #[test]
    fn nothing_is_known_in_every_way_it_is_written() {
        let (none, some) = ([Value::Null, 0.into(), "0.00".into(), "0".into()], [Value::from(1), "0.001".into(), true.into()]);
        assert!(none.iter().all(is_nothing) && !some.iter().any(is_nothing));
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_entry() {
        let rows = [["a", "b"], ["long", "c"]].map(|row| row.map(str::to_owned)).to_vec();
        assert_eq!(columns(rows), "a     b\nlong  c\n");
    }
}
