//! Hosts and origins: DNS rebinding and foreign web pages reach no agent, in any binding, and callers' own names go on working.

use chancery_identity::credentials::KeyHash;
use chancery_protocol::{Binding, Message, Request, Role, SendConfiguration, SendMessage, Version};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{JSON, NEWEST, get, tasks};
use crate::operating::cli::run;
use crate::support::patience::{BOUND, eventually};
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, RawAnswer, RawCall, RawClient};

const EVIL: &str = "evil.example";
const KEY: &str = "the-key-of-the-planner";

fn send(combination: Combination, name: &str) -> RawCall {
    let send = SendMessage {
        tenant: None,
        message: Message::text(Role::User, "m", "hello").into(),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| name.into()),
        unknown: chancery::protocol::Unknown::none(),
    };
    RawCall::of(combination, &Request::SendMessage(send)).expect("every version can send")
}

/// What a refusal looks like in each binding: statuses, codes, and words of its kind.
struct Expected {
    http: u16,
    json_rpc: i64,
    grpc: &'static str,
    reason: &'static str,
    name_0_3: &'static str,
}

const HOST: Expected =
    Expected { http: 421, json_rpc: -32048, grpc: "9", reason: "HOST_NOT_SERVED", name_0_3: "HostNotServedError" };
const ORIGIN: Expected =
    Expected { http: 403, json_rpc: -32049, grpc: "7", reason: "ORIGIN_NOT_ALLOWED", name_0_3: "OriginNotAllowedError" };

#[track_caller]
fn assert_refused(call: &RawCall, answer: &RawAnswer, expected: &Expected) {
    let combination = call.combination;
    match combination.binding {
        Binding::Grpc => {
            assert_eq!(answer.header("grpc-status"), Some(expected.grpc), "{combination:?}: {answer:?}");
            let is_named = answer.header("grpc-message").is_some_and(|message| message.starts_with(expected.name_0_3));
            assert_eq!(is_named, combination.version != Version::V1_0, "{answer:?}");
        }
        Binding::JsonRpc => {
            let (answered, asked): (Value, Value) = (answer.json(), serde_json::from_slice(&call.body).expect("JSON"));
            assert_eq!(
                (answer.status, answered["error"]["code"].as_i64()),
                (expected.http, Some(expected.json_rpc)),
                "{answer:?}"
            );
            assert_eq!(answered["id"], asked["id"], "{combination:?}: {answer:?}");
        }
        _ if combination.version == Version::V1_0 => {
            let reason = &answer.json()["error"]["details"][0]["reason"];
            assert_eq!((answer.status, reason.as_str()), (expected.http, Some(expected.reason)), "{answer:?}");
        }
        _ => {
            let name = &answer.json()["type"];
            assert_eq!((answer.status, name.as_str()), (expected.http, Some(expected.name_0_3)), "{answer:?}");
        }
    }
}

/// One exchange, byte by byte: clients would not send some of it. Status and all that came.
async fn exchange(server: &Server, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut text = String::new();
    tokio::time::timeout(BOUND, stream.read_to_string(&mut text)).await.expect("an answer in time").expect("to its end");
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no answer: {text:?}")), text)
}

fn token(server: &Server) -> String {
    let token = std::fs::read_to_string(server.home().data().join("admin.token")).expect("a token");
    format!("Bearer {}", token.trim())
}

#[tokio::test]
async fn a_name_that_dns_points_at_an_open_node_reaches_nothing_in_any_binding() {
    let server = Setup::conformance().args(["--agent", "echo"]).start();
    let rebound = RawClient::at_host(server.url(), EVIL);
    for combination in Combination::ALL {
        let call = send(combination, "rebound");
        assert_refused(&call, &rebound.ask(&call).await, &HOST);
    }
    let token = token(&server);
    for path in ["/tasks", "/agents", "/agents/echo/tasks", "/.well-known/agent-card.json", "/.well-known/jwks.json", "/nothing"]
    {
        assert_eq!(get(&server, path, &[NEWEST, ("Host", EVIL)]).await.0, 421, "{path}");
    }
    let (status, answer) = get(&server, "/admin/v1/tasks", &[("Host", EVIL), ("Authorization", &token)]).await;
    assert!(status == 421 && answer["error"]["message"].is_string(), "{answer}");
    assert_eq!(tasks(&server).await, 0);
}

#[tokio::test]
async fn an_open_node_answers_to_the_loopback_its_public_url_and_its_hosts() {
    let config = "public_url = 'http://agents.example:8080/a2a'\nhosts = ['box.internal']\n";
    let server = Setup::conformance().config(config).start();
    let mut sent = 0;
    for host in ["localhost", "dev.localhost", "agents.example", "box.internal"] {
        let client = RawClient::at_host(server.url(), host);
        for combination in Combination::ALL {
            let answer = client.ask(&send(combination, &format!("own-{sent}"))).await;
            assert!(!answer.is_refusal(), "{host} {combination:?}: {answer:?}");
            sent += 1;
        }
    }
    for host in ["127.0.0.1:1", "127.8.8.8", "[::1]:7420", "LOCALHOST.", "Agents.Example:443", "box.internal.:9"] {
        assert_eq!(get(&server, "/tasks", &[NEWEST, ("Host", host)]).await.0, 200, "{host}");
    }
    assert_eq!(tasks(&server).await, sent);
}

