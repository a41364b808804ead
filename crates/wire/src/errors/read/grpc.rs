//! Reads a peer's gRPC status as an error of this node.

use chancery_protocol::{Error, Operation};
use tonic::Status;

use super::{LONGEST_WAIT, VIOLATIONS, message, of_grpc_code, of_name, of_reason, violation};
use crate::errors::{DOMAIN, row_of};

/// Reads the status of a gRPC answer.
pub fn grpc(status: &Status, operation: Operation) -> Error {
    use tonic_types::StatusExt as _;
    let details = status.get_error_details();
    let (prefix, rest) = status.message().split_once(": ").unwrap_or_default();
    let by_name = of_name(prefix);
    let by_reason = details.error_info().filter(|info| info.domain == DOMAIN).and_then(|info| of_reason(&info.reason));
    let kind = match (by_reason, by_name) {
        // The name tells apart what shares a reason.
        (Some(reason), Some(name)) if row_of(reason).reason == row_of(name).reason => name,
        (Some(reason), _) => reason,
        (None, Some(name)) => name,
        (None, None) => of_grpc_code(status.code().into(), operation),
    };
    let text = if by_name.is_some() { rest } else { status.message() };
    let mut error = Error::new(kind, message(Some(text), kind));
    if let Some(request) = details.bad_request() {
        let faults = request.field_violations.iter().take(VIOLATIONS);
        error.violations = faults.map(|fault| violation(&fault.field, &fault.description)).collect();
    }
    error.retry_after = details.retry_info().and_then(|info| info.retry_delay).map(|delay| delay.min(LONGEST_WAIT));
    error
}
