//! What an answer means: whether an entry is done, tried again or given up, and what it says about the receiver.

use serde::{Deserialize, Serialize};

use super::schedule::RetryAfter;
use crate::routing::CallOutcome;

/// How one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptAnswer {
    /// The receiver answered.
    Answered {
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header, if there was one.
        retry_after: Option<RetryAfter>,
    },
    /// There was no answer.
    Failed(FailClass),
    /// The address is not one we call. Nothing was sent.
    Blocked,
    /// We stopped it ourselves. It may have arrived.
    Cancelled,
}

/// Why there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailClass {
    /// The name could not be resolved.
    Dns,
    /// The connection could not be made.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The answer did not come in time.
    Timeout,
    /// The connection was closed before the answer.
    Reset,
    /// An answer that is no HTTP, or more of it than we read.
    Protocol,
}

impl FailClass {
    /// Every class.
    pub const ALL: [Self; 6] = [Self::Dns, Self::Connect, Self::Tls, Self::Timeout, Self::Reset, Self::Protocol];

    /// Returns the name of the class.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::Protocol => "protocol",
        }
    }
}

/// Why an entry was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadReason {
    /// The receiver answered 4xx.
    Rejected,
    /// The receiver answered with a redirect.
    Redirect,
    /// The receiver said that it is no more.
    Gone,
    /// It was tried as often and as long as the schedule has it.
    Exhausted,
}

impl DeadReason {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::Rejected, Self::Redirect, Self::Gone, Self::Exhausted];

    /// Returns the name of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Redirect => "redirect",
            Self::Gone => "gone",
            Self::Exhausted => "exhausted",
        }
    }
}

/// Why a lane was turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisableReason {
    /// Every attempt of a delivery failed.
    Exhausted,
    /// The receiver rejects the node's credentials.
    AuthRejected,
    /// The address is not allowed.
    BlockedAddress,
    /// Deliveries have failed for too long.
    Failing,
    /// An operator disabled the webhook.
    Operator,
}

impl DisableReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [Self::Exhausted, Self::AuthRejected, Self::BlockedAddress, Self::Failing, Self::Operator];

    /// Returns the name of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::AuthRejected => "auth_rejected",
            Self::BlockedAddress => "blocked_address",
            Self::Failing => "failing",
            Self::Operator => "operator",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryVerdict {
    Ack,
    Retry {
        asked: Option<RetryAfter>,
    },
    /// This entry is given up and the next one sent.
    Reject {
        reason: DeadReason,
        /// The receiver did not take our credentials.
        unauthorized: bool,
    },
    Gone,
    /// Nothing more is sent until an operator acts; pending entries stay.
    Disable {
        reason: DisableReason,
    },
    /// Nothing is known and nothing counted; the same is sent again when the lane goes on.
    Release,
}

/// What an attempt says about how many at once the origin bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    Fine,
    Neither,
    TooMuch,
}

/// Everything that follows from one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    pub verdict: DeliveryVerdict,
    /// For the breaker: whether the origin was there at all.
    pub health: CallOutcome,
    pub pressure: Pressure,
}

/// What operators allow an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latitude {
    /// 4xx is tried again, for receivers that answer 404 while they are being deployed. 401, 403 and 410 keep their meaning.
    pub retry_4xx: bool,
}

