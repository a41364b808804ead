//! The limits on TLS handshakes: their time, their number, and whom a flood of them keeps out, which is nobody with a certificate.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use chancery_protocol::{Binding, Version};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::identity::credentials::{assert_accepted, hello};
use crate::support::certificates::Signer;
use crate::support::patience::{BOUND, eventually};
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, RawClient};

const JSON_RPC: Combination = Combination { version: Version::V1_0, binding: Binding::JsonRpc };

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.url().trim_start_matches("https://")).await.expect("a connection")
}

/// What comes until the server closes. A reset is an end too.
async fn to_the_end(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut seen = Vec::new();
    let _ = tokio::time::timeout(BOUND, stream.read_to_end(&mut seen)).await.expect("the server closes");
    seen
}

/// Hands on one byte at a time: as slow as a peer can be that is never idle.
struct Trickle(TcpStream);

impl AsyncRead for Trickle {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Trickle {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, &bytes[..bytes.len().min(1)])
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// A node that speaks TLS, with these limits and callers of its own authority.
struct SecuredNode {
    server: Server,
    nodes: Signer,
    callers: Signer,
}

impl SecuredNode {
    fn start(limits: &str) -> Self {
        let (nodes, callers, home) = (Signer::new("nodes"), Signer::new("callers"), Home::new());
        let node = nodes.node();
        let put = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("the home takes files");
        put("node.pem", &node.certificate);
        put("node.key", &node.key);
        put("callers.pem", &callers.pem());
        let tls = "[tls]\ncert_file = 'node.pem'\nkey_file = 'node.key'\nclient_ca_file = 'callers.pem'\n";
        let planner = "[callers.planner]\ncertificate = 'spiffe://acme/planner'\n";
        // Whoever is slow is not closed for that while the test runs.
        let limits = format!("[limits]\ntls_handshake_ms = 3600000\nheader_read_ms = 3600000\n{limits}\n");
        let server = Setup::in_home(&home).args(["--memory"]).config(&format!("{limits}{tls}{planner}")).start();
        Self { server, nodes, callers }
    }

    async fn connect_from(&self, host: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((host, 0).into()).expect("an address of this machine");
        let address = self.server.url().trim_start_matches("https://").parse().expect("an address");
        socket.connect(address).await.expect("a connection")
    }

    /// Finishes a handshake without a certificate.
    async fn finish<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> std::io::Result<TlsStream<S>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.nodes.pem().as_bytes()).expect("PEM")).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
        let connector = TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()));
        connector.connect(ServerName::try_from("127.0.0.1").expect("a name"), stream).await
    }

    /// A call by the planner, over a connection of its own.
    async fn call(&self) {
        let certificate = self.callers.caller("spiffe://acme/planner").both();
        let client = RawClient::over_tls(self.server.url(), &self.nodes.pem(), Some(&certificate));
        assert_accepted(&client.ask(&hello(JSON_RPC)).await, "the planner");
    }
}

#[tokio::test]
async fn handshakes_of_one_address_are_held_at_their_number_and_the_oldest_makes_room() {
    let node = SecuredNode::start("tls_handshakes_per_address = 2");
    let mut oldest = node.connect_from([127, 0, 0, 1]).await;
    let (second, third) = (node.connect_from([127, 0, 0, 1]).await, node.connect_from([127, 0, 0, 1]).await);
    assert_eq!(to_the_end(&mut oldest).await, b"", "it was closed");
    for stream in [second, third] {
        node.finish(stream).await.expect("these two may go on");
    }
}

