//! The one table of how each kind of error looks on each wire, and the writers that use it.

mod code;
#[cfg(feature = "grpc")]
mod grpc;
pub mod read;
#[cfg(feature = "swp")]
mod swp;

use chancery_protocol::{Error, ErrorKind, Version};
use serde_json::{Value, json};

pub use self::code::StatusName;
#[cfg(feature = "grpc")]
pub use self::grpc::grpc;
#[cfg(feature = "swp")]
pub use self::swp::{swp, swp_condition};

/// How a kind of error is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub json_rpc: i32,
    pub http: u16,
    pub grpc: StatusName,
    pub reason: &'static str,
    /// Version 0.3 had no error mapping for REST and gRPC in its text; these are what its SDKs agreed on.
    pub http_0_3: u16,
    pub grpc_0_3: StatusName,
    pub name_0_3: &'static str,
}

const fn row(kind: ErrorKind, json_rpc: i32, http: u16, grpc: StatusName, older: (u16, StatusName, &'static str)) -> Row {
    Row { json_rpc, http, grpc, reason: kind.reason(), http_0_3: older.0, grpc_0_3: older.1, name_0_3: older.2 }
}

/// The specification's rows as of 1.0.1, then ours.
#[rustfmt::skip]
pub const fn row_of(kind: ErrorKind) -> Row {
    use StatusName::{Aborted, DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument, NotFound, PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable, Unimplemented};
    match kind {
        ErrorKind::TaskNotFound => row(kind, -32001, 404, NotFound, (404, NotFound, "TaskNotFoundError")),
        ErrorKind::TaskNotCancelable => row(kind, -32002, 400, FailedPrecondition, (409, FailedPrecondition, "TaskNotCancelableError")),
        ErrorKind::PushNotificationNotSupported => row(kind, -32003, 400, FailedPrecondition, (501, Unimplemented, "PushNotificationNotSupportedError")),
        ErrorKind::UnsupportedOperation => row(kind, -32004, 400, FailedPrecondition, (501, Unimplemented, "UnsupportedOperationError")),
        ErrorKind::ContentTypeNotSupported => row(kind, -32005, 400, InvalidArgument, (415, InvalidArgument, "ContentTypeNotSupportedError")),
        ErrorKind::InvalidAgentResponse => row(kind, -32006, 500, Internal, (502, Internal, "InvalidAgentResponseError")),
        ErrorKind::ExtendedAgentCardNotConfigured => row(kind, -32007, 400, FailedPrecondition, (404, FailedPrecondition, "ExtendedAgentCardNotConfiguredError")),
        ErrorKind::ExtensionSupportRequired => row(kind, -32008, 400, FailedPrecondition, (400, FailedPrecondition, "InternalError")),
        ErrorKind::VersionNotSupported => row(kind, -32009, 400, FailedPrecondition, (400, FailedPrecondition, "InternalError")),
        ErrorKind::Parse => row(kind, -32700, 400, InvalidArgument, (400, InvalidArgument, "JSONParseError")),
        ErrorKind::InvalidRequest => row(kind, -32600, 400, InvalidArgument, (400, InvalidArgument, "InvalidRequestError")),
        ErrorKind::MethodNotFound => row(kind, -32601, 404, NotFound, (404, NotFound, "MethodNotFoundError")),
        ErrorKind::InvalidParams => row(kind, -32602, 400, InvalidArgument, (400, InvalidArgument, "InvalidParamsError")),
        ErrorKind::Internal => row(kind, -32603, 500, Internal, (500, Internal, "InternalError")),
        ErrorKind::RateLimited => row(kind, -32040, 429, ResourceExhausted, (429, ResourceExhausted, "RateLimitedError")),
        ErrorKind::TooLarge => row(kind, -32041, 413, ResourceExhausted, (413, ResourceExhausted, "TooLargeError")),
        ErrorKind::LimitReached => row(kind, -32042, 429, ResourceExhausted, (429, ResourceExhausted, "LimitReachedError")),
        ErrorKind::IdempotencyConflict => row(kind, -32043, 409, Aborted, (409, Aborted, "IdempotencyConflictError")),
        ErrorKind::TaskForgotten => row(kind, -32064, 410, FailedPrecondition, (410, FailedPrecondition, "TaskForgottenError")),
        ErrorKind::Unavailable => row(kind, -32044, 503, Unavailable, (503, Unavailable, "UnavailableError")),
        ErrorKind::DeadlineExceeded => row(kind, -32045, 408, DeadlineExceeded, (408, DeadlineExceeded, "DeadlineExceededError")),
        ErrorKind::Unauthenticated => row(kind, -32046, 401, Unauthenticated, (401, Unauthenticated, "UnauthenticatedError")),
        ErrorKind::PermissionDenied => row(kind, -32047, 403, PermissionDenied, (403, PermissionDenied, "PermissionDeniedError")),
        ErrorKind::HostNotServed => row(kind, -32048, 421, FailedPrecondition, (421, FailedPrecondition, "HostNotServedError")),
        ErrorKind::OriginNotAllowed => row(kind, -32049, 403, PermissionDenied, (403, PermissionDenied, "OriginNotAllowedError")),
        ErrorKind::BudgetExhausted => row(kind, -32050, 429, ResourceExhausted, (429, ResourceExhausted, "BudgetExhaustedError")),
        ErrorKind::BudgetQueueFull => row(kind, -32051, 429, ResourceExhausted, (429, ResourceExhausted, "BudgetQueueFullError")),
        ErrorKind::RecursionDepth => row(kind, -32052, 400, FailedPrecondition, (400, FailedPrecondition, "RecursionDepthError")),
        ErrorKind::RecursionRevisit => row(kind, -32053, 400, FailedPrecondition, (400, FailedPrecondition, "RecursionRevisitError")),
        ErrorKind::LineageInvalid => row(kind, -32054, 403, PermissionDenied, (403, PermissionDenied, "LineageInvalidError")),
        ErrorKind::LineageRequired => row(kind, -32055, 400, FailedPrecondition, (400, FailedPrecondition, "LineageRequiredError")),
        ErrorKind::SkillDenied => row(kind, -32056, 403, PermissionDenied, (403, PermissionDenied, "SkillDeniedError")),
        ErrorKind::ConcurrencyFull => row(kind, -32057, 429, ResourceExhausted, (429, ResourceExhausted, "ConcurrencyFullError")),
        ErrorKind::CostOverPolicy => row(kind, -32058, 403, PermissionDenied, (403, PermissionDenied, "CostOverPolicyError")),
        ErrorKind::PolicyTimeout => row(kind, -32059, 504, DeadlineExceeded, (504, DeadlineExceeded, "PolicyTimeoutError")),
        ErrorKind::PolicyDenied => row(kind, -32060, 403, PermissionDenied, (403, PermissionDenied, "PolicyDeniedError")),
        ErrorKind::Frozen => row(kind, -32061, 403, PermissionDenied, (403, PermissionDenied, "FrozenError")),
        ErrorKind::NoEligiblePeer => row(kind, -32062, 503, Unavailable, (503, Unavailable, "NoEligiblePeerError")),
        ErrorKind::PeerUnavailable => row(kind, -32063, 503, Unavailable, (503, Unavailable, "PeerUnavailableError")),
    }
}

const DOMAIN: &str = "a2a-protocol.org";

/// The JSON-RPC code in the caller's version.
pub const fn json_rpc_code(kind: ErrorKind, version: Version) -> i32 {
    match (kind, version) {
        // Codes that came with 1.0; older callers know them only as something that went wrong here.
        (ErrorKind::ExtensionSupportRequired | ErrorKind::VersionNotSupported, Version::V0_3 | Version::Original) => -32603,
        // The code the ADR gives to a call without good credentials; its surface has no other meaning for it.
        (ErrorKind::Unauthenticated, Version::Original) => -32001,
        (kind, _) => row_of(kind).json_rpc,
    }
}

/// The HTTP status over REST, in the caller's version.
pub const fn http_status(kind: ErrorKind, version: Version) -> u16 {
    match version {
        Version::V1_0 => row_of(kind).http,
        Version::V0_3 | Version::Original => row_of(kind).http_0_3,
    }
}

/// The HTTP status of a JSON-RPC response: 200, because the call arrived, unless the refusal is about HTTP itself.
pub const fn json_rpc_http_status(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::RateLimited
        | ErrorKind::TooLarge
        | ErrorKind::Unavailable
        | ErrorKind::DeadlineExceeded
        | ErrorKind::Unauthenticated
        | ErrorKind::PermissionDenied
        | ErrorKind::HostNotServed
        | ErrorKind::OriginNotAllowed => row_of(kind).http,
        _ => 200,
    }
}

