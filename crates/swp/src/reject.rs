//! A refusal: its reason, the figures behind it, and what the protobuf reader said.

use std::fmt;

use crate::{FrameReason, SwpCode};

/// What was found and what would have been allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    pub found: u64,
    pub limit: u64,
}

/// Why something was refused. Its text holds figures and our own words, and nothing of what the peer sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Reject {
    reason: FrameReason,
    measured: Option<Measured>,
    #[source]
    source: Option<prost::DecodeError>,
}

impl Reject {
    pub(crate) fn beyond(reason: FrameReason, found: u64, limit: u64) -> Self {
        Self { reason, measured: Some(Measured { found, limit }), source: None }
    }

    pub(crate) fn malformed(source: prost::DecodeError) -> Self {
        Self { reason: FrameReason::MalformedPayload, measured: None, source: Some(source) }
    }

    pub fn reason(&self) -> FrameReason {
        self.reason
    }

    pub fn code(&self) -> SwpCode {
        self.reason.code()
    }

    /// The figures, where the refusal is about a limit.
    pub fn measured(&self) -> Option<Measured> {
        self.measured
    }
}

impl From<FrameReason> for Reject {
    fn from(reason: FrameReason) -> Self {
        Self { reason, measured: None, source: None }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.reason.says())?;
        match self.measured {
            Some(Measured { found, limit }) => write!(f, " ({found}, limit {limit})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_its_code_what_is_wrong_and_the_figures() {
        let reject = Reject::beyond(FrameReason::FrameTooLarge, 8_388_609, 8_388_608);
        assert_eq!(reject.to_string(), "INVALID_FRAME: the frame is longer than allowed (8388609, limit 8388608)");
        assert_eq!(Reject::from(FrameReason::UnknownTask).to_string(), "INVALID_PROFILE_PAYLOAD: no task of that id was started");
    }
}
