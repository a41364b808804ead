//! The error table in the other direction: a peer's error, in any shape, as a kind of this node.

#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "swp")]
mod swp;

use std::borrow::Cow;
use std::time::Duration;

use chancery_protocol::{Error, ErrorKind, FieldViolation, Operation, Version};
use serde_json::Value;

#[cfg(feature = "grpc")]
pub use self::grpc::grpc;
#[cfg(feature = "swp")]
pub use self::swp::swp;
use super::{StatusName, row_of};

/// The most characters of a peer's message that are forwarded.
const MESSAGE_CHARS: usize = 2_000;
/// The most wrong fields that are forwarded.
const VIOLATIONS: usize = 32;
/// The longest retry delay that is forwarded.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);

/// Reads the `error` member of a JSON-RPC response.
pub fn json_rpc(error: &str, version: Version) -> Error {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    of_code(&error, version, &error["data"])
}

/// Reads the body of a REST answer that is no success. `status` decides where the body says nothing.
pub fn rest(status: u16, body: &str, version: Version, operation: Operation) -> Error {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let newer = &body["error"];
    if newer.is_object() {
        let details = if newer["details"].is_null() { &newer["data"] } else { &newer["details"] };
        let named = || newer["status"].as_str().and_then(StatusName::of_text).map(|code| of_grpc_code(code, operation));
        return match kind_in(details).or_else(|| of_json_rpc_code(newer, version)) {
            Some(kind) => whole(kind, newer, details),
            None => whole(of_http_status(status, operation).or_else(named).unwrap_or(ErrorKind::Internal), newer, details),
        };
    }
    let by_name = body["type"].as_str().and_then(of_name);
    let kind = by_name.or_else(|| of_json_rpc_code(&body, version)).or_else(|| of_http_status(status, operation));
    whole(kind.unwrap_or(ErrorKind::Internal), &body, &body["data"])
}

/// Whether the text is an error of a REST peer rather than an event or a reply: streams may not say it otherwise.
pub fn is_rest_error(text: &str) -> bool {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    body["error"].is_object() || (body["code"].is_i64() && body["message"].is_string())
}

/// The kind behind an HTTP status that came without a readable error.
pub fn of_http_status(status: u16, operation: Operation) -> Option<ErrorKind> {
    Some(match status {
        400 => ErrorKind::InvalidRequest,
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::PermissionDenied,
        404 if names_a_task(operation) => ErrorKind::TaskNotFound,
        404 | 405 => ErrorKind::MethodNotFound,
        408 => ErrorKind::DeadlineExceeded,
        409 if operation == Operation::CancelTask => ErrorKind::TaskNotCancelable,
        409 => ErrorKind::IdempotencyConflict,
        413 => ErrorKind::TooLarge,
        415 => ErrorKind::ContentTypeNotSupported,
        422 => ErrorKind::InvalidParams,
        429 => ErrorKind::RateLimited,
        501 if is_about_push(operation) => ErrorKind::PushNotificationNotSupported,
        501 => ErrorKind::UnsupportedOperation,
        502..=504 => ErrorKind::Unavailable,
        500..=599 => ErrorKind::Internal,
        _ => return None,
    })
}

fn of_grpc_code(code: StatusName, operation: Operation) -> ErrorKind {
    match code {
        StatusName::NotFound if names_a_task(operation) => ErrorKind::TaskNotFound,
        StatusName::NotFound => ErrorKind::MethodNotFound,
        StatusName::FailedPrecondition if operation == Operation::CancelTask => ErrorKind::TaskNotCancelable,
        StatusName::FailedPrecondition if operation == Operation::GetExtendedCard => ErrorKind::ExtendedAgentCardNotConfigured,
        StatusName::Unimplemented | StatusName::FailedPrecondition if is_about_push(operation) => {
            ErrorKind::PushNotificationNotSupported
        }
        StatusName::Unimplemented | StatusName::FailedPrecondition => ErrorKind::UnsupportedOperation,
        StatusName::InvalidArgument | StatusName::OutOfRange => ErrorKind::InvalidParams,
        StatusName::Unauthenticated => ErrorKind::Unauthenticated,
        StatusName::PermissionDenied => ErrorKind::PermissionDenied,
        StatusName::ResourceExhausted => ErrorKind::RateLimited,
        StatusName::Unavailable | StatusName::Cancelled => ErrorKind::Unavailable,
        StatusName::DeadlineExceeded => ErrorKind::DeadlineExceeded,
        StatusName::Aborted | StatusName::AlreadyExists => ErrorKind::IdempotencyConflict,
        StatusName::Ok | StatusName::Unknown | StatusName::Internal | StatusName::DataLoss => ErrorKind::Internal,
    }
}

