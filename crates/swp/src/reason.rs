//! The fine reasons for a refusal, in one table with their coarse code, their documented code and a sentence.

use std::fmt;

use crate::SwpCode;

/// Declares the reasons and the list of all of them.
macro_rules! reasons {
    ($($name:ident,)*) => {
        /// Why a frame was refused, as exactly as we know it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum FrameReason {
            $($name,)*
        }

        impl FrameReason {
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];
        }
    };
}

reasons! {
    // the frame
    TruncatedPrefix,
    ZeroLength,
    FrameTooLarge,
    TruncatedBody,
    // the envelope, while it is read
    UvarintTruncated,
    UvarintTooLong,
    UvarintOverflow,
    TruncatedField,
    ExtensionsTooLarge,
    MalformedExtension,
    PayloadTooLarge,
    TrailingOctets,
    // the envelope, once it is read
    UnsupportedVersion,
    UnknownProfile,
    MissingMsgType,
    MsgIdTooShort,
    MsgIdTooLong,
    TimestampMissing,
    TimestampStale,
    TimestampFuture,
    // the connection
    RateLimitExceeded,
    DuplicateMsgId,
    SecurityPolicy,
    // the profile
    UnsupportedMsgType,
    MalformedPayload,
    MissingBody,
    BodyMismatch,
    HandshakeTooLarge,
    MissingAgentId,
    MissingTaskId,
    TaskIdTooLong,
    MissingKind,
    EmptyEvent,
    MissingFailureReason,
    UnknownTask,
    TaskConflict,
    EventAfterResult,
    ResultConflict,
    WrongParty,
    TooManyOpenTasks,
    // what doors say
    InvalidMcpPayload,
    NotFound,
    Internal,
    CompatibilityPolicy,
}

struct Row {
    name: &'static str,
    code: SwpCode,
    /// The code of the protocol's own list, where that list is finer than what peers compare.
    fine: Option<&'static str>,
    says: &'static str,
}

const fn row(name: &'static str, code: SwpCode, says: &'static str) -> Row {
    Row { name, code, fine: None, says }
}

const fn finer(name: &'static str, code: SwpCode, fine: &'static str, says: &'static str) -> Row {
    Row { name, code, fine: Some(fine), says }
}