#[tokio::test]
async fn handshakes_of_a_node_are_held_at_their_number_and_the_address_with_most_makes_room() {
    let node = SecuredNode::start("tls_handshakes = 3");
    let alone = node.connect_from([127, 0, 0, 2]).await;
    let mut oldest = node.connect_from([127, 0, 0, 1]).await;
    let (second, third) = (node.connect_from([127, 0, 0, 1]).await, node.connect_from([127, 0, 0, 1]).await);
    assert_eq!(to_the_end(&mut oldest).await, b"", "it was closed");
    for stream in [alone, second, third] {
        node.finish(stream).await.expect("these may go on");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_handshakes_keeps_out_no_caller_with_a_certificate_at_the_same_address() {
    let node = SecuredNode::start("connections_per_address = 4\ntls_handshakes_per_address = 64");
    // Strangers at the caller's address: as many as may be connected, and more that never finish.
    let mut strangers = Vec::new();
    for _ in 0..4 {
        strangers.push(node.finish(node.connect_from([127, 0, 0, 1]).await).await.expect("a handshake"));
    }
    let address = node.server.url().trim_start_matches("https://").to_owned();
    let flood = tokio::spawn(async move {
        let mut open = VecDeque::new();
        for number in 0_usize.. {
            let Ok(mut stream) = TcpStream::connect(&address).await else { continue };
            if number % 2 == 0 {
                // A record that says it is long, and its first bytes.
                let _ = stream.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]).await;
            }
            open.push_back(stream);
            if open.len() > 256 {
                open.pop_front();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    for _ in 0..20 {
        node.call().await;
    }
    flood.abort();
    // Only who proves nothing is counted by its address.
    let refused = node.finish(node.connect_from([127, 0, 0, 1]).await).await;
    match refused {
        Ok(mut stream) => assert_eq!(to_the_end(&mut stream).await, b"", "a fifth stranger is closed"),
        Err(closed) => drop(closed),
    }
}

/// Reads nothing before it may.
struct Gated {
    stream: TcpStream,
    closed: Option<tokio::sync::oneshot::Receiver<()>>,
}

impl AsyncRead for Gated {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        if let Some(closed) = &mut self.closed {
            let _ = std::task::ready!(Pin::new(closed).poll(context));
            self.closed = None;
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Gated {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A first message as a client sends it, whole.
fn first_message() -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let mut hello = Vec::new();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
    client.write_tls(&mut hello).expect("memory takes it");
    hello
}

#[tokio::test]
async fn a_flood_of_whole_first_messages_does_not_close_a_caller_that_is_further_away() {
    let node = SecuredNode::start("tls_handshakes_per_address = 8\ntls_hellos_per_address = 100");
    let (open, closed) = tokio::sync::oneshot::channel();
    let stream = Gated { stream: node.connect_from([127, 0, 0, 1]).await, closed: Some(closed) };
    let mut caller = std::pin::pin!(node.finish(stream));
    // Its first message is under way; what the node answers takes long to come.
    assert!(futures::poll!(caller.as_mut()).is_pending());
    let (hello, mut flood) = (first_message(), Vec::new());
    for _ in 0..60 {
        let mut stream = node.connect_from([127, 0, 0, 1]).await;
        stream.write_all(&hello).await.expect("it is taken");
        // The node has read all of it when it answers.
        stream.readable().await.expect("an answer");
        flood.push(stream);
    }
    node.call().await;
    open.send(()).expect("the caller waits");
    caller.await.expect("its handshake is not closed for those of others");
    // Past their number the oldest of them makes room.
    for _ in 0..60 {
        let mut stream = node.connect_from([127, 0, 0, 1]).await;
        stream.write_all(&hello).await.expect("it is taken");
        stream.readable().await.expect("an answer");
        flood.push(stream);
    }
    let mut oldest = flood.remove(0);
    to_the_end(&mut oldest).await;
    node.call().await;
}

#[tokio::test]
async fn a_handshake_that_is_not_done_in_time_ends_its_connection() {
    let (nodes, home) = (Signer::new("nodes"), Home::new());
    let node = nodes.node();
    std::fs::write(home.path().join("node.pem"), &node.certificate).expect("the home takes files");
    std::fs::write(home.path().join("node.key"), &node.key).expect("the home takes files");
    // The time to send a head is no help to who never gets that far.
    let limits = "[limits]\ntls_handshake_ms = 1500\nheader_read_ms = 3600000\n";
    let config = format!("{limits}[tls]\ncert_file = 'node.pem'\nkey_file = 'node.key'\n");
    let server = Setup::in_home(&home).args(["--memory"]).env("RUST_LOG", "debug").config(&config).start();

    let mut silent = connect(&server).await;
    let mut stuck = connect(&server).await;
    // A record that says it is long, and its first bytes.
    stuck.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]).await.expect("it is taken");

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(nodes.pem().as_bytes()).expect("PEM")).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let connector = tokio_rustls::TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()));
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let mut slow = connector.connect(name, Trickle(connect(&server).await)).await.expect("slow, but in time");

    assert_eq!(to_the_end(&mut silent).await, b"", "not even an alert: nothing was said");
    to_the_end(&mut stuck).await;
    eventually("it says by which limit", || server.log().contains("limits.tls_handshake_ms").then_some(()));

    // Past the limit by now, which was the handshake's alone.
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.expect("it is taken");
    let answer = String::from_utf8(to_the_end(&mut slow).await).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}
