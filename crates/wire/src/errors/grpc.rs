//! Errors as gRPC statuses.

use chancery_protocol::{Error, Version};

use super::{DOMAIN, row_of};

/// A gRPC status, with the details in its trailer.
pub fn grpc(error: &Error, version: Version) -> tonic::Status {
    use tonic_types::{ErrorDetails, StatusExt as _};
    let row = row_of(error.kind);
    let metadata = error.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut details = ErrorDetails::with_error_info(row.reason, DOMAIN, metadata.collect::<std::collections::HashMap<_, _>>());
    for fault in &error.violations {
        details.add_bad_request_violation(&fault.field, &fault.description);
    }
    if let Some(delay) = error.retry_after {
        details.set_retry_info(Some(delay));
    }
    match version {
        Version::V1_0 => tonic::Status::with_error_details(row.grpc.into(), error.message.to_string(), details),
        // Clients of 0.3 find the kind of error in front of the message.
        Version::V0_3 | Version::Original => {
            tonic::Status::with_error_details(row.grpc_0_3.into(), format!("{}: {}", row.name_0_3, error.message), details)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grpc_status_carries_the_reason_in_its_details() {
        use tonic_types::StatusExt as _;
        let status = grpc(&Error::task_not_found().with_fact("id", "x"), Version::V1_0);
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("TASK_NOT_FOUND", DOMAIN));
        assert_eq!(info.metadata["id"], "x");
        assert_eq!(grpc(&Error::task_not_found(), Version::V0_3).message(), "TaskNotFoundError: Task not found");
    }
}
