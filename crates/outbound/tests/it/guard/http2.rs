//! HTTP/2 over the connector, as hyper-util and tonic use it.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use chancery_outbound::guard::{ConnectStage, Fetch, Guard, GuardConfig, GuardError};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::guard::fakes::{Dialer, Names, guard};
use crate::guard::receiver::Receiver;
use crate::guard::tls::{Authority, PUBLIC};

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let version = format!("{:?}", request.version());
    let mut response = Response::builder();
    if let Some(size) = request.uri().path().strip_prefix("/headers/") {
        response = response.header("x-big", "h".repeat(size.parse().unwrap()));
    }
    if request.uri().path() == "/never" {
        std::future::pending::<()>().await;
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    Ok(response.body(Full::new([version.as_bytes(), b" ", &body].concat().into())).unwrap())
}

async fn server(authority: &Authority, protocols: &[&str]) -> Receiver {
    let acceptor = authority.acceptor(&["hooks.example"], protocols, None);
    Receiver::new(move |stream: TcpStream, _| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        }
    })
    .await
}

fn guarded(config: GuardConfig, receiver: &Receiver) -> Guard {
    guard(config, &Names::always(&[PUBLIC]), &Dialer::leading_to(receiver.address))
}

#[tokio::test]
async fn the_other_side_picks_and_one_http2_connection_carries_many_calls() {
    let authority = Authority::new("h2");
    let both = server(&authority, &["h2", "http/1.1"]).await;
    let client = guarded(authority.trusted(), &both).client();
    for turn in 0..20 {
        let fetched = client.fetch(Fetch::post("https://hooks.example/", format!("call {turn}"))).await.unwrap();
        assert_eq!(fetched.body, format!("HTTP/2.0 call {turn}"));
        assert_eq!(fetched.peer.unwrap().ip().to_string(), PUBLIC);
    }
    assert_eq!(both.accepted(), 1);
    let old = server(&authority, &["http/1.1"]).await;
    let fetched = guarded(authority.trusted(), &old).client().fetch(Fetch::get("https://hooks.example/")).await.unwrap();
    assert_eq!(fetched.body, "HTTP/1.1 ");
}

#[tokio::test]
async fn another_guard_does_not_inherit_a_connection() {
    let authority = Authority::new("pool");
    let receiver = server(&authority, &["h2"]).await;
    let first = guarded(authority.trusted(), &receiver).client();
    first.fetch(Fetch::get("https://hooks.example/")).await.unwrap();
    first.clone().fetch(Fetch::get("https://hooks.example/")).await.unwrap();
    assert_eq!(receiver.accepted(), 1);
    let denying = GuardConfig { deny_hosts: vec!["hooks.example".into()], ..authority.trusted() };
    let fault = guarded(denying, &receiver).client().fetch(Fetch::get("https://hooks.example/")).await.unwrap_err();
    assert!(matches!(fault, GuardError::Blocked(_)), "{fault}");
    guarded(authority.trusted(), &receiver).client().fetch(Fetch::get("https://hooks.example/")).await.unwrap();
    assert_eq!(receiver.accepted(), 2);
}

#[tokio::test]
async fn a_connection_that_failed_once_is_not_used_again() {
    let authority = Authority::new("poison");
    let receiver = server(&authority, &["h2"]).await;
    let client = guarded(authority.trusted(), &receiver).client();
    client.fetch(Fetch::get("https://hooks.example/")).await.unwrap();
    let never = Fetch { within: Some(Duration::from_millis(300)), ..Fetch::get("https://hooks.example/never") };
    let fault = client.fetch(never).await.unwrap_err();
    assert_eq!((fault, receiver.accepted()), (GuardError::TimedOut(ConnectStage::Exchange), 1));
    client.fetch(Fetch::get("https://hooks.example/")).await.unwrap();
    assert_eq!(receiver.accepted(), 2);
    let small = Fetch { most_bytes: Some(3), ..Fetch::get("https://hooks.example/") };
    client.fetch(small).await.unwrap_err();
    client.fetch(Fetch::get("https://hooks.example/")).await.unwrap();
    assert_eq!(receiver.accepted(), 3);
}

