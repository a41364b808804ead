//! The one shape of an error of the admin API: that of A2A 1.0 over HTTP+JSON.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chancery_protocol::{Error, Version};
use serde_json::{Value, json};

/// Why an operator's call was not done.
#[derive(Debug)]
pub(super) struct Fault {
    code: StatusCode,
    /// The name of the status, such as `NOT_FOUND`.
    status: String,
    message: String,
    details: Vec<Value>,
}

impl Fault {
    pub(super) fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self { code, status: status_name(code).to_owned(), message: message.into(), details: Vec::new() }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn unknown(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn with_details(self, details: Vec<Value>) -> Self {
        Self { details, ..self }
    }
}

fn status_name(code: StatusCode) -> &'static str {
    match code {
        StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE | StatusCode::UNPROCESSABLE_ENTITY => "INVALID_ARGUMENT",
        StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::METHOD_NOT_ALLOWED => "UNIMPLEMENTED",
        StatusCode::CONFLICT => "FAILED_PRECONDITION",
        StatusCode::PAYLOAD_TOO_LARGE => "RESOURCE_EXHAUSTED",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let Self { code, status, message, details } = self;
        let error = json!({ "code": code.as_u16(), "status": status, "message": message, "details": details });
        (code, Json(json!({ "error": error }))).into_response()
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let code = chancery_wire::errors::http_status(error.kind, Version::V1_0);
        let body = chancery_wire::errors::rest(&error, Version::V1_0);
        let mut shown: Value = serde_json::from_slice(&body).unwrap_or_default();
        let fault = Self::new(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error.message);
        let status = shown["error"]["status"].as_str().map_or_else(|| fault.status.clone(), str::to_owned);
        let details = match shown["error"]["details"].take() {
            Value::Array(details) => details,
            _ => Vec::new(),
        };
        Self { status, details, ..fault }
    }
}
