//! The status codes of gRPC, which REST answers name too.

/// A status code. Its number is the one that gRPC sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusName {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl StatusName {
    const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The name in REST answers.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    pub(super) fn of_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.text() == text)
    }
}

#[cfg(feature = "grpc")]
impl From<StatusName> for tonic::Code {
    fn from(name: StatusName) -> Self {
        Self::from_i32(name as i32)
    }
}

#[cfg(feature = "grpc")]
impl From<tonic::Code> for StatusName {
    fn from(code: tonic::Code) -> Self {
        Self::ALL.into_iter().find(|name| *name as i32 == code as i32).unwrap_or(Self::Unknown)
    }
}

#[cfg(all(test, feature = "grpc"))]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_grpc_has_a_name_and_comes_back() {
        for name in StatusName::ALL {
            assert_eq!(StatusName::from(tonic::Code::from(name)), name);
            assert_eq!(StatusName::of_text(name.text()), Some(name));
            assert_eq!(format!("{name:?}"), format!("{:?}", tonic::Code::from(name)));
        }
    }
}
