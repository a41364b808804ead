//! Why a text could not be read, without any of its content.

use std::fmt;

use chancery_protocol::Error;

use super::outline::outline;

/// Why a text could not be read, in words that are safe to log: nothing of the content is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The member that could not be read, as `artifactUpdate.artifact.parts[0]`.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
    /// The text with every string and number replaced by its length, cut to 512 bytes.
    pub shape: String,
}

impl Unreadable {
    /// A text that cannot be read as a whole. The reason must not quote it.
    pub fn whole(text: &str, reason: impl Into<String>) -> Self {
        MemberFault::new("", reason).within(text)
    }
}

impl std::error::Error for Unreadable {}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.reason),
            path => write!(f, "{path}: {}", self.reason),
        }
    }
}

/// A member that cannot be read. The text it stands in is added at the end, as its outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberFault {
    pub(super) path: String,
    pub(super) reason: String,
}

impl MemberFault {
    pub(super) fn new(path: &str, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), reason: reason.into() }
    }

    pub(super) fn missing(path: &str, member: &str) -> Self {
        Self { path: join(path, member), reason: "is required".to_owned() }
    }

    /// The fault of a strict reader. Its words may quote the agent, so that only their kind is kept.
    pub(super) fn of(error: &Error) -> Self {
        match error.violations.first() {
            // The strict readers call the whole text by this name.
            Some(fault) if fault.field == "params" => Self { path: String::new(), reason: without_content(&fault.description) },
            Some(fault) => Self { path: fault.field.clone(), reason: without_content(&fault.description) },
            None => Self { path: String::new(), reason: without_content(&error.message) },
        }
    }

    pub(super) fn within(self, text: &str) -> Unreadable {
        Unreadable { path: self.path, reason: self.reason, shape: outline(text) }
    }
}

/// The path of a member.
pub(super) fn join(path: &str, member: &str) -> String {
    if path.is_empty() { member.to_owned() } else { format!("{path}.{member}") }
}

/// What a JSON reader said, without the values it quotes.
fn without_content(said: &str) -> String {
    const PLAIN: [&str; 12] = [
        "is required",
        "must be ",
        "expected ",
        "EOF ",
        "trailing ",
        "missing field `",
        "duplicate field `",
        "not base64",
        "not an RFC 3339 time",
        "a part has ",
        "a file has ",
        "data must be ",
    ];
    const OURS: [&str; 5] =
        ["an event has ", "a reply to a message ", "a message is answered ", "a security scheme ", "control character "];
    if let Some((kind, rest)) = said.split_once(": ").filter(|(kind, _)| matches!(*kind, "invalid type" | "invalid value")) {
        let found = rest.split([' ', ',']).next().unwrap_or_default();
        let expected = rest.rsplit_once(", expected ").map_or("something else", |(_, expected)| expected);
        return format!("{kind}: {found}, expected {expected}");
    }
    if let Some((_, expected)) = said.strip_prefix("unknown variant").and_then(|rest| rest.rsplit_once(", expected ")) {
        return format!("unknown value, expected {expected}");
    }
    if PLAIN.iter().chain(&OURS).any(|plain| said.starts_with(plain)) {
        return said.to_owned();
    }
    "cannot be read".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_reader_are_kept_and_what_they_quote_is_not() {
        for (said, kept) in [
            ("is required", "is required"),
            (r#"invalid type: string "my secret", expected u32"#, "invalid type: string, expected u32"),
            (r#"invalid value: string "a, expected b", expected a task state"#, "invalid value: string, expected a task state"),
            ("invalid type: integer `17`, expected a string", "invalid type: integer, expected a string"),
            ("unknown variant `secret`, expected `text` or `file`", "unknown value, expected `text` or `file`"),
            ("secret: appears twice", "cannot be read"),
        ] {
            assert_eq!(without_content(said), kept);
        }
    }
}