#[tokio::test]
async fn pages_of_other_origins_are_refused_on_every_node_with_the_best_credentials() {
    let open = Setup::conformance().start();
    let closed = format!("[agents.tester]\nrun = 'conformance'\n[callers.planner]\nkey_hash = '{}'\n", KeyHash::of(KEY));
    let home = Home::new();
    let closed = Setup::in_home(&home).config(&closed).start();
    for server in [&open, &closed] {
        let client = RawClient::new(server.url());
        for origin in ["https://evil.example", "http://evil.example:7420", "null", "http://localhost.evil.example"] {
            for combination in Combination::ALL {
                let call = send(combination, "page").with("origin", origin).with("x-api-key", KEY);
                assert_refused(&call, &client.ask(&call).await, &ORIGIN);
            }
            let token = token(server);
            for path in ["/.well-known/agent-card.json", "/agents", "/tasks", "/admin/v1/tasks", "/admin/v1/freezes", "/healthz"]
            {
                let headers = [NEWEST, ("Origin", origin), ("X-API-Key", KEY), ("Authorization", token.as_str())];
                let headers = if path.starts_with("/admin") { &headers[..] } else { &headers[..3] };
                assert_eq!(get(server, path, headers).await.0, 403, "{origin} {path}");
            }
        }
        for (number, origin) in [server.url(), "http://localhost:3000", "https://[::1]:8443"].into_iter().enumerate() {
            for combination in Combination::ALL {
                let call = send(combination, &format!("own-{number}")).with("origin", origin).with("x-api-key", KEY);
                let answer = client.ask(&call).await;
                assert!(!answer.is_refusal(), "{origin} {combination:?}: {answer:?}");
            }
        }
    }
    let closed_to_nobody = RawClient::at_host(closed.url(), EVIL);
    let answer = closed_to_nobody.ask(&send(Combination::ALL[0], "any").with("x-api-key", KEY)).await;
    assert!(!answer.is_refusal(), "credentials tell callers apart, whatever name they use: {answer:?}");
}

#[tokio::test]
async fn probes_are_answered_whatever_name_they_use() {
    let server = Setup::conformance().start();
    for path in ["/livez", "/readyz", "/healthz"] {
        for host in [EVIL, "10.0.0.9:7420", "localhost"] {
            assert_eq!(get(&server, path, &[("Host", host)]).await.0, 200, "{path} {host}");
        }
    }
}

#[tokio::test]
async fn a_request_names_exactly_one_host() {
    let server = Setup::conformance().start();
    let body = r#"{"jsonrpc":"2.0","id":"mine","method":"message/send","params":{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hello"}],"kind":"message"}}}"#;
    let (name, value) = JSON;
    let post = |hosts: &str| {
        format!("POST / HTTP/1.1\r\n{hosts}Connection: close\r\n{name}: {value}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    for hosts in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: localhost\r\nhost: evil.example\r\n",
        "Host: u@localhost\r\n",
        "Host:\r\n",
    ] {
        let (status, answer) = exchange(&server, &post(hosts)).await;
        assert!(status == 400 && answer.contains("\"mine\"") && answer.contains("Host"), "{hosts:?}: {answer}");
        let (status, answer) = exchange(&server, &format!("GET /tasks HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n")).await;
        assert_eq!(status, 400, "{hosts:?}: {answer}");
    }
    assert_eq!(tasks(&server).await, 0);
    for (request, expected) in [
        ("GET /healthz HTTP/1.0\r\n\r\n", 200),
        ("GET /agents HTTP/1.0\r\n\r\n", 200),
        ("GET http://localhost:1/agents HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 200),
        ("GET http://evil.example/agents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 421),
    ] {
        assert_eq!(exchange(&server, request).await.0, expected, "{request}");
    }
}

#[tokio::test]
async fn an_insecure_node_says_that_it_answers_to_every_host_and_hosts_end_that() {
    let home = Home::new();
    let config = home.path().join("chancery.toml");
    let server = Setup::at(&home, "0.0.0.0:0").args(["--insecure"]).config("").start();
    eventually("it says so", || server.log().contains("every Host is answered").then_some(()));
    let asked = async |host| get(&server, "/tasks", &[NEWEST, ("Host", host)]).await.0;
    assert_eq!((asked(EVIL).await, asked("192.0.2.1").await), (200, 200));
    let page = get(&server, "/tasks", &[NEWEST, ("Host", EVIL), ("Origin", "http://evil.example")]).await;
    assert_eq!(page.0, 403, "a page says where it comes from, also after DNS rebinding");

    // A file that names hosts holds from its reload on.
    std::fs::write(&config, "hosts = ['box.internal']\n").expect("the home takes files");
    let ran = run(&home, ["reload"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!((asked(EVIL).await, asked("192.0.2.1").await, asked("box.internal:1").await), (421, 200, 200));
    drop(server);

    let server = Setup::at(&home, "0.0.0.0:0").args(["--insecure", "--host", "flag.internal"]).start();
    let asked = async |host| get(&server, "/tasks", &[NEWEST, ("Host", host)]).await.0;
    assert_eq!((asked(EVIL).await, asked("flag.internal").await, asked("localhost").await), (421, 200, 200));
    assert!(!server.log().contains("every Host is answered"), "{}", server.log());
    assert_eq!(run(&home, ["tasks", "list"]).code, Some(0), "commands on this machine reach it");
}