/// What tonic's `connect_with_connector` asks of a connector, spelled out.
fn fits_tonic<C>(_: &C)
where
    C: Service<http::Uri> + Send + 'static,
    C::Response: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    Box<dyn std::error::Error + Send + Sync>: From<C::Error>,
{
}

#[tokio::test]
async fn the_connector_for_grpc_takes_http2_or_nothing() {
    let authority = Authority::new("grpc");
    let (new, old) = (server(&authority, &["h2", "http/1.1"]).await, server(&authority, &["http/1.1"]).await);
    let place: http::Uri = "https://hooks.example".parse().unwrap();
    fits_tonic(&guarded(authority.trusted(), &new).h2_connector());
    let connection = guarded(authority.trusted(), &new).h2_connector().call(place.clone()).await.unwrap();
    assert!(connection.is_h2());
    let (mut sender, driver) = hyper::client::conn::http2::handshake(TokioExecutor::new(), connection).await.unwrap();
    tokio::spawn(driver);
    let request = Request::post("https://hooks.example/pkg.Service/Call").body(Full::new(Bytes::from("ping"))).unwrap();
    let body = sender.send_request(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "HTTP/2.0 ping");
    let silent = server(&authority, &[]).await;
    for receiver in [&old, &silent] {
        let fault = guarded(authority.trusted(), receiver).h2_connector().call(place.clone()).await.unwrap_err();
        assert!(matches!(fault, GuardError::Tls(_)), "{fault}");
    }
}

#[tokio::test]
async fn the_connector_checks_the_uri_itself() {
    let dialer = Dialer::closed();
    let guard = guard(GuardConfig::default(), &Names::always(&["10.0.0.1"]), &dialer);
    for place in ["https://127.0.0.1", "https://inside.example", "http://a.example", "https://a.example:22", "127.0.0.1:443", "/"]
    {
        let fault = guard.connector().call(place.parse().unwrap()).await.unwrap_err();
        assert!(matches!(fault, GuardError::Blocked(_)), "{place}: {fault}");
    }
    assert_eq!(dialer.dialled(), []);
}

#[tokio::test]
async fn headers_are_capped_over_http2_too() {
    let authority = Authority::new("h2-headers");
    let receiver = server(&authority, &["h2"]).await;
    let client = guarded(authority.trusted(), &receiver).client();
    assert!(client.fetch(Fetch::get("https://hooks.example/headers/16000")).await.is_ok());
    let fault = client.fetch(Fetch::get("https://hooks.example/headers/17000")).await.unwrap_err();
    assert!(matches!(fault, GuardError::Protocol(_)), "{fault}");
}

/// Frames written by hand: an empty SETTINGS, then interim answers on stream 1 without an end.
#[tokio::test]
async fn a_flood_of_interim_answers_over_http2_ends_with_the_deadline() {
    let authority = Authority::new("h2-flood");
    let acceptor = authority.acceptor(&["hooks.example"], &["h2"], None);
    let flood = Receiver::new(move |stream: TcpStream, _| {
        let acceptor = acceptor.clone();
        async move {
            let (mut from, mut to) = tokio::io::split(acceptor.accept(stream).await.unwrap());
            let drain = tokio::spawn(async move { while from.read_u8().await.is_ok() {} });
            to.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
            // HEADERS with END_HEADERS; `:status: 103` as a literal with the static table's name 8.
            let interim = [0, 0, 5, 1, 4, 0, 0, 0, 1, 0x08, 3, b'1', b'0', b'3'];
            while to.write_all(&interim.repeat(64)).await.is_ok() {}
            drain.abort();
        }
    })
    .await;
    let client = guarded(GuardConfig { exchange_ms: 500, ..authority.trusted() }, &flood).client();
    let fault = client.fetch(Fetch::get("https://hooks.example/")).await.unwrap_err();
    assert!(matches!(fault, GuardError::TimedOut(ConnectStage::Exchange)), "{fault}");
    drop(client);
    assert!(flood.all_closed().await, "the connection was not given up: {fault}");
}