fn names_a_task(operation: Operation) -> bool {
    is_about_push(operation) || matches!(operation, Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask)
}

fn is_about_push(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::CreatePushConfig | Operation::GetPushConfig | Operation::ListPushConfigs | Operation::DeletePushConfig
    )
}

fn of_code(error: &Value, version: Version, details: &Value) -> Error {
    let kind = match (of_json_rpc_code(error, version), kind_in(details)) {
        // The code tells apart what shares a reason.
        (Some(code), Some(reason)) if row_of(code).reason == row_of(reason).reason => code,
        (_, Some(reason)) => reason,
        (Some(code), None) => code,
        (None, None) => ErrorKind::Internal,
    };
    whole(kind, error, details)
}

fn of_json_rpc_code(error: &Value, version: Version) -> Option<ErrorKind> {
    match (error["code"].as_i64()?, version) {
        // What `rvagent-a2a` answers for a task it does not know.
        (-32010, Version::Original) => Some(ErrorKind::TaskNotFound),
        (code, _) => ErrorKind::ALL.into_iter().find(|kind| i64::from(row_of(*kind).json_rpc) == code),
    }
}

/// The kind that the details name by its reason. What Parse and InvalidRequest share is read as the latter.
fn kind_in(details: &Value) -> Option<ErrorKind> {
    let info = details.as_array()?.iter().find(|detail| detail["domain"] == super::DOMAIN)?;
    of_reason(info["reason"].as_str()?)
}

fn of_reason(reason: &str) -> Option<ErrorKind> {
    let shared = (reason == row_of(ErrorKind::InvalidRequest).reason).then_some(ErrorKind::InvalidRequest);
    shared.or_else(|| ErrorKind::ALL.into_iter().find(|kind| row_of(*kind).reason == reason))
}

/// By the name that clients of 0.3 know. Two kinds that came later share the name of `Internal`.
fn of_name(name: &str) -> Option<ErrorKind> {
    match name {
        "InternalError" => Some(ErrorKind::Internal),
        "AuthenticatedExtendedCardNotConfiguredError" => Some(ErrorKind::ExtendedAgentCardNotConfigured),
        name => ErrorKind::ALL.into_iter().find(|kind| row_of(*kind).name_0_3 == name),
    }
}

fn whole(kind: ErrorKind, said: &Value, details: &Value) -> Error {
    let text = said["message"].as_str().or_else(|| said["detail"].as_str()).or_else(|| said["title"].as_str());
    let mut error = Error::new(kind, message(text, kind));
    for detail in details.as_array().into_iter().flatten() {
        let faults = detail["fieldViolations"].as_array().into_iter().flatten().take(VIOLATIONS);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        error.violations.extend(faults.map(|fault| violation(&text(&fault["field"]), &text(&fault["description"]))));
        error.retry_after = error.retry_after.or_else(|| detail["retryDelay"].as_str().and_then(duration));
    }
    error
}

/// A ProtoJSON duration: seconds with a fraction, then `s`.
fn duration(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().map(|delay| delay.min(LONGEST_WAIT))
}

fn violation(field: &str, description: &str) -> FieldViolation {
    FieldViolation { field: shortened(field), description: shortened(description) }
}

fn message(text: Option<&str>, kind: ErrorKind) -> Cow<'static, str> {
    match text {
        Some(text) if !text.trim().is_empty() => shortened(text).into(),
        _ => format!("the agent refused without a word: {}", row_of(kind).reason).into(),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS).collect()
}

#[cfg(all(test, feature = "grpc"))]
mod tests;
