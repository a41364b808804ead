//! The coarse codes that peers compare: one alias per kind of refusal, and its canonical spelling.

use std::fmt;

/// What a refusal is called on the outside. Many [`FrameReason`](crate::FrameReason)s share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SwpCode {
    InvalidFrame,
    UnsupportedVersion,
    UnknownProfile,
    InvalidEnvelope,
    RateLimitExceeded,
    DuplicateMsgId,
    SecurityPolicy,
    UnsupportedMsgType,
    InvalidProfilePayload,
    InvalidMcpPayload,
    NotFound,
    InternalError,
    CompatibilityPolicy,
}

impl SwpCode {
    pub const ALL: [Self; 13] = [
        Self::InvalidFrame,
        Self::UnsupportedVersion,
        Self::UnknownProfile,
        Self::InvalidEnvelope,
        Self::RateLimitExceeded,
        Self::DuplicateMsgId,
        Self::SecurityPolicy,
        Self::UnsupportedMsgType,
        Self::InvalidProfilePayload,
        Self::InvalidMcpPayload,
        Self::NotFound,
        Self::InternalError,
        Self::CompatibilityPolicy,
    ];

    /// What accepted frames are said to be where a code has to stand.
    pub const OK: &'static str = "OK";

    /// `INVALID_FRAME` and the like.
    pub fn alias(self) -> &'static str {
        // Both spellings are the same word, so one cannot drift from the other.
        &self.canonical()["ERR_".len()..]
    }

    /// `ERR_INVALID_FRAME` and the like.
    pub fn canonical(self) -> &'static str {
        match self {
            Self::InvalidFrame => "ERR_INVALID_FRAME",
            Self::UnsupportedVersion => "ERR_UNSUPPORTED_VERSION",
            Self::UnknownProfile => "ERR_UNKNOWN_PROFILE",
            Self::InvalidEnvelope => "ERR_INVALID_ENVELOPE",
            Self::RateLimitExceeded => "ERR_RATE_LIMIT_EXCEEDED",
            Self::DuplicateMsgId => "ERR_DUPLICATE_MSG_ID",
            Self::SecurityPolicy => "ERR_SECURITY_POLICY",
            Self::UnsupportedMsgType => "ERR_UNSUPPORTED_MSG_TYPE",
            Self::InvalidProfilePayload => "ERR_INVALID_PROFILE_PAYLOAD",
            Self::InvalidMcpPayload => "ERR_INVALID_MCP_PAYLOAD",
            Self::NotFound => "ERR_NOT_FOUND",
            Self::InternalError => "ERR_INTERNAL_ERROR",
            Self::CompatibilityPolicy => "ERR_COMPATIBILITY_POLICY",
        }
    }
}

impl fmt::Display for SwpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.alias())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_alias_of_its_own_and_the_canonical_form_in_front_of_it() {
        for (at, code) in SwpCode::ALL.into_iter().enumerate() {
            assert_eq!(format!("ERR_{code}"), code.canonical());
            assert!(SwpCode::ALL[at + 1..].iter().all(|other| other.alias() != code.alias()), "{code}");
        }
        assert_eq!(SwpCode::InvalidProfilePayload.alias(), "INVALID_PROFILE_PAYLOAD");
    }
}
