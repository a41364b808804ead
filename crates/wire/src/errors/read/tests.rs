//! Peers' errors, written by our own table and by others, and read back.

use proptest::prelude::*;

use tonic::{Code, Status};

use super::*;
use crate::errors;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V0_3, Version::Original];

fn error_of(response: &[u8]) -> String {
    let text = std::str::from_utf8(response).unwrap();
    crate::json_rpc::open_response(text).unwrap().outcome.unwrap_err().to_owned()
}

#[test]
fn json_rpc_carries_every_kind_in_every_version() {
    for version in VERSIONS {
        for kind in ErrorKind::ALL {
            let written = Error { kind, ..Error::invalid_field("a.b", "is wrong") };
            let read = json_rpc(&error_of(&errors::json_rpc(&written, version, "1")), version);
            assert_eq!(read, written, "{version:?}");
        }
    }
}

#[test]
fn a_bare_code_is_enough() {
    for version in VERSIONS {
        for kind in ErrorKind::ALL {
            let code = errors::json_rpc_code(kind, version);
            let expected = match (kind, version) {
                (ErrorKind::ExtensionSupportRequired | ErrorKind::VersionNotSupported, Version::V0_3 | Version::Original) => {
                    ErrorKind::Internal
                }
                (ErrorKind::Unauthenticated, Version::Original) => ErrorKind::TaskNotFound,
                (kind, _) => kind,
            };
            assert_eq!(json_rpc(&format!(r#"{{"code":{code},"message":"m"}}"#), version).kind, expected, "{version:?} {kind:?}");
        }
    }
    assert_eq!(json_rpc(r#"{"code":-32010,"message":"not found: task x"}"#, Version::Original).kind, ErrorKind::TaskNotFound);
    for unknown in [r#"{"code":-32099,"message":"m"}"#, r#"{"code":"x"}"#, r#"{"code":1e300}"#, "{}", "7", "", "null"] {
        let read = json_rpc(unknown, Version::V1_0);
        assert_eq!(read.kind, ErrorKind::Internal, "{unknown}");
        assert!(!read.message.is_empty(), "{unknown}");
    }
}

#[test]
fn rest_carries_what_its_bodies_can_say() {
    for (version, lost) in [
        (Version::V1_0, vec![(ErrorKind::Parse, ErrorKind::InvalidRequest)]),
        (
            Version::V0_3,
            vec![
                (ErrorKind::ExtensionSupportRequired, ErrorKind::Internal),
                (ErrorKind::VersionNotSupported, ErrorKind::Internal),
            ],
        ),
    ] {
        for kind in ErrorKind::ALL {
            let written = errors::rest(&Error::new(kind, "why"), version);
            let status = errors::http_status(kind, version);
            let read = rest(status, std::str::from_utf8(&written).unwrap(), version, Operation::SendMessage);
            let expected = lost.iter().find(|(from, _)| *from == kind).map_or(kind, |(_, to)| *to);
            assert_eq!((read.kind, &*read.message), (expected, "why"), "{version:?} {kind:?}");
        }
    }
}

#[test]
fn grpc_carries_what_its_details_can_say_and_the_delay() {
    for version in [Version::V1_0, Version::V0_3] {
        for kind in ErrorKind::ALL {
            let delay = Some(Duration::from_secs(9));
            let written = Error { kind, retry_after: delay, ..Error::invalid_field("a", "b: c") };
            let read = grpc(&errors::grpc(&written, version), Operation::SendMessage);
            let expected = match (kind, version) {
                (ErrorKind::Parse, Version::V1_0) => ErrorKind::InvalidRequest,
                (kind, _) => kind,
            };
            assert_eq!(read, Error { kind: expected, ..written }, "{version:?}");
        }
    }
}

#[test]
fn a_grpc_status_without_details_is_read_by_its_name_or_by_its_code_and_operation() {
    let kind = |code, message: &str, operation| grpc(&Status::new(code, message), operation).kind;
    let named = "TaskNotCancelableError: it is done";
    assert_eq!(kind(Code::Unknown, named, Operation::CancelTask), ErrorKind::TaskNotCancelable);
    assert_eq!(grpc(&Status::unknown(named), Operation::CancelTask).message, "it is done");
    for (code, operation, expected) in [
        (Code::NotFound, Operation::GetTask, ErrorKind::TaskNotFound),
        (Code::NotFound, Operation::SendMessage, ErrorKind::MethodNotFound),
        (Code::FailedPrecondition, Operation::CancelTask, ErrorKind::TaskNotCancelable),
        (Code::FailedPrecondition, Operation::GetExtendedCard, ErrorKind::ExtendedAgentCardNotConfigured),
        (Code::Unimplemented, Operation::GetPushConfig, ErrorKind::PushNotificationNotSupported),
        (Code::Unimplemented, Operation::SubscribeToTask, ErrorKind::UnsupportedOperation),
        (Code::Unavailable, Operation::GetTask, ErrorKind::Unavailable),
        (Code::Unknown, Operation::GetTask, ErrorKind::Internal),
    ] {
        assert_eq!(kind(code, "no", operation), expected, "{code:?} {operation:?}");
    }
    let info = tonic_types::ErrorDetails::with_error_info("TASK_NOT_FOUND", "example.org", [("a".to_owned(), "b".to_owned())]);
    let elsewhere = <Status as tonic_types::StatusExt>::with_error_details(Code::Internal, "no", info);
    assert_eq!(grpc(&elsewhere, Operation::GetTask).kind, ErrorKind::Internal, "a reason of another domain");
}

#[test]
fn what_a_peer_says_is_passed_on_only_so_far() {
    let violations = vec![r#"{"field":"f","description":"d"}"#; 1_000].join(",");
    let text = format!(
        r#"{{"code":-32602,"message":"{}","data":[{{"fieldViolations":[{violations}]}},{{"retryDelay":"1e12s"}}]}}"#,
        "x".repeat(1_000_000)
    );
    let read = json_rpc(&text, Version::V1_0);
    assert_eq!((read.message.len(), read.violations.len()), (MESSAGE_CHARS, VIOLATIONS));
    assert_eq!(read.retry_after, Some(LONGEST_WAIT));
    assert_eq!(json_rpc(r#"{"data":[{"retryDelay":"-1s"},{"retryDelay":"2.5s"}]}"#, Version::V1_0).retry_after, duration("2.5s"));
}

proptest! {
    #[test]
    fn nothing_panics_on_any_text(text in ".{0,200}", status in any::<u16>(), code in any::<i32>()) {
        for version in VERSIONS {
            let _ = json_rpc(&text, version);
            for operation in Operation::ALL {
                let _ = rest(status, &text, version, operation);
            }
        }
        let _ = is_rest_error(&text);
        let details = bytes::Bytes::from(text.clone().into_bytes());
        let _ = grpc(&Status::with_details(Code::from_i32(code), text, details), Operation::GetTask);
    }
}
