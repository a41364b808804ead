//! A refusal as it came over the wire, and whether it is exactly the shape its kind has there.

use chancery_protocol::{ErrorKind, Version};
use chancery_wire::errors;
use serde_json::Value;
use tonic_types::StatusExt as _;

use super::Combination;

#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    JsonRpc {
        status: u16,
        error: Value,
        /// It came as an event of a stream, whose HTTP status says nothing of it.
        as_event: bool,
    },
    Rest {
        status: u16,
        body: Value,
    },
    Grpc(tonic::Status),
    /// The `error_message` of a result.
    Swp(String),
}

impl Refusal {
    pub(super) fn rest(status: u16, text: &str) -> Self {
        assert!(status >= 400, "{status}: {text}");
        Self::Rest { status, body: serde_json::from_str(text).unwrap_or_else(|fault| panic!("{fault}: {text}")) }
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            Self::JsonRpc { error, .. } => error["message"].as_str().unwrap_or_default(),
            Self::Rest { body, .. } => body["error"]["message"].as_str().or(body["message"].as_str()).unwrap_or_default(),
            Self::Grpc(status) => status.message(),
            Self::Swp(reason) => reason,
        }
    }

    /// The fields that the details name.
    fn fields(&self) -> Vec<String> {
        let named = |details: &Value| {
            let violations = details.as_array().into_iter().flatten().filter_map(|detail| detail["fieldViolations"].as_array());
            violations.flatten().filter_map(|violation| violation["field"].as_str().map(str::to_owned)).collect()
        };
        match self {
            Self::JsonRpc { error, .. } => named(&error["data"]),
            Self::Rest { body, .. } => named(&body["error"]["details"]),
            Self::Swp(_) => Vec::new(),
            Self::Grpc(status) => {
                let details = status.get_error_details();
                let violations = details.bad_request().map(|bad| bad.field_violations.clone()).unwrap_or_default();
                violations.into_iter().map(|violation| violation.field).collect()
            }
        }
    }

    /// Says what is wrong if this is not how an error of this kind looks in this combination.
    pub(crate) fn check(&self, kind: ErrorKind, combination: Combination) -> Result<(), String> {
        let row = errors::row_of(kind);
        let version = combination.version;
        let (seen, expected) = match self {
            Self::JsonRpc { status, error, as_event } => {
                let http = if *as_event { 200 } else { errors::json_rpc_http_status(kind) };
                let seen = (i64::from(*status), error["code"].clone(), error["data"][0]["reason"].clone());
                let code = errors::json_rpc_code(kind, version);
                (format!("{seen:?}"), format!("{:?}", (i64::from(http), Value::from(code), Value::from(row.reason),)))
            }
            Self::Rest { status, body } if version == Version::V1_0 => {
                let error = &body["error"];
                let seen = (*status, error["code"].clone(), error["details"][0]["reason"].clone());
                (format!("{seen:?}"), format!("{:?}", (row.http, Value::from(row.http), Value::from(row.reason))))
            }
            Self::Rest { status, body } => {
                let seen = (*status, body["code"].clone(), body["type"].clone());
                let code = errors::json_rpc_code(kind, version);
                (format!("{seen:?}"), format!("{:?}", (row.http_0_3, Value::from(code), Value::from(row.name_0_3))))
            }
            Self::Swp(reason) => {
                let seen: Vec<&str> = reason.splitn(3, ": ").take(2).collect();
                (format!("{seen:?}"), format!("{:?}", [row.reason, errors::swp_condition(kind).says()]))
            }
            Self::Grpc(status) => {
                let reason = status.get_error_details().error_info().map(|info| info.reason.clone());
                let code = if version == Version::V1_0 { row.grpc } else { row.grpc_0_3 };
                let named = version == Version::V1_0 || status.message().starts_with(&format!("{}: ", row.name_0_3));
                (format!("{:?}", (status.code(), reason, named)), format!("{:?}", (code, Some(row.reason), true)))
            }
        };
        if seen == expected { Ok(()) } else { Err(format!("refused with {seen}, not {expected}: {}", self.message())) }
    }

    /// Says what is wrong if the refusal does not name this field.
    pub(crate) fn check_field(&self, field: &str, combination: Combination) -> Result<(), String> {
        let detailed = !matches!((self, combination.version), (Self::Rest { .. }, Version::V0_3) | (Self::Swp(_), _));
        let fields = self.fields();
        if !self.message().contains(field) || detailed && fields != [field] {
            return Err(format!("{field} is not named: {} {fields:?}", self.message()));
        }
        Ok(())
    }
}