pub fn judge(answer: AttemptAnswer, latitude: Latitude) -> Judged {
    use CallOutcome::{Failed, Succeeded, Unjudged};
    use Pressure::{Fine, Neither, TooMuch};

    let (status, retry_after) = match answer {
        AttemptAnswer::Answered { status, retry_after } => (status, retry_after),
        AttemptAnswer::Failed(class) => {
            let pressure = if class == FailClass::Timeout { TooMuch } else { Neither };
            return Judged { verdict: DeliveryVerdict::Retry { asked: None }, health: Failed, pressure };
        }
        AttemptAnswer::Blocked => {
            let verdict = DeliveryVerdict::Disable { reason: DisableReason::BlockedAddress };
            return Judged { verdict, health: Unjudged, pressure: Neither };
        }
        AttemptAnswer::Cancelled => return Judged { verdict: DeliveryVerdict::Release, health: Unjudged, pressure: Neither },
    };
    let retry = DeliveryVerdict::Retry { asked: None };
    let rejected = |unauthorized| DeliveryVerdict::Reject { reason: DeadReason::Rejected, unauthorized };
    let (verdict, health, pressure) = match status {
        200..=299 => (DeliveryVerdict::Ack, Succeeded, Fine),
        300..=399 => (DeliveryVerdict::Reject { reason: DeadReason::Redirect, unauthorized: false }, Succeeded, Neither),
        410 => (DeliveryVerdict::Gone, Succeeded, Neither),
        401 | 403 => (rejected(true), Succeeded, Neither),
        429 => (DeliveryVerdict::Retry { asked: retry_after }, Succeeded, TooMuch),
        408 | 409 | 425 => (retry, Succeeded, Neither),
        400..=499 if latitude.retry_4xx => (retry, Succeeded, Neither),
        400..=499 => (rejected(false), Succeeded, Neither),
        503 => (DeliveryVerdict::Retry { asked: retry_after }, Failed, TooMuch),
        // 5xx, and what is no status at all.
        _ => (retry, Failed, Neither),
    };
    Judged { verdict, health, pressure }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn verdict(status: u16) -> DeliveryVerdict {
        judge(AttemptAnswer::Answered { status, retry_after: None }, Latitude::default()).verdict
    }

    #[test]
    fn every_status_has_the_verdict_of_the_table() {
        let rejected = |unauthorized| DeliveryVerdict::Reject { reason: DeadReason::Rejected, unauthorized };
        let retry = DeliveryVerdict::Retry { asked: None };
        for status in 0..=999_u16 {
            let expected = match status {
                200..=299 => DeliveryVerdict::Ack,
                300..=399 => DeliveryVerdict::Reject { reason: DeadReason::Redirect, unauthorized: false },
                401 | 403 => rejected(true),
                410 => DeliveryVerdict::Gone,
                408 | 409 | 425 | 429 => retry,
                400..=499 => rejected(false),
                _ => retry,
            };
            assert_eq!(verdict(status), expected, "{status}");
        }
    }

    #[test]
    fn only_429_and_503_say_when_to_come_back_and_ask_for_less() {
        let asked = Some(RetryAfter::In(Duration::from_secs(9)));
        for status in [408, 409, 425, 429, 500, 502, 503, 504] {
            let judged = judge(AttemptAnswer::Answered { status, retry_after: asked }, Latitude::default());
            let heeded = matches!(status, 429 | 503);
            assert_eq!(judged.verdict, DeliveryVerdict::Retry { asked: asked.filter(|_| heeded) }, "{status}");
            assert_eq!(judged.pressure == Pressure::TooMuch, heeded, "{status}");
        }
    }

    #[test]
    fn only_an_origin_that_is_not_there_counts_for_the_breaker() {
        let health = |status| judge(AttemptAnswer::Answered { status, retry_after: None }, Latitude::default()).health;
        for status in [200, 204, 301, 400, 401, 404, 408, 410, 425, 429] {
            assert_eq!(health(status), CallOutcome::Succeeded, "{status}");
        }
        for status in [500, 502, 503, 504, 599, 0, 100] {
            assert_eq!(health(status), CallOutcome::Failed, "{status}");
        }
        for class in FailClass::ALL {
            let judged = judge(AttemptAnswer::Failed(class), Latitude::default());
            assert_eq!(
                (judged.verdict, judged.health),
                (DeliveryVerdict::Retry { asked: None }, CallOutcome::Failed),
                "{class:?}"
            );
        }
        assert_eq!(judge(AttemptAnswer::Blocked, Latitude::default()).health, CallOutcome::Unjudged);
        assert_eq!(judge(AttemptAnswer::Cancelled, Latitude::default()).verdict, DeliveryVerdict::Release);
    }

    #[test]
    fn a_4xx_can_be_tried_again_but_neither_refused_credentials_nor_a_receiver_that_is_gone() {
        let lenient = Latitude { retry_4xx: true };
        let verdict = |status| judge(AttemptAnswer::Answered { status, retry_after: None }, lenient).verdict;
        assert_eq!(verdict(404), DeliveryVerdict::Retry { asked: None });
        assert_eq!(verdict(410), DeliveryVerdict::Gone);
        assert!(matches!(verdict(401), DeliveryVerdict::Reject { unauthorized: true, .. }));
        assert!(matches!(verdict(302), DeliveryVerdict::Reject { reason: DeadReason::Redirect, .. }));
    }

    #[test]
    fn every_reason_is_written_as_it_is_named() {
        let json = |value: String| value.trim_matches('"').to_owned();
        for reason in DeadReason::ALL {
            assert_eq!(json(serde_json::to_string(&reason).unwrap()), reason.as_str());
        }
        for reason in DisableReason::ALL {
            assert_eq!(json(serde_json::to_string(&reason).unwrap()), reason.as_str());
        }
        for class in FailClass::ALL {
            assert_eq!(json(serde_json::to_string(&class).unwrap()), class.as_str());
        }
    }
}