impl FrameReason {
    #[rustfmt::skip]
    fn row(self) -> Row {
        use SwpCode::*;
        match self {
            Self::TruncatedPrefix => row("truncated_prefix", InvalidFrame, "the stream ends inside a length prefix"),
            Self::ZeroLength => row("zero_length", InvalidFrame, "a frame of no octets"),
            Self::FrameTooLarge => finer("frame_too_large", InvalidFrame, "ERR_FRAME_TOO_LARGE", "the frame is longer than allowed"),
            Self::TruncatedBody => row("truncated_body", InvalidFrame, "the stream ends inside a frame"),
            Self::UvarintTruncated => finer("uvarint_truncated", InvalidFrame, "ERR_INVALID_UVARINT", "the envelope ends inside a number"),
            Self::UvarintTooLong => finer("uvarint_too_long", InvalidFrame, "ERR_INVALID_UVARINT", "a number does not end within ten octets"),
            Self::UvarintOverflow => finer("uvarint_overflow", InvalidFrame, "ERR_INVALID_UVARINT", "a number does not fit into 64 bits"),
            Self::TruncatedField => row("truncated_field", InvalidFrame, "a field is longer than what is left of the envelope"),
            Self::ExtensionsTooLarge => finer("extensions_too_large", InvalidEnvelope, "ERR_EXT_TOO_LARGE", "the extensions are longer than allowed"),
            Self::MalformedExtension => row("malformed_extension", InvalidFrame, "the extensions are not pairs of type and value"),
            Self::PayloadTooLarge => finer("payload_too_large", InvalidEnvelope, "ERR_PAYLOAD_TOO_LARGE", "the payload is longer than allowed"),
            Self::TrailingOctets => row("trailing_octets", InvalidFrame, "octets follow the payload"),
            Self::UnsupportedVersion => row("unsupported_version", UnsupportedVersion, "only version 1 is spoken"),
            Self::UnknownProfile => row("unknown_profile", UnknownProfile, "no such profile is registered"),
            Self::MissingMsgType => row("missing_msg_type", InvalidEnvelope, "message type 0 means none"),
            Self::MsgIdTooShort => finer("msg_id_too_short", InvalidEnvelope, "ERR_MSG_ID_INVALID", "the message id is shorter than allowed"),
            Self::MsgIdTooLong => finer("msg_id_too_long", InvalidEnvelope, "ERR_MSG_ID_INVALID", "the message id is longer than allowed"),
            Self::TimestampMissing => row("timestamp_missing", InvalidEnvelope, "a timestamp is required"),
            Self::TimestampStale => row("timestamp_stale", InvalidEnvelope, "the timestamp is too far in the past"),
            Self::TimestampFuture => row("timestamp_future", InvalidEnvelope, "the timestamp is too far in the future"),
            Self::RateLimitExceeded => row("rate_limit_exceeded", RateLimitExceeded, "more frames than one window takes"),
            Self::DuplicateMsgId => row("duplicate_msg_id", DuplicateMsgId, "the message id was used a moment ago"),
            Self::SecurityPolicy => row("security_policy", SecurityPolicy, "the channel is not as secure as required"),
            Self::UnsupportedMsgType => row("unsupported_msg_type", UnsupportedMsgType, "the profile has no such message type"),
            Self::MalformedPayload => row("malformed_payload", InvalidProfilePayload, "the payload is not well-formed P1"),
            Self::MissingBody => row("missing_body", InvalidProfilePayload, "the payload holds no message"),
            Self::BodyMismatch => row("body_mismatch", InvalidProfilePayload, "the payload holds another message than the envelope says"),
            Self::HandshakeTooLarge => row("handshake_too_large", InvalidProfilePayload, "the handshake is longer than allowed"),
            Self::MissingAgentId => row("missing_agent_id", InvalidProfilePayload, "a handshake names its agent"),
            Self::MissingTaskId => row("missing_task_id", InvalidProfilePayload, "the task id is empty"),
            Self::TaskIdTooLong => row("task_id_too_long", InvalidProfilePayload, "the task id is longer than allowed"),
            Self::MissingKind => row("missing_kind", InvalidProfilePayload, "a task says its kind"),
            Self::EmptyEvent => row("empty_event", InvalidProfilePayload, "an event has a message or a payload"),
            Self::MissingFailureReason => row("missing_failure_reason", InvalidProfilePayload, "a failure says its reason"),
            Self::UnknownTask => row("unknown_task", InvalidProfilePayload, "no task of that id was started"),
            Self::TaskConflict => row("task_conflict", InvalidProfilePayload, "the task id was used for another task"),
            Self::EventAfterResult => row("event_after_result", InvalidProfilePayload, "the task has its result already"),
            Self::ResultConflict => row("result_conflict", InvalidProfilePayload, "the task has another result already"),
            Self::WrongParty => row("wrong_party", InvalidProfilePayload, "events and results come from the receiver of the task"),
            Self::TooManyOpenTasks => row("too_many_open_tasks", RateLimitExceeded, "no more tasks may be open at once"),
            Self::InvalidMcpPayload => row("invalid_mcp_payload", InvalidMcpPayload, "the payload is not a JSON-RPC message of its type"),
            Self::NotFound => row("not_found", NotFound, "nothing of that name is here"),
            Self::Internal => row("internal", InternalError, "the fault is on this side"),
            Self::CompatibilityPolicy => row("compatibility_policy", CompatibilityPolicy, "versions may not change like this"),
        }
    }

    /// The name of this reason: stable, in snake case, unlike any other's.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// The coarse code that peers compare.
    pub fn code(self) -> SwpCode {
        self.row().code
    }

    /// The finest code that the protocol's list has for this: `ERR_FRAME_TOO_LARGE` where the coarse one is `ERR_INVALID_FRAME`.
    pub fn fine_code(self) -> &'static str {
        let row = self.row();
        row.fine.unwrap_or(row.code.canonical())
    }

    /// What is wrong, in a sentence that can be shown to the peer.
    pub fn says(self) -> &'static str {
        self.row().says
    }
}

impl fmt::Display for FrameReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_found_by_its_name_and_has_one_of_its_own() {
        for reason in FrameReason::ALL {
            assert_eq!(FrameReason::from_name(reason.name()), Some(reason));
        }
        assert_eq!(FrameReason::from_name("no_such_reason"), None);
    }

    #[test]
    fn the_list_of_all_reasons_leaves_none_out() {
        // The list is in the order of declaration, so the last one's place is the count.
        assert_eq!(FrameReason::CompatibilityPolicy as usize + 1, FrameReason::ALL.len());
        for (at, reason) in FrameReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at, "{reason}");
        }
    }

    #[test]
    fn the_fine_code_is_the_coarse_one_where_the_list_has_no_finer() {
        assert_eq!(FrameReason::ZeroLength.fine_code(), "ERR_INVALID_FRAME");
        assert_eq!(FrameReason::FrameTooLarge.fine_code(), "ERR_FRAME_TOO_LARGE");
        assert_eq!(FrameReason::FrameTooLarge.code().canonical(), "ERR_INVALID_FRAME");
    }

    #[test]
    fn the_documented_table_has_the_row_of_every_reason() {
        let page = include_str!("../docs/swp.md");
        for reason in FrameReason::ALL {
            let row = format!("| `{reason}` | {} | `{}` | `{}` |", reason.says(), reason.code(), reason.fine_code());
            assert!(page.contains(&row), "docs/swp.md lacks the row\n{row}");
        }
    }
}