/// A JSON-RPC error response. `id` is the request's id as JSON text.
pub fn json_rpc(error: &Error, version: Version, id: &str) -> Vec<u8> {
    let body = json!({ "code": json_rpc_code(error.kind, version), "message": error.message, "data": details(error) });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{body}}}"#).into_bytes()
}

/// A REST error body.
pub fn rest(error: &Error, version: Version) -> Vec<u8> {
    let row = row_of(error.kind);
    let body = match version {
        Version::V1_0 => json!({ "error": {
            "code": row.http, "status": row.grpc.text(), "message": error.message, "details": details(error),
        }}),
        Version::V0_3 | Version::Original => json!({
            "code": json_rpc_code(error.kind, version), "message": error.message, "type": row.name_0_3,
        }),
    };
    body.to_string().into_bytes()
}

fn details(error: &Error) -> Value {
    let facts: serde_json::Map<String, Value> =
        error.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let mut details = vec![json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": row_of(error.kind).reason, "domain": DOMAIN, "metadata": facts,
    })];
    if !error.violations.is_empty() {
        let violations: Vec<Value> =
            error.violations.iter().map(|fault| json!({ "field": fault.field, "description": fault.description })).collect();
        details.push(json!({ "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations }));
    }
    Value::Array(details)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification's table, 1.0.1 section 5.4, written out a second time on purpose.
    #[test]
    fn the_table_is_the_specifications_row_by_row() {
        let specification = [
            (ErrorKind::TaskNotFound, -32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
            (ErrorKind::TaskNotCancelable, -32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
            (ErrorKind::PushNotificationNotSupported, -32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            (ErrorKind::UnsupportedOperation, -32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
            (ErrorKind::ContentTypeNotSupported, -32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            (ErrorKind::InvalidAgentResponse, -32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
            (ErrorKind::ExtendedAgentCardNotConfigured, -32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
            (ErrorKind::ExtensionSupportRequired, -32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
            (ErrorKind::VersionNotSupported, -32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
            (ErrorKind::Parse, -32700, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            (ErrorKind::InvalidRequest, -32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            (ErrorKind::MethodNotFound, -32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
            (ErrorKind::InvalidParams, -32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
            (ErrorKind::Internal, -32603, 500, "INTERNAL", "INTERNAL_ERROR"),
        ];
        for (kind, json_rpc, http, grpc, reason) in specification {
            let row = row_of(kind);
            assert_eq!((row.json_rpc, row.http, row.grpc.text(), row.reason), (json_rpc, http, grpc, reason));
        }
    }

    #[test]
    fn no_two_kinds_share_a_json_rpc_code() {
        let codes: std::collections::BTreeSet<_> = ErrorKind::ALL.into_iter().map(|kind| row_of(kind).json_rpc).collect();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
    }

    #[test]
    fn every_reason_has_a_page_that_says_its_codes() {
        let pages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors");
        for kind in ErrorKind::ALL {
            let row = row_of(kind);
            let page = std::fs::read_to_string(pages.join(format!("{}.md", row.reason))).unwrap_or_default();
            for fact in [row.json_rpc.to_string(), row.http.to_string(), row.grpc.text().to_owned()] {
                assert!(page.contains(&fact), "docs/errors/{}.md does not say {fact}", row.reason);
            }
        }
    }

    #[test]
    fn errors_are_written_in_the_callers_version() {
        let error = Error::invalid_field("message.parts", "must contain at least one element");
        let text = String::from_utf8(json_rpc(&error, Version::V1_0, "7")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["id"], 7);
        assert_eq!(value["error"]["code"], -32602);
        assert_eq!(value["error"]["data"][0]["domain"], "a2a-protocol.org");
        assert_eq!(value["error"]["data"][1]["fieldViolations"][0]["field"], "message.parts");
        let newer: Value = serde_json::from_slice(&rest(&Error::task_not_found(), Version::V1_0)).unwrap();
        assert_eq!((newer["error"]["code"].as_i64(), newer["error"]["status"].as_str()), (Some(404), Some("NOT_FOUND")));
        let older: Value = serde_json::from_slice(&rest(&Error::task_not_found(), Version::V0_3)).unwrap();
        assert_eq!((older["code"].as_i64(), older["type"].as_str()), (Some(-32001), Some("TaskNotFoundError")));
        assert_eq!(json_rpc_code(ErrorKind::VersionNotSupported, Version::V0_3), -32603);
    }
}
