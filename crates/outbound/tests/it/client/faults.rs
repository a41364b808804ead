//! Agents that answer wrongly, too much, too late or not at all: each has its outcome, and nothing of us leaks out.

use std::time::Duration;

use chancery_outbound::client::{CallConditions, Transport, WasSent};
use chancery_outbound::{AgentClient, ClientError, ClientLimits, Guard, GuardConfig, Interface};
use chancery_protocol::{Binding, ErrorKind, Operation, Reply, Version};

use super::agent::{client, conditions, loopback};
use super::raw::{RawAgent, Then, http, json};
use super::samples::{Speaks, request};

const RPC: (Version, Binding) = (Version::V1_0, Binding::JsonRpc);
const REST: (Version, Binding) = (Version::V1_0, Binding::Rest);

async fn call(speaks: (Version, Binding), answer: String, then: Then, limits: ClientLimits) -> Result<Reply, ClientError> {
    call_counted(speaks, answer, then, limits, 1).await
}

async fn call_counted(
    speaks: (Version, Binding),
    answer: String,
    then: Then,
    limits: ClientLimits,
    requests: usize,
) -> Result<Reply, ClientError> {
    let agent = RawAgent::saying(answer, then).await;
    let outcome = client(&agent.url(), speaks, limits).call(&request(speaks.0, Operation::GetTask), &conditions()).await;
    assert_eq!(agent.requests(), requests, "what may have been seen is not sent again");
    outcome
}

fn not_understood(outcome: Result<Reply, ClientError>) {
    match outcome.unwrap_err() {
        fault @ ClientError::NotUnderstood(_) => {
            assert_eq!(fault.sent(), WasSent::Maybe);
            assert_eq!(fault.public().kind, ErrorKind::InvalidAgentResponse);
            let message = fault.public().message;
            assert!(message.starts_with("the agent's answer was not understood: "), "{message}");
            assert!(!message.contains("127.0.0.1") && !message.contains("secret"), "{message}");
        }
        fault => panic!("{fault:?}"),
    }
}

