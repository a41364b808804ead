//! Reads the answers of agents by their shape, regardless of the claimed version, and counts every deviation
//! by name.

mod card;
mod envelope;
mod leniency;
mod object;
mod outline;
mod part;
mod reply;
mod rewrite;
mod unreadable;
mod words;

use std::sync::Arc;

use chancery_protocol::raw_json::pick;
use chancery_protocol::{Error, Message, Task, TaskEvent, Version};
use serde::de::IgnoredAny;

pub use self::card::{ReadCard, card};
pub use self::envelope::{Envelope, envelope};
pub use self::leniency::{Leniencies, Leniency};
pub use self::reply::reply;
use self::rewrite::Rewriter;
use self::unreadable::MemberFault;
pub use self::unreadable::Unreadable;
use crate::codec::{Codec, TaskNames};
use crate::json::original::Original;
use crate::json::v0_3::V0_3;
use crate::json::v0_3::rest::V0_3Rest;
use crate::json::v1_0::V1_0;

/// What was read, and what had to be overlooked to read it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadAnswer<T> {
    pub value: T,
    pub leniencies: Leniencies,
}

/// The form that an agent's answers should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedForm {
    /// The version of the interface that the agent was called at.
    pub version: Version,
    /// Called over HTTP+JSON, whose JSON is another one in 0.3.
    pub is_rest: bool,
    /// Every deviation is unreadable.
    pub is_strict: bool,
}

impl From<Version> for ClaimedForm {
    fn from(version: Version) -> Self {
        Self { version, is_rest: false, is_strict: false }
    }
}

impl ClaimedForm {
    fn strict(self) -> StrictReader {
        match (self.version, self.is_rest) {
            (Version::V1_0, _) => StrictReader::V1_0,
            (Version::V0_3, true) => StrictReader { codec: &V0_3Rest, other_parts: r#""parts""# },
            (Version::V0_3, false) => StrictReader::V0_3,
            (Version::Original, _) => StrictReader { codec: &Original, other_parts: r#""content""# },
        }
    }

    /// The strict readers that may understand what the claimed one does not.
    fn others(self) -> &'static [StrictReader] {
        match (self.version, self.is_rest) {
            (Version::V1_0, _) => &[StrictReader::V0_3],
            (Version::V0_3, false) => &[StrictReader::V1_0],
            _ => &[StrictReader::V1_0, StrictReader::V0_3],
        }
    }

    /// What it is called that the form of another version was understood.
    fn leniencies_of_other_version(self) -> Leniencies {
        let wrapper = match self.version {
            Version::V1_0 => Some(Leniency::NoWrapper),
            Version::V0_3 if !self.is_rest => Some(Leniency::WrapperOfOtherVersion),
            _ => None,
        };
        wrapper.into_iter().chain([Leniency::SpellingOfOtherVersion]).collect()
    }
}

/// The codec of one form, with what it is known to overlook.
#[derive(Clone, Copy)]
struct StrictReader {
    codec: &'static dyn Codec,
    /// 0.3 REST calls the parts of a message `content`, the others `parts`. A reader of one finds nothing in
    /// the other, and no fault.
    other_parts: &'static str,
}

impl StrictReader {
    const V1_0: Self = Self { codec: &V1_0, other_parts: r#""content""# };
    const V0_3: Self = Self { codec: &V0_3, other_parts: r#""content""# };

    fn may_have_lost_parts<'m>(self, mut messages: impl Iterator<Item = &'m Arc<Message>>, text: &str) -> bool {
        messages.any(|message| message.parts.is_empty()) && text.contains(self.other_parts)
    }

    /// Whether another reading should be tried, because this one may have left something out.
    fn doubts_event(self, event: &TaskEvent, text: &str) -> bool {
        match event {
            TaskEvent::Created(task) => self.doubts_task(task, text),
            TaskEvent::Status(change) => self.may_have_lost_parts(change.status.message.iter(), text),
            TaskEvent::Replied(message) | TaskEvent::Said(message) => self.may_have_lost_parts([message].into_iter(), text),
            TaskEvent::Artifact(_) => false,
        }
    }

    fn doubts_task(self, task: &Task, text: &str) -> bool {
        self.may_have_lost_parts(task.history.iter().chain(&task.status.message), text)
    }
}

/// An event, and the names it gives its task.
type FacedEvent = (Option<TaskNames>, TaskEvent);

/// Reads the events of one stream. It counts the artifacts that come without an id, so that each keeps a name of its own.
#[derive(Clone, Debug)]
pub struct EventReader {
    claimed: ClaimedForm,
    unnamed: usize,
}

impl EventReader {
    pub fn new(claimed: impl Into<ClaimedForm>) -> Self {
        Self { claimed: claimed.into(), unnamed: 0 }
    }

