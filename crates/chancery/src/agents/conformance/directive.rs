//! The directives of the conformance agent, and how a message carries them.

use std::time::Duration;

use chancery_protocol::Message;
use serde_json::Value;

/// The member of a message's metadata that is obeyed instead of its text.
const METADATA_MEMBER: &str = "conformance";

/// No chunk is made larger than this.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Directive {
    /// Complete, with one text artifact if there is a text.
    Complete(Option<String>),
    Fail(String),
    Reject(String),
    /// Ask for input; the next message on the task is a directive again.
    Ask(String),
    /// Ask for authorisation.
    Auth(String),
    /// Ask for authorisation, and go on by oneself after this long.
    Authorize(Duration),
    /// Chunks of one artifact, with a pause between each two, each of at least so many bytes.
    Stream {
        chunks: u64,
        pause: Duration,
        bytes: usize,
    },
    /// Working updates, with a pause between each two.
    Steps {
        count: u64,
        pause: Duration,
    },
    /// Work this long, and stop when cancelled.
    Sleep(Duration),
    /// Work this long, and never look whether one is cancelled.
    Stubborn(Duration),
    /// A message instead of a task.
    Message(String),
    Artifact(Sample),
    /// Use a tool and get its result.
    Tool(String),
    Panic(String),
    /// Give up with an error.
    Error(String),
    /// Nothing we know: complete with the text.
    Echo(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    Text,
    File,
    Url,
    Data,
    Many,
}

impl Directive {
    /// The metadata's, or else the first text part's.
    pub(super) fn of(message: &Message) -> Self {
        let told = message.metadata.as_ref().and_then(|metadata| metadata.get(METADATA_MEMBER));
        match told {
            Some(Value::String(text)) => Self::parse(&text),
            _ => Self::parse(message.first_text().unwrap_or_default()),
        }
    }

    /// What does not read as a directive is a text like any other: `sleep well` is echoed.
    fn parse(text: &str) -> Self {
        Self::known(text).unwrap_or_else(|| Self::Echo(text.to_owned()))
    }

    fn known(text: &str) -> Option<Self> {
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let said = || (!rest.is_empty()).then(|| rest.to_owned());
        let or = |default: &str| said().unwrap_or_else(|| default.to_owned());
        Some(match verb {
            "complete" => Self::Complete(said()),
            "fail" => Self::Fail(or("told to fail")),
            "reject" => Self::Reject(or("told to reject")),
            "ask" => Self::Ask(or("what next?")),
            "auth" => Self::Auth(or("please authorise this")),
            "authorize" => Self::Authorize(millis(rest)?),
            "stream" => {
                let mut words = rest.split_whitespace();
                let chunks = number(words.next()?)?;
                let (pause, bytes) = (millis(words.next().unwrap_or("0"))?, number(words.next().unwrap_or("0"))?);
                if words.next().is_some() || bytes > MOST_BYTES {
                    return None;
                }
                Self::Stream { chunks, pause, bytes: usize::try_from(bytes).ok()? }
            }
            "steps" => {
                let (count, pause) = paced(rest)?;
                Self::Steps { count, pause }
            }
            "sleep" => Self::Sleep(millis(rest)?),
            "stubborn" => Self::Stubborn(millis(rest)?),
            "message" => Self::Message(or("a message")),
            "artifact" => Self::Artifact(sample(rest.trim())?),
            "tool" => Self::Tool(said()?),
            "panic" => Self::Panic(or("told to panic")),
            "error" => Self::Error(or("told to give up")),
            _ => return None,
        })
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn millis(text: &str) -> Option<Duration> {
    number(text).map(Duration::from_millis)
}

/// A number, and a pause if there is one.
fn paced(text: &str) -> Option<(u64, Duration)> {
    let (count, pause) = text.trim().split_once(' ').unwrap_or((text.trim(), "0"));
    Some((number(count)?, millis(pause)?))
}

fn sample(text: &str) -> Option<Sample> {
    Some(match text {
        "text" => Sample::Text,
        "file" => Sample::File,
        "url" => Sample::Url,
        "data" => Sample::Data,
        "many" => Sample::Many,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{Metadata, Part, Role};
    use serde_json::json;

    #[test]
    fn directives_are_read_from_the_first_word_and_what_follows_it() {
        let ms = Duration::from_millis;
        for (text, directive) in [
            ("complete hello  there", Directive::Complete(Some("hello  there".into()))),
            ("complete", Directive::Complete(None)),
            ("fail no luck", Directive::Fail("no luck".into())),
            ("ask which colour?", Directive::Ask("which colour?".into())),
            ("stream 3", Directive::Stream { chunks: 3, pause: ms(0), bytes: 0 }),
            ("stream 3 20", Directive::Stream { chunks: 3, pause: ms(20), bytes: 0 }),
            ("stream 3 20 1000", Directive::Stream { chunks: 3, pause: ms(20), bytes: 1000 }),
            ("stream 3 20 4194305", Directive::Echo("stream 3 20 4194305".into())),
            ("stream of words", Directive::Echo("stream of words".into())),
            ("steps 3", Directive::Steps { count: 3, pause: ms(0) }),
            ("steps 3 20", Directive::Steps { count: 3, pause: ms(20) }),
            ("sleep 60000", Directive::Sleep(ms(60_000))),
            ("authorize 20", Directive::Authorize(ms(20))),
            ("artifact many", Directive::Artifact(Sample::Many)),
            ("tool search", Directive::Tool("search".into())),
            ("panic", Directive::Panic("told to panic".into())),
        ] {
            assert_eq!(Directive::parse(text), directive, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_directive_is_echoed_whole() {
        for text in ["", "hello", "sleep well", "stream", "stream 1 2 3 4", "artifact statue", "tool", "Complete x"] {
            assert_eq!(Directive::parse(text), Directive::Echo(text.into()));
        }
    }

    #[test]
    fn metadata_is_obeyed_instead_of_the_text() {
        let mut message = Message::of_parts(Role::User, "m", vec![Part::data(&json!(1)), Part::text("fail x")]);
        assert_eq!(Directive::of(&message), Directive::Fail("x".into()));
        let Value::Object(object) = json!({ "conformance": "steps 2", "other": 1 }) else { unreachable!() };
        message.metadata = Some(Metadata::from_object(object));
        assert_eq!(Directive::of(&message), Directive::Steps { count: 2, pause: Duration::ZERO });
    }
}