#[tokio::test]
async fn what_is_no_answer_is_not_understood() {
    let html = http("200 OK", "content-type: text/html\r\n", r#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
    for speaks in [RPC, REST] {
        not_understood(call(speaks, html.clone(), Then::Close, ClientLimits::default()).await);
        for body in
            ["", "{", "null", "[]", "\"secret\"", "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"resu", "\u{0}", "{\"a\":1,\"a\":1}"]
        {
            not_understood(call(speaks, json(body), Then::Close, ClientLimits::default()).await);
        }
    }
}

#[tokio::test]
async fn members_nobody_knows_are_no_fault() {
    let task = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","mood":1},"future":{"x":[]}}"#;
    call(REST, json(task), Then::Close, ClientLimits::default()).await.unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":"1","result":{task},"took":3}}"#);
    call(RPC, json(&answer), Then::Close, ClientLimits::default()).await.unwrap();
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_limit_and_not_beyond() {
    let task = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}"#;
    for (answer_bytes, fits) in [(task.len(), true), (task.len() - 1, false)] {
        let limits = ClientLimits { answer_bytes, ..ClientLimits::default() };
        let outcome = call(REST, json(task), Then::Close, limits).await;
        if fits { assert!(outcome.is_ok(), "{outcome:?}") } else { not_understood(outcome) }
    }
}

#[tokio::test]
async fn nesting_and_values_are_read_up_to_their_limits_and_not_beyond() {
    let task = |extra: &str| format!(r#"{{"id":"t","status":{{"state":"TASK_STATE_WORKING"}},"contextId":"c","x":{extra}}}"#);
    for (json_depth, fits) in [(4, true), (3, false)] {
        let limits = ClientLimits { json_depth, ..ClientLimits::default() };
        let outcome = call(REST, json(&task("[[[]]]")), Then::Close, limits).await;
        if fits { assert!(outcome.is_ok(), "{outcome:?}") } else { not_understood(outcome) }
    }
    for (json_nodes, fits) in [(8, true), (7, false)] {
        let limits = ClientLimits { json_nodes, ..ClientLimits::default() };
        let outcome = call(REST, json(&task("[1,2,3]")), Then::Close, limits).await;
        if fits { assert!(outcome.is_ok(), "{outcome:?}") } else { not_understood(outcome) }
    }
}

#[tokio::test]
async fn a_body_without_end_is_given_up_at_the_limit() {
    let limits = ClientLimits { answer_bytes: 100_000, ..ClientLimits::default() };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[".to_owned();
    not_understood(call(RPC, head.clone(), Then::Repeat(b"1,".repeat(4_096)), limits.clone()).await);
    // The same where a stream was asked for.
    let agent = RawAgent::saying(head, Then::Repeat(b"1,".repeat(4_096))).await;
    let asked = request(Version::V1_0, Operation::StreamMessage);
    let outcome = client(&agent.url(), RPC, limits).stream(&asked, &conditions()).await;
    assert!(matches!(outcome, Err(ClientError::NotUnderstood(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_redirect_is_refused_and_not_followed() {
    let elsewhere = RawAgent::saying(json("{}"), Then::Close).await;
    let location = format!("location: {}\r\n", elsewhere.url());
    // An agent that answers 307 or 308 has not executed the call: it is sent once more to the same agent, with the other slash.
    for (status, requests) in [("301 Moved", 1), ("302 Found", 1), ("307 Temporary", 2), ("308 Permanent", 2)] {
        not_understood(call_counted(RPC, http(status, &location, ""), Then::Close, ClientLimits::default(), requests).await);
        let agent = RawAgent::saying(http(status, &location, ""), Then::Close).await;
        let asked = request(Version::V1_0, Operation::StreamMessage);
        let outcome = client(&agent.url(), RPC, ClientLimits::default()).stream(&asked, &conditions()).await;
        assert!(matches!(outcome, Err(ClientError::NotUnderstood(_))), "{outcome:?}");
    }
    assert_eq!(elsewhere.requests(), 0);
}

fn out_of_time(fault: &ClientError) {
    assert!(matches!(fault, ClientError::Transport(Transport::OutOfTime { sent: WasSent::Maybe })), "{fault:?}");
    assert_eq!(fault.public().kind, ErrorKind::DeadlineExceeded);
}

#[tokio::test]
async fn an_agent_that_never_answers_is_given_up_after_the_time_for_reading_or_the_deadline() {
    let half = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    for said in ["", "HTTP/1.1 200 OK\r\n", half] {
        let limits = ClientLimits { read_ms: 300, ..ClientLimits::default() };
        out_of_time(&call(RPC, said.to_owned(), Then::Hang, limits).await.unwrap_err());

        let agent = RawAgent::saying(said, Then::Hang).await;
        let brief = CallConditions { deadline: Some(Duration::from_millis(300)), ..conditions() };
        let asked = request(Version::V1_0, Operation::GetTask);
        out_of_time(&client(&agent.url(), RPC, ClientLimits::default()).call(&asked, &brief).await.unwrap_err());
    }
    for version in [Version::V1_0, Version::V0_3] {
        // Takes the connection and says nothing at all, not even in HTTP/2.
        let agent = RawAgent::saying("", Then::Hang).await;
        let limits = ClientLimits { read_ms: 300, ..ClientLimits::default() };
        let client = client(&agent.address.to_string(), (version, Binding::Grpc), limits);
        out_of_time(&client.call(&request(version, Operation::GetTask), &conditions()).await.unwrap_err());
        out_of_time(&client.stream(&request(version, Operation::StreamMessage), &conditions()).await.unwrap_err());
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_may_have_been_asked_for() {
    for said in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", "what?\r\n\r\n"] {
        let fault = call(RPC, said.to_owned(), Then::Close, ClientLimits::default()).await.unwrap_err();
        assert!(matches!(fault, ClientError::Transport(_)), "{said:?}: {fault:?}");
        assert_eq!(fault.sent(), WasSent::Maybe, "{said:?}");
        assert_eq!(fault.public().kind, ErrorKind::Unavailable);
    }
}

#[tokio::test]
async fn an_address_that_may_not_be_called_is_refused_before_any_call() {
    let closed = Guard::new(GuardConfig::default(), &[]).unwrap();
    for (version, binding) in Speaks::ALL {
        let url = if binding == Binding::Grpc { "127.0.0.1:9" } else { "http://127.0.0.1:9/" };
        let interface = Interface { url: url.to_owned(), binding, version, tenant: None };
        let fault = AgentClient::new(&closed, interface, ClientLimits::default()).unwrap_err();
        assert_eq!(fault.sent(), WasSent::No, "{fault:?}");
        let public = fault.public();
        assert_eq!((public.kind, &*public.message), (ErrorKind::Unavailable, "the address could not be reached"));
    }
    let interface =
        Interface { url: "http://127.0.0.1:80/a".into(), binding: Binding::Rest, version: Version::Original, tenant: None };
    assert!(matches!(AgentClient::new(&loopback(), interface, ClientLimits::default()), Err(ClientError::NotAsked(_))));
}

#[tokio::test]
async fn without_tls_a_bare_grpc_address_is_called_only_where_that_is_allowed() {
    let open =
        Guard::new(GuardConfig { allow_nets: vec!["127.0.0.0/8".parse().unwrap()], ..GuardConfig::default() }, &[]).unwrap();
    let agent = RawAgent::saying("", Then::Close).await;
    let interface = Interface { url: agent.address.to_string(), binding: Binding::Grpc, version: Version::V1_0, tenant: None };
    let client = AgentClient::new(&open, interface, ClientLimits { retries: 0, ..ClientLimits::default() }).unwrap();
    let brief = CallConditions { deadline: Some(Duration::from_millis(500)), ..conditions() };
    let fault = client.call(&request(Version::V1_0, Operation::GetTask), &brief).await.unwrap_err();
    assert!(matches!(fault, ClientError::Transport(_)), "{fault:?}");
    assert_eq!(agent.requests(), 0, "no request in the clear");
}

#[tokio::test]
async fn an_answer_in_http_1_where_grpc_is_spoken_is_a_failed_connection() {
    let agent = RawAgent::saying(json("{}"), Then::Close).await;
    let client = client(&agent.address.to_string(), (Version::V1_0, Binding::Grpc), ClientLimits::default());
    let fault = client.call(&request(Version::V1_0, Operation::GetTask), &conditions()).await.unwrap_err();
    assert!(matches!(fault, ClientError::Transport(_)), "{fault:?}");
    assert_eq!(fault.public().kind, ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_failed_handshake_is_a_failed_way_and_nothing_was_sent() {
    for (version, binding) in Speaks::ALL {
        // Not a word of TLS comes back.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            use tokio::io::AsyncWriteExt as _;
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            }
        });
        let client = client(&format!("https://{address}/"), (version, binding), ClientLimits::default());
        let fault = client.call(&request(version, Operation::SendMessage), &conditions()).await.unwrap_err();
        assert!(matches!(fault, ClientError::Transport(Transport::Guard(chancery_outbound::GuardError::Tls(_)))), "{fault:?}");
        assert_eq!(fault.sent(), WasSent::No);
    }
}

#[tokio::test]
async fn a_deadline_beyond_all_time_is_no_fault() {
    let agent = RawAgent::saying(json("{}"), Then::Close).await;
    let endless = CallConditions { deadline: Some(Duration::MAX), ..conditions() };
    let client = client(&agent.url(), RPC, ClientLimits { read_ms: u64::MAX, queue_ms: u64::MAX, ..ClientLimits::default() });
    let fault = client.call(&request(Version::V1_0, Operation::GetTask), &endless).await.unwrap_err();
    assert!(matches!(fault, ClientError::NotUnderstood(_)), "{fault:?}");
}

/// A server that speaks HTTP/2 and no gRPC.
async fn pages(status: u16, body: &'static str) -> String {
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = hyper::service::service_fn(move |_| async move {
                let body = http_body_util::Full::new(bytes::Bytes::from_static(body.as_bytes()));
                ::http::Response::builder().status(status).header("content-type", "text/html").body(body)
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

#[tokio::test]
async fn pages_where_grpc_is_spoken_are_no_answers() {
    for version in [Version::V1_0, Version::V0_3] {
        let speaks = (version, Binding::Grpc);
        for operation in [Operation::GetTask, Operation::SubscribeToTask] {
            let ask = async |status, body| {
                let client = client(&pages(status, body).await, speaks, ClientLimits::default());
                match operation.streams() {
                    false => client.call(&request(version, operation), &conditions()).await.unwrap_err(),
                    true => match client.stream(&request(version, operation), &conditions()).await {
                        Ok(mut stream) => stream.next().await.unwrap_err(),
                        Err(fault) => fault,
                    },
                }
            };
            let page = ask(200, "<html>hello</html>").await;
            assert!(matches!(page, ClientError::NotUnderstood(_)), "{page:?}");
            let nothing = ask(200, "").await;
            assert!(nothing.is_cut(), "without its last word an answer is not whole: {nothing:?}");
            for (status, kind) in [(503, ErrorKind::Unavailable), (401, ErrorKind::Unauthenticated), (500, ErrorKind::Internal)] {
                let fault = ask(status, "<html>no</html>").await;
                let ClientError::Refused(error) = &fault else { panic!("{status}: {fault:?}") };
                assert_eq!(error.kind, kind, "{status}");
            }
        }
    }
}