    /// Reads one event. `None` is a payload that says nothing, as `{}` or `[DONE]`.
    pub fn read(&mut self, text: &str) -> Result<Option<ReadAnswer<FacedEvent>>, Unreadable> {
        let (claimed, strict) = (self.claimed, self.claimed.strict());
        // A well-behaved agent pays for nothing else than this.
        let first = match strict.codec.decode_event(text) {
            Ok(value) if !strict.doubts_event(&value.1, text) && !is_of_later_version(claimed, text) => {
                return Ok(Some(ReadAnswer { value, leniencies: Leniencies::new() }));
            }
            first => first,
        };
        if says_nothing(text.trim()) {
            return Ok(None);
        }
        let first = match first {
            _ if !claimed.is_strict => first.ok(),
            Ok(value) => return Ok(Some(ReadAnswer { value, leniencies: Leniencies::new() })),
            Err(error) => return Err(unreadable(&error, text)),
        };
        match (self.read_by_shape(text), first) {
            (Ok(read), Some(first)) if read.as_ref().is_none_or(|read| read.value == first) => {
                Ok(Some(ReadAnswer { value: first, leniencies: Leniencies::new() }))
            }
            (Err(_), Some(first)) => Ok(Some(ReadAnswer { value: first, leniencies: Leniencies::new() })),
            (read, _) => read,
        }
    }

    fn read_by_shape(&mut self, text: &str) -> Result<Option<ReadAnswer<FacedEvent>>, Unreadable> {
        let mut leniencies = Leniencies::new();
        let text = stripped(text, &mut leniencies);
        if says_nothing(text) {
            return Ok(None);
        }
        let strict =
            |reader: &StrictReader| reader.codec.decode_event(text).ok().filter(|(_, event)| !reader.doubts_event(event, text));
        if let Some(value) = other_version(self.claimed, text).and_then(|others| others.iter().find_map(strict)) {
            leniencies.extend(self.claimed.leniencies_of_other_version());
            return Ok(Some(ReadAnswer { value, leniencies }));
        }
        is_json(text)?;
        let mut rewriter = Rewriter { leniencies, ..Rewriter::new(self.claimed, self.unnamed) };
        rewriter.event(text).map_err(|fault| fault.within(text))?;
        let (face, event) = V1_0.decode_event(&rewriter.out).map_err(|error| unreadable(&error, text))?;
        if let TaskEvent::Artifact(_) = event {
            self.unnamed = rewriter.unnamed;
        }
        // An update that names no task belongs to the one that its stream is about.
        let face = face.filter(|face| !face.task_id.as_str().is_empty());
        Ok(Some(ReadAnswer { value: (face, event), leniencies: counted(rewriter.leniencies) }))
    }
}

/// Reads one event alone.
pub fn event(claimed: impl Into<ClaimedForm>, text: &str) -> Result<Option<ReadAnswer<FacedEvent>>, Unreadable> {
    EventReader::new(claimed).read(text)
}

/// The strict readers of other versions, unless the wrapper of 1.0 is there for readers that do not look for it.
fn other_version(claimed: ClaimedForm, text: &str) -> Option<&'static [StrictReader]> {
    let wrappers = pick(text, ["task", "message", "statusUpdate", "artifactUpdate"]);
    let is_wrapped = wrappers.iter().flatten().any(|value| value.starts_with('{'));
    (!is_wrapped || claimed.version == Version::V0_3).then_some(claimed.others())
}

/// The strict reader of the original takes a whole task for an update of it, so that what later versions say is doubted.
fn is_of_later_version(claimed: ClaimedForm, text: &str) -> bool {
    claimed.version == Version::Original && pick(text, ["kind", "artifacts", "taskId"]).iter().any(Option::is_some)
}

/// Takes away what is around the JSON and no part of it.
fn stripped<'a>(text: &'a str, leniencies: &mut Leniencies) -> &'a str {
    let trimmed = text.trim();
    let stripped = trimmed.trim_matches(|one: char| one < ' ' || one == '\u{feff}' || one.is_whitespace());
    if stripped.len() < trimmed.len() {
        leniencies.insert(Leniency::ControlBytes);
    }
    stripped
}

fn says_nothing(text: &str) -> bool {
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    matches!(text, "" | "[DONE]") || inside.is_some_and(|inside| inside.trim().is_empty())
}

/// Code that walks over raw JSON relies on it being valid.
fn is_json(text: &str) -> Result<(), Unreadable> {
    serde_json::from_str::<IgnoredAny>(text).map(|_| ()).map_err(|_| MemberFault::new("", "not JSON").within(text))
}

fn unreadable(error: &Error, text: &str) -> Unreadable {
    MemberFault::of(error).within(text)
}

/// A reading that the strict reader refused is a deviation, also where none of the named ones was seen.
fn counted(mut leniencies: Leniencies) -> Leniencies {
    if leniencies.is_empty() {
        leniencies.insert(Leniency::SpellingOfOtherVersion);
    }
    leniencies
}
