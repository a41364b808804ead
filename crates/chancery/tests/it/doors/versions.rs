//! Which version a call is in: what it says, what it does not say, and what it gets wrong, on every binding.

use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{JSON, NEWEST, get, post};
use crate::support::server::{Server, Setup};

const VERSION_NOT_SUPPORTED: i64 = -32009;

fn call(method: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": "v", "method": method, "params": { "id": "nobody" } }).to_string()
}

/// The code that a JSON-RPC call is refused with.
async fn code(server: &Server, headers: &[(&str, &str)], method: &str) -> i64 {
    let headers = [&[JSON], headers].concat();
    let (status, answer) = post(server, "/", &headers, call(method)).await;
    assert_eq!((status, &answer["id"]), (200, &json!("v")), "{answer}");
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn over_json_rpc_the_header_the_method_and_the_absence_of_both_decide() {
    let server = Setup::conformance().start();
    let not_found = -32001;
    for (header, method, expected) in [
        (Some("1.0"), "GetTask", not_found),
        (Some("1.0.1"), "GetTask", not_found),
        (None, "tasks/get", not_found),
        (Some(""), "tasks/get", not_found),
        (Some("0.3"), "tasks/get", not_found),
        (Some("0.3.0"), "tasks/get", not_found),
        // A method of 1.0 from a caller of 0.3, said or not: a code that 1.0 has.
        (None, "GetTask", VERSION_NOT_SUPPORTED),
        (Some("0.3"), "GetTask", VERSION_NOT_SUPPORTED),
        // The other way round it is in the shape that was asked for.
        (Some("1.0"), "tasks/get", VERSION_NOT_SUPPORTED),
        (Some("1.0"), "tasks/send", VERSION_NOT_SUPPORTED),
        // Versions there are none of.
        (Some("2.0"), "GetTask", VERSION_NOT_SUPPORTED),
        (Some("0.2"), "tasks/get", VERSION_NOT_SUPPORTED),
        (Some("1"), "GetTask", VERSION_NOT_SUPPORTED),
        (Some("one"), "message/send", VERSION_NOT_SUPPORTED),
        // Methods there are none of, in either version.
        (Some("1.0"), "tasks/frobnicate", -32601),
        (None, "tasks/frobnicate", -32601),
    ] {
        let headers: Vec<_> = header.map(|version| ("A2A-Version", version)).into_iter().collect();
        assert_eq!(code(&server, &headers, method).await, expected, "{header:?} {method}");
    }
}

#[tokio::test]
async fn a_version_in_the_query_counts_where_there_is_no_header() {
    let server = Setup::conformance().start();
    let (_, newest) = post(&server, "/?A2A-Version=1.0", &[JSON], call("GetTask")).await;
    assert_eq!(newest["error"]["code"], -32001, "{newest}");
    let (_, header_wins) = post(&server, "/?A2A-Version=1.0", &[JSON, ("A2A-Version", "0.3")], call("GetTask")).await;
    assert_eq!(header_wins["error"]["code"], VERSION_NOT_SUPPORTED, "{header_wins}");
    let (status, _) = get(&server, "/tasks?A2A-Version=1.0", &[]).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn an_unknown_version_is_refused_with_what_there_is() {
    let server = Setup::conformance().start();
    let (_, answer) = post(&server, "/", &[JSON, ("A2A-Version", "9.9")], call("GetTask")).await;
    let info = &answer["error"]["data"][0];
    assert_eq!((&info["reason"], &info["domain"]), (&json!("VERSION_NOT_SUPPORTED"), &json!("a2a-protocol.org")), "{answer}");
    assert_eq!(info["metadata"]["supported"], "1.0, 0.3");
    assert!(answer["error"]["message"].as_str().unwrap().contains("9.9"), "{answer}");
}

#[tokio::test]
async fn over_rest_the_path_has_a_version_and_the_header_must_agree() {
    let server = Setup::conformance().start();
    let refused = |answer: &Value| {
        let error = &answer["error"];
        (error["code"].as_i64(), error["status"].as_str().map(str::to_owned), error["details"][0]["reason"].clone())
    };
    let unsupported = (Some(400), Some("FAILED_PRECONDITION".to_owned()), json!("VERSION_NOT_SUPPORTED"));
    for (header, path) in [
        (None, "/tasks/nobody"),
        (Some("0.3"), "/tasks/nobody"),
        (Some("1.0"), "/v1/tasks/nobody"),
        (Some("2.0"), "/tasks/nobody"),
        (Some("2.0"), "/v1/tasks/nobody"),
    ] {
        let headers: Vec<_> = header.map(|version| ("A2A-Version", version)).into_iter().collect();
        let (status, answer) = get(&server, path, &headers).await;
        assert_eq!((status, refused(&answer)), (400, unsupported.clone()), "{header:?} {path}: {answer}");
    }
    let (status, newer) = get(&server, "/tasks/nobody", &[NEWEST]).await;
    assert_eq!((status, refused(&newer).0, &refused(&newer).2), (404, Some(404), &json!("TASK_NOT_FOUND")), "{newer}");
    for headers in [&[][..], &[("A2A-Version", "0.3")]] {
        let (status, older) = get(&server, "/v1/tasks/nobody", headers).await;
        assert_eq!((status, &older["code"], &older["type"]), (404, &json!(-32001), &json!("TaskNotFoundError")), "{older}");
    }
}

#[tokio::test]
async fn over_grpc_the_service_has_a_version_and_the_metadata_must_agree() {
    use chancery_wire::pb::generated::{a2a_v1, lf_a2a_v1};
    let server = Setup::conformance().start();
    let channel = tonic::transport::Endpoint::from_shared(server.url().to_owned()).unwrap().connect_lazy();
    let mut newer = lf_a2a_v1::a2a_service_client::A2aServiceClient::new(channel.clone());
    let mut older = a2a_v1::a2a_service_client::A2aServiceClient::new(channel);
    for (version, newer_code, older_code) in [
        (None, Code::NotFound, Code::NotFound),
        (Some("1.0"), Code::NotFound, Code::FailedPrecondition),
        (Some("0.3"), Code::FailedPrecondition, Code::NotFound),
        (Some("7.0"), Code::FailedPrecondition, Code::FailedPrecondition),
    ] {
        let mut ask = tonic::Request::new(lf_a2a_v1::GetTaskRequest { id: "nobody".into(), ..Default::default() });
        let mut ask_older = tonic::Request::new(a2a_v1::GetTaskRequest { name: "tasks/nobody".into(), ..Default::default() });
        if let Some(version) = version {
            ask.metadata_mut().insert("a2a-version", version.parse().unwrap());
            ask_older.metadata_mut().insert("a2a-version", version.parse().unwrap());
        }
        let answers = (newer.get_task(ask).await.unwrap_err(), older.get_task(ask_older).await.unwrap_err());
        assert_eq!((answers.0.code(), answers.1.code()), (newer_code, older_code), "{version:?}");
        for refused in [answers.0, answers.1].iter().filter(|status| status.code() == Code::FailedPrecondition) {
            let reason = refused.get_error_details().error_info().map(|info| info.reason.clone());
            assert_eq!(reason.as_deref(), Some("VERSION_NOT_SUPPORTED"));
        }
    }
}
