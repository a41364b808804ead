//! The deviations that agents are forgiven, each with a name.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// One way in which an agent's card or answer departs from the text of its version and can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leniency {
    /// An event or a result without the wrapper member of 1.0.
    NoWrapper,
    /// The wrapper member of 1.0 in an answer of 0.3, or around a task that was fetched.
    WrapperOfOtherVersion,
    /// No `kind` in an object of 0.3.
    NoKind,
    /// States, roles or members spelled as another version spells them.
    SpellingOfOtherVersion,
    /// A time without a zone, which is taken for UTC.
    TimeWithoutZone,
    /// A time that cannot be read, which is left out.
    UnreadableTime,
    /// No `contextId`, `messageId`, `artifactId` or `taskId` where the version wants one.
    MissingId,
    /// No `role` in a message that only the agent can have written.
    MissingRole,
    /// `null` for a member that is absent.
    NullMember,
    /// A string for a number or a boolean, or the reverse.
    NumberAsString,
    /// Plain text where a message, a part or a status object is expected.
    TextForObject,
    /// A member of the wrong type that adds nothing to the answer, such as `metadata` that is no object. It is left out.
    DroppedMember,
    /// A status update where a task is expected.
    UpdateForTask,
    /// A cancellation that was accepted without the task in the answer. The task is fetched.
    NoTaskInAnswer,
    /// Control bytes around the JSON.
    ControlBytes,
    /// An event or an answer without its JSON-RPC envelope, or in the `params` of a notification.
    NoEnvelope,
    /// `"error": null` beside a result.
    NullError,
    /// A JSON-RPC answer with another id than the call's.
    OtherCallId,
    /// JSON where a stream was asked for.
    JsonForStream,
    /// A stream where JSON was asked for.
    StreamForJson,
    /// A body under a content type that says something else.
    WrongContentType,
    /// A stream whose last event lacks the blank line that ends it.
    UnfinishedStream,
    /// An event that cannot be read and was skipped.
    SkippedEvent,
    /// A piece that continues an artifact that was never begun.
    AppendToUnknownArtifact,
    /// A card that lacks a required member, or has `null` there.
    IncompleteCard,
    /// A card whose interface names no protocol version.
    NoInterfaceVersion,
    /// A card whose address was replaced by the configured one.
    AddressReplaced,
    /// A card whose address is that of one operation, such as `…/v1/message:stream`. The others are called beside it.
    OperationAddress,
    /// An address that is redirected to itself with a slash at its end, or without one.
    SlashRedirect,
    /// An answer to a blocking call before the task had ended.
    EarlyAnswer,
    /// A task whose answer was found only by asking for it again.
    AnswerOnlyInTask,
}

/// The deviations of one card or answer.
pub type Leniencies = BTreeSet<Leniency>;
