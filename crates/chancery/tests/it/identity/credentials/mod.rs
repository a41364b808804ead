//! Each kind of credential at every door: taken while it is good, and turned away in the door's own words when it is not.

mod api_keys;
mod certificates;
mod extended_card;
mod grants;
mod schemes;
mod signatures;
mod test_agent;
mod test_issuer;
mod tokens;

pub(crate) use self::test_agent::TestAgent;
pub(crate) use self::test_issuer::TestIssuer;

use std::sync::atomic::{AtomicUsize, Ordering};

use chancery_core::{Clock as _, SystemClock};
use chancery_protocol::{Binding, Message, Request, Role, SendConfiguration, SendMessage, Version};
use serde_json::Value;

use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, RawAnswer, RawCall};

const NOT_AUTHENTICATED: i64 = -32046;
const NOT_AUTHENTICATED_ORIGINAL: i64 = -32001;
const NOT_PERMITTED: i64 = -32047;

/// Seconds since 1970, and these many more.
pub(crate) fn seconds_from_now(more: i64) -> i64 {
    SystemClock.now().micros() / 1_000_000 + more
}

/// A message that makes a new task each time.
pub(crate) fn hello(combination: Combination) -> RawCall {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let send = SendMessage {
        tenant: None,
        message: Message::text(Role::User, "m", "hello").into(),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| format!("hello-{number}").into()),
        unknown: Default::default(),
    };
    RawCall::of(combination, &Request::SendMessage(send)).expect("every version can send")
}

/// The server of these callers, with its admin API.
pub(crate) fn server(home: &Home, config: &str) -> Server {
    let data = home.data();
    Setup::in_home(home).args(["--memory", "--data"]).args([data]).config(config).start()
}

/// The operator's API: the path below `/admin/v1`, and what to post there.
pub(crate) async fn operate(client: &reqwest::Client, home: &Home, server: &Server, path: &str, body: &Value) -> Value {
    let token = std::fs::read_to_string(home.data().join("admin.token")).expect("a token");
    let request = client.post(format!("{}/admin/v1/{path}", server.url())).bearer_auth(token.trim()).json(body);
    let response = request.send().await.expect("an answer");
    let status = response.status();
    let text = response.text().await.expect("text");
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).expect("JSON")
}

#[track_caller]
pub(crate) fn assert_accepted(answer: &RawAnswer, what: &str) {
    assert!(!answer.is_refusal() && answer.text().contains("hello"), "{what} should be accepted: {answer:?}");
}

/// Code, gRPC status and HTTP status of a refusal, and whether the call's id is in it.
#[track_caller]
fn assert_refused(combination: Combination, answer: &RawAnswer, (http, grpc, code): (u16, &str, i64), what: &str) {
    match combination.binding {
        Binding::Swp => panic!("it has no HTTP to be refused in"),
        Binding::JsonRpc => {
            let body = answer.json();
            let seen = (answer.status, body["error"]["code"].as_i64(), body["id"].as_str());
            assert_eq!(seen, (http, Some(code), Some("call-7")), "{what}: {answer:?}");
        }
        Binding::Rest => assert_eq!(answer.status, http, "{what}: {answer:?}"),
        Binding::Grpc => assert_eq!((answer.status, answer.header("grpc-status")), (200, Some(grpc)), "{what}: {answer:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_turned_away(combination: Combination, answer: &RawAnswer, what: &str) {
    let code = if combination.version == Version::Original { NOT_AUTHENTICATED_ORIGINAL } else { NOT_AUTHENTICATED };
    assert_refused(combination, answer, (401, "16", code), what);
    let challenges: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "www-authenticate").collect();
    assert!(challenges.iter().any(|(_, value)| value.starts_with("Bearer realm=")), "{what}: {answer:?}");
}

#[track_caller]
fn assert_not_permitted(combination: Combination, answer: &RawAnswer, what: &str) {
    assert_refused(combination, answer, (403, "7", NOT_PERMITTED), what);
    assert_eq!(answer.header("www-authenticate"), None, "other credentials would not help: {answer:?}");
}
