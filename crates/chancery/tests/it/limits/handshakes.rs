//! The limit on the time of a TLS handshake.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;

use crate::certificates::Signer;
use crate::patience::{BOUND, eventually};
use crate::server::{Home, Server, Setup};

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
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").await.expect("it is taken");
    let answer = String::from_utf8(to_the_end(&mut slow).await).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}
