//! The reasons to reject a notification, and the answer to its sender.

use axum::response::{IntoResponse, Response};
use chancery_identity::webhook::{JwtFault, VerifyFault};
use http::StatusCode;

use crate::guard::GuardFault;

/// Why a request is not an accepted notification.
#[derive(Debug, thiserror::Error)]
pub enum NotificationRefusal {
    /// The body is larger than the receiver accepts.
    #[error("the body has more than {0} bytes")]
    TooLarge(usize),
    /// The connection ended before the body.
    #[error("the body did not arrive whole")]
    BrokenOff,
    /// The signature is missing or wrong.
    #[error(transparent)]
    Signature(#[from] VerifyFault),
    /// The token is missing or wrong.
    #[error("the notification token is missing or wrong")]
    Token,
    /// The credentials are missing or wrong.
    #[error("the credentials are missing or wrong")]
    Credentials,
    /// The JWT is missing or wrong.
    #[error(transparent)]
    Jwt(#[from] JwtFault),
    /// The signature over the body is missing or wrong.
    #[error("there is no signature over the body, or a wrong one")]
    BodySignature,
    /// The body is not a notification.
    #[error("not a notification: {0}")]
    NotANotification(String),
    /// The task is not one that the receiver expects.
    #[error("this receiver does not expect task {0:?}")]
    UnexpectedTask(String),
    /// It was taken before.
    #[error("this is a copy of a message that was taken")]
    Duplicate,
    /// Something later of the same lane was taken before.
    #[error("something later was taken before this")]
    Stale,
    /// Another copy is being worked on.
    #[error("another copy of this message is being worked on")]
    UnderWay,
    /// The memory of accepted notifications failed.
    #[error(transparent)]
    Guard(#[from] GuardFault),
}

impl NotificationRefusal {
    /// For logs, counters and the sender.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge(_) => "too_large",
            Self::BrokenOff => "broken_off",
            Self::Signature(fault) => match fault {
                VerifyFault::Missing(_) => "signature_missing",
                VerifyFault::Malformed(_) | VerifyFault::TooManySignatures => "signature_malformed",
                VerifyFault::TooOld { .. } => "too_old",
                VerifyFault::TooNew { .. } => "too_new",
                VerifyFault::NoKey | VerifyFault::BadSignature => "signature_wrong",
                VerifyFault::OtherAudience => "other_audience",
            },
            Self::Token => "token",
            Self::Credentials => "credentials",
            Self::Jwt(_) => "jwt",
            Self::BodySignature => "body_signature",
            Self::NotANotification(_) => "not_a_notification",
            Self::UnexpectedTask(_) => "unexpected_task",
            Self::Duplicate => "duplicate",
            Self::Stale => "stale",
            Self::UnderWay => "under_way",
            Self::Guard(_) => "unavailable",
        }
    }

    /// A sender does not retry after 4xx and retries after 5xx. A repeated notification is a success, or its
    /// sender would retry without end.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BrokenOff | Self::NotANotification(_) => StatusCode::BAD_REQUEST,
            Self::Signature(_) | Self::Token | Self::Credentials | Self::Jwt(_) | Self::BodySignature => StatusCode::UNAUTHORIZED,
            Self::UnexpectedTask(_) => StatusCode::NOT_FOUND,
            Self::Duplicate | Self::Stale => StatusCode::OK,
            Self::UnderWay => StatusCode::TOO_EARLY,
            Self::Guard(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Whether a client without the keys could have made it.
    pub fn is_unauthorized(&self) -> bool {
        self.status() == StatusCode::UNAUTHORIZED
    }
}

impl IntoResponse for NotificationRefusal {
    /// The code alone: what exactly was wrong is for the receiver's log.
    fn into_response(self) -> Response {
        (self.status(), self.code()).into_response()
    }
}
