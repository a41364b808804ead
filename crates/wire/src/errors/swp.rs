//! Errors as results of SWP.

use chancery_protocol::{Error, ErrorKind};
use chancery_swp::a2a::ResultCondition;

use super::row_of;

/// The result condition of SWP's A2A profile for a kind of error.
pub const fn swp_condition(kind: ErrorKind) -> ResultCondition {
    match kind {
        ErrorKind::UnsupportedOperation
        | ErrorKind::TaskNotCancelable
        | ErrorKind::PushNotificationNotSupported
        | ErrorKind::ExtendedAgentCardNotConfigured
        | ErrorKind::ExtensionSupportRequired
        | ErrorKind::VersionNotSupported
        | ErrorKind::MethodNotFound => ResultCondition::UnsupportedCapability,
        ErrorKind::ContentTypeNotSupported
        | ErrorKind::Parse
        | ErrorKind::InvalidRequest
        | ErrorKind::InvalidParams
        | ErrorKind::TooLarge => ResultCondition::MalformedInput,
        ErrorKind::TaskNotFound | ErrorKind::TaskForgotten => ResultCondition::UnknownTask,
        ErrorKind::Unauthenticated
        | ErrorKind::PermissionDenied
        | ErrorKind::HostNotServed
        | ErrorKind::OriginNotAllowed
        | ErrorKind::BudgetExhausted
        | ErrorKind::BudgetQueueFull
        | ErrorKind::RecursionDepth
        | ErrorKind::RecursionRevisit
        | ErrorKind::LineageInvalid
        | ErrorKind::LineageRequired
        | ErrorKind::SkillDenied
        | ErrorKind::ConcurrencyFull
        | ErrorKind::CostOverPolicy
        | ErrorKind::PolicyDenied
        | ErrorKind::Frozen => ResultCondition::AuthorizationDenied,
        ErrorKind::InvalidAgentResponse
        | ErrorKind::Internal
        | ErrorKind::RateLimited
        | ErrorKind::LimitReached
        | ErrorKind::IdempotencyConflict
        | ErrorKind::Unavailable
        | ErrorKind::DeadlineExceeded
        | ErrorKind::PolicyTimeout
        | ErrorKind::NoEligiblePeer
        | ErrorKind::PeerUnavailable => ResultCondition::ExecutionFailed,
    }
}

/// The `error_message` of an SWP result: the reason, the profile's words for it, the message, and the retry delay.
pub fn swp(error: &Error) -> String {
    let said = format!("{}: {}: {}", row_of(error.kind).reason, swp_condition(error.kind).says(), error.message);
    match error.retry_after {
        // Whole seconds, never zero: "now" would be wrong.
        Some(delay) => format!("{said}{RETRY_AFTER}{} s", (delay.as_secs() + u64::from(delay.subsec_nanos() > 0)).max(1)),
        None => said,
    }
}

/// The text before the seconds of the retry delay.
pub(super) const RETRY_AFTER: &str = "; retry after ";

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn an_swp_refusal_says_when_to_try_again_and_is_read_back() {
        let wait = std::time::Duration::from_millis(4_200);
        let error = Error { retry_after: Some(wait), ..Error::new(ErrorKind::Unavailable, "no room; for now") };
        let text = swp(&error);
        assert!(text.starts_with("UNAVAILABLE: ") && text.ends_with(": no room; for now; retry after 5 s"), "{text}");
        let read = read::swp(&text).unwrap();
        assert_eq!((read.kind, &*read.message), (ErrorKind::Unavailable, "no room; for now"));
        assert_eq!(read.retry_after, Some(std::time::Duration::from_secs(5)));
        let without = read::swp(&swp(&Error::new(ErrorKind::Unavailable, "no room; retry after lunch"))).unwrap();
        assert_eq!((&*without.message, without.retry_after), ("no room; retry after lunch", None));
    }
}
