//! Every kind of error, written by an agent of every version and binding, read back as the same kind.

use std::time::Duration;

use chancery_outbound::ClientError;
use chancery_outbound::client::WasSent;
use chancery_protocol::{Binding, Error, ErrorKind, Operation, Version};

use super::agent::{Answer, ScriptedAgent, Step, client, conditions};
use super::raw::{RawAgent, Then, http};
use super::samples::{Speaks, changed, request};
use chancery_outbound::ClientLimits;
use chancery_protocol::TaskState;

/// What is left of a kind on the way. Everything else arrives as it is.
fn carried((version, binding): (Version, Binding), kind: ErrorKind) -> ErrorKind {
    match (version, binding, kind) {
        // The specification gives both the same reason, and nothing else tells them apart there.
        (Version::V1_0, Binding::Rest | Binding::Grpc, ErrorKind::Parse) => ErrorKind::InvalidRequest,
        // Kinds that 0.3 does not know; its REST bodies have no details to say more in.
        (Version::V0_3, Binding::Rest, ErrorKind::ExtensionSupportRequired | ErrorKind::VersionNotSupported) => {
            ErrorKind::Internal
        }
        (_, _, kind) => kind,
    }
}

fn refused(fault: ClientError) -> Error {
    assert_eq!(fault.sent(), WasSent::Maybe);
    match fault {
        ClientError::Refused(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_kind_of_error_comes_back_as_itself() {
    for speaks in Speaks::ALL {
        for kind in ErrorKind::ALL {
            let agent = ScriptedAgent::start(speaks, move |_| Answer::Refusal(Error::new(kind, "because: of that"))).await;
            for operation in [Operation::SendMessage, Operation::CancelTask, Operation::GetPushConfig] {
                let fault = agent.client().call(&request(speaks.0, operation), &conditions()).await.unwrap_err();
                let error = refused(fault);
                assert_eq!(error.kind, carried(speaks, kind), "{speaks:?} {operation:?}");
                assert_eq!(error.message, "because: of that", "{speaks:?} {kind:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_can_be_refused_before_its_first_event_and_after_it() {
    for speaks in Speaks::ALL {
        for kind in ErrorKind::ALL {
            let agent = ScriptedAgent::start(speaks, move |asked| match asked.operation() {
                Operation::SubscribeToTask => Answer::Refusal(Error::new(kind, "no")),
                _ => Answer::Events(vec![Step::Event(changed(TaskState::Working)), Step::Fail(Error::new(kind, "no"))]),
            })
            .await;
            let fault = agent.client().stream(&request(speaks.0, Operation::SubscribeToTask), &conditions()).await.unwrap_err();
            assert_eq!(refused(fault).kind, carried(speaks, kind), "{speaks:?}");

            let mut stream = agent.client().stream(&request(speaks.0, Operation::StreamMessage), &conditions()).await.unwrap();
            assert!(stream.next().await.unwrap().is_some());
            let fault = stream.next().await.unwrap_err();
            assert_eq!(stream.next().await.unwrap_err(), fault, "what was said last is said again");
            assert_eq!(refused(fault).kind, carried(speaks, kind), "{speaks:?}");
        }
    }
}

#[tokio::test]
async fn wrong_fields_are_named_where_the_version_names_them() {
    for speaks in Speaks::ALL {
        let agent =
            ScriptedAgent::start(speaks, |_| Answer::Refusal(Error::invalid_field("message.parts", "must not be empty"))).await;
        let fault = agent.client().call(&request(speaks.0, Operation::SendMessage), &conditions()).await.unwrap_err();
        let error = refused(fault);
        let expected = if speaks == (Version::V0_3, Binding::Rest) { 0 } else { 1 };
        assert_eq!(error.violations.len(), expected, "{speaks:?}");
        assert!(error.violations.iter().all(|fault| fault.field == "message.parts"), "{speaks:?}");
    }
}

async fn call_raw(speaks: (Version, Binding), answer: String, operation: Operation) -> ClientError {
    let agent = RawAgent::saying(answer, Then::Close).await;
    let client = client(&agent.url(), speaks, ClientLimits::default());
    client.call(&request(speaks.0, operation), &conditions()).await.unwrap_err()
}

#[tokio::test]
async fn a_busy_agents_wish_to_wait_is_kept() {
    for binding in [Binding::JsonRpc, Binding::Rest] {
        for (status, kind) in [("503 Later", ErrorKind::Unavailable), ("429 Slow", ErrorKind::RateLimited)] {
            let answer = http(status, "content-type: text/html\r\nretry-after: 17\r\n", "<p>later</p>");
            let fault = call_raw((Version::V1_0, binding), answer, Operation::SendMessage).await;
            assert_eq!(fault.retry_after(), Some(Duration::from_secs(17)));
            let error = refused(fault);
            assert_eq!(error.kind, kind);
            assert!(!error.message.contains("<p>"), "pages are not passed on");
        }
    }
    let delayed = Error { retry_after: Some(Duration::from_secs(3)), ..Error::new(ErrorKind::RateLimited, "slow") };
    let agent = ScriptedAgent::start((Version::V1_0, Binding::Grpc), move |_| Answer::Refusal(delayed.clone())).await;
    let fault = agent.client().call(&request(Version::V1_0, Operation::GetTask), &conditions()).await.unwrap_err();
    assert_eq!(fault.retry_after(), Some(Duration::from_secs(3)));
}

/// Bodies as servers of others write them: only a message, FastAPI's detail, JSON-RPC's object in a REST answer, nothing.
#[tokio::test]
async fn a_rest_error_without_a_known_shape_is_read_by_its_status_and_operation() {
    let json = "content-type: application/json\r\n";
    for (status, body, operation, kind) in [
        ("404 X", r#"{"message":"gone"}"#, Operation::GetTask, ErrorKind::TaskNotFound),
        ("404 X", r#"{"detail":"Not Found"}"#, Operation::SendMessage, ErrorKind::MethodNotFound),
        ("409 X", r#"{"message":"done"}"#, Operation::CancelTask, ErrorKind::TaskNotCancelable),
        ("501 X", r#"{"message":"no"}"#, Operation::CreatePushConfig, ErrorKind::PushNotificationNotSupported),
        ("501 X", r#"{"message":"no"}"#, Operation::ListTasks, ErrorKind::UnsupportedOperation),
        ("400 X", r#"{"code":-32003,"message":"no"}"#, Operation::GetPushConfig, ErrorKind::PushNotificationNotSupported),
        ("500 X", r#"{"error":{"code":-32001,"message":"no"}}"#, Operation::GetTask, ErrorKind::TaskNotFound),
        (
            "400 X",
            r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"no"}}"#,
            Operation::GetTask,
            ErrorKind::InvalidRequest,
        ),
        ("418 X", r#"{"teapot":true}"#, Operation::GetTask, ErrorKind::Internal),
    ] {
        let fault = call_raw((Version::V0_3, Binding::Rest), http(status, json, body), operation).await;
        assert_eq!(refused(fault).kind, kind, "{status} {body}");
    }
    let fault = call_raw((Version::V0_3, Binding::Rest), http("502 X", "", ""), Operation::GetTask).await;
    assert_eq!(refused(fault).kind, ErrorKind::Unavailable);
}
