//! S1: TLS 1.3 on both sides' certificates, and plain frames nowhere but on the loopback.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use chancery_wire::swp::Convention;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Peer, text};
use crate::operating::cli::{Ran, run};
use crate::support::certificates::{Signed, Signer};
use crate::support::server::{Home, Server, Setup};

const TLS: &str = "[tls]\ncert_file = 'node.pem'\nkey_file = 'node.key'\nclient_ca_file = 'callers.pem'\n";
const CALLERS: &str = "[callers.planner]\ncertificate = 'spiffe://acme/planner'\n[callers.guest]\ncertificate = 'spiffe://acme/guest'\nmay_call = ['echo']\n";
const AGENTS: &str = "[agents.conformance]\nrun = 'conformance'\n[agents.echo]\nrun = 'echo'\n[swp]\nlisten = '127.0.0.1:0'\n";

struct Secured {
    home: Home,
    node: Server,
    nodes: Signer,
    callers: Signer,
}

impl Secured {
    fn start(config: &str) -> Self {
        let (home, nodes, callers) = (Home::new(), Signer::new("nodes"), Signer::new("callers"));
        let own = nodes.node();
        for (name, text) in
            [("node.pem", own.certificate), ("node.key", own.key), ("callers.pem", callers.pem()), ("nodes.pem", nodes.pem())]
        {
            std::fs::write(home.path().join(name), text).expect("the home takes files");
        }
        let node = Setup::in_home(&home).args(["--memory"]).config(&format!("{config}{TLS}")).start();
        Self { home, node, nodes, callers }
    }

    /// Where it listens for SWP, as its log says.
    fn address(&self) -> String {
        let log = self.node.log();
        let url = log.split("swps://").nth(1).unwrap_or_else(|| panic!("no SWP: {log}"));
        url.chars().take_while(|character| character.is_ascii_digit() || matches!(character, '.' | ':')).collect()
    }

    async fn connect(&self, own: Option<&Signed>, older: bool) -> std::io::Result<Peer<TlsStream<TcpStream>>> {
        let line = TcpStream::connect(self.address()).await.expect("the node listens");
        self.connect_over(line, own, older).await
    }

    async fn connect_over<S>(&self, line: S, own: Option<&Signed>, older: bool) -> std::io::Result<Peer<TlsStream<S>>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.nodes.pem().as_bytes()).expect("PEM")).expect("a root");
        let versions: &[&rustls::SupportedProtocolVersion] =
            if older { &[&rustls::version::TLS12] } else { &[&rustls::version::TLS13] };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots);
        let config = match own {
            Some(own) => {
                let chain = vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).expect("PEM")];
                config
                    .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(own.key.as_bytes()).expect("PEM"))
                    .expect("an identity")
            }
            None => config.with_no_client_auth(),
        };
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, line).await.map(Peer::over)
    }

    /// What becomes of a task of whoever shows this.
    async fn outcome(&self, own: Option<&Signed>, kind: &str) -> Option<String> {
        let mut peer = self.connect(own, false).await.ok()?;
        let greeting = chancery_wire::swp::codec::a2a::SwpHandshake { agent_id: "planner".into(), capabilities: Vec::new() };
        let envelope = peer.envelope(
            chancery_wire::swp::codec::Profile::A2a,
            1,
            chancery_wire::swp::codec::a2a::A2aMessage::Handshake(greeting).to_payload(),
        );
        let frame = envelope.encode(&Default::default()).expect("fits");
        tokio::io::AsyncWriteExt::write_all(&mut peer.line, &frame).await.ok()?;
        peer.give("t", kind, "complete hello", Some(Convention::Text)).await;
        loop {
            match peer.hear().await?.payload {
                chancery_wire::swp::codec::FramePayload::A2a(chancery_wire::swp::codec::a2a::A2aMessage::Result(result)) => {
                    return Some(if result.ok { text(&result.output) } else { result.error_message });
                }
                _ => continue,
            }
        }
    }

    fn put(&self, name: &str, signed: &Signed) -> (PathBuf, PathBuf) {
        let (certificate, key) = (self.home.path().join(format!("{name}.pem")), self.home.path().join(format!("{name}.key")));
        std::fs::write(&certificate, &signed.certificate).expect("the home takes files");
        std::fs::write(&key, &signed.key).expect("the home takes files");
        (certificate, key)
    }
}

/// A line that changes one bit of what is written next, once it is told to.
struct Flipping {
    line: TcpStream,
    flips: bool,
}

impl AsyncRead for Flipping {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.line).poll_read(context, into)
    }
}

impl AsyncWrite for Flipping {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let mut bytes = bytes.to_vec();
        if let (true, Some(last)) = (self.flips, bytes.last_mut()) {
            *last ^= 1;
        }
        let written = Pin::new(&mut self.line).poll_write(context, &bytes);
        if written.is_ready() {
            self.flips = false;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.line).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.line).poll_shutdown(context)
    }
}

#[tokio::test]
async fn a_record_that_was_changed_on_its_way_closes_the_connection_and_is_logged() {
    let secured = Secured::start(&format!("{AGENTS}{CALLERS}"));
    let planner = secured.callers.caller("spiffe://acme/planner");
    let line = TcpStream::connect(secured.address()).await.expect("the node listens");
    let mut peer = secured.connect_over(Flipping { line, flips: false }, Some(&planner), false).await.expect("let in");
    peer.give("whole", "conformance", "complete hello", Some(Convention::Text)).await;
    assert!(peer.outcome().await.1.ok);
    assert!(!secured.node.log().contains("closed an SWP connection whose TLS failed"), "{}", secured.node.log());

    peer.line.get_mut().0.flips = true;
    peer.give("changed", "conformance", "complete hello", Some(Convention::Text)).await;
    assert!(peer.is_closed().await);
    let log = crate::support::patience::soon("it is logged", async || {
        let log = secured.node.log();
        log.contains("closed an SWP connection whose TLS failed").then_some(log)
    })
    .await;
    let line = log.lines().find(|line| line.contains("closed an SWP connection whose TLS failed")).expect("a line");
    for word in ["WARN", "planner", "SECURITY_POLICY", "decrypt"] {
        assert!(line.contains(word), "{word} in {line}");
    }
    assert_eq!(secured.outcome(Some(&planner), "conformance").await.as_deref(), Some("hello"), "others go on");
}

#[tokio::test]
async fn a_caller_is_whoever_its_certificate_says_and_a_greeting_says_nothing() {
    let secured = Secured::start(&format!("{AGENTS}{CALLERS}"));
    let planner = secured.callers.caller("spiffe://acme/planner");
    let guest = secured.callers.caller("spiffe://acme/guest");
    assert_eq!(secured.outcome(Some(&planner), "conformance").await.as_deref(), Some("hello"));
    // It greets as the planner, and is the guest all the same.
    let refused = secured.outcome(Some(&guest), "conformance").await.expect("a result");
    assert!(refused.starts_with("PERMISSION_DENIED: authorization denied") || refused.starts_with("TASK_NOT_FOUND"), "{refused}");
    assert_eq!(secured.outcome(Some(&guest), "echo").await.as_deref(), Some("complete hello"));
    // Nobody, somebody whom nobody knows, somebody of another authority, and somebody whose time is over.
    let stranger = secured.callers.caller("spiffe://acme/stranger");
    let forged = Signer::new("others").caller("spiffe://acme/planner");
    let former = secured.callers.former_caller("spiffe://acme/planner");
    for (who, own) in
        [("nobody", None), ("a stranger", Some(&stranger)), ("a forger", Some(&forged)), ("a former caller", Some(&former))]
    {
        assert_eq!(secured.outcome(own, "echo").await, None, "{who}");
    }
    assert!(secured.node.log().contains("SECURITY_POLICY"), "{}", secured.node.log());
    assert!(secured.connect(Some(&planner), true).await.is_err(), "TLS 1.2 is not spoken");
}

/// Task ids are each caller's own, also where two choose the same.
#[tokio::test]
async fn callers_do_not_meet_each_others_tasks_by_their_ids() {
    let secured = Secured::start(&format!("{AGENTS}{CALLERS}"));
    let planner = secured.callers.caller("spiffe://acme/planner");
    let guest = secured.callers.caller("spiffe://acme/guest");
    let mut one = secured.connect(Some(&planner), false).await.expect("let in");
    let mut other = secured.connect(Some(&guest), false).await.expect("let in");
    one.give("same", "echo", "of the planner", Some(Convention::Text)).await;
    other.give("same", "echo", "of the guest", Some(Convention::Text)).await;
    assert_eq!(text(&one.outcome().await.1.output), "of the planner");
    assert_eq!(text(&other.outcome().await.1.output), "of the guest");
}

#[test]
fn the_command_line_shows_its_certificate_and_believes_the_roots_it_is_given() {
    let secured = Secured::start(&format!("{AGENTS}{CALLERS}"));
    let (certificate, key) = secured.put("planner", &secured.callers.caller("spiffe://acme/planner"));
    let url = format!("swps://{}", secured.address());
    let send = |arguments: &[&str]| {
        let roots = secured.home.path().join("nodes.pem");
        let base = ["swp", "send", url.as_str(), "echo", "hello", "--ca-file", roots.to_str().expect("UTF-8")];
        run(&secured.home, base.iter().chain(arguments))
    };
    let ran = send(&["--client-cert", certificate.to_str().expect("UTF-8"), "--client-key", key.to_str().expect("UTF-8")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
    assert_eq!(send(&[]).code, Some(3));
}

/// What is sent lies in TLS, not in the socket, until the peer takes it: all the same it has to.
#[tokio::test]
async fn a_peer_that_takes_nothing_over_tls_is_closed() {
    let limits = "max_frames_per_window = 1000000\nidle_ms = 600000\n[limits]\nwrite_stall_ms = 500\n";
    let secured = Secured::start(&format!("{AGENTS}{limits}{CALLERS}"));
    let planner = secured.callers.caller("spiffe://acme/planner");
    let mut peer = secured.connect(Some(&planner), false).await.expect("let in");
    peer.ask_for_much().await;
    super::is_cut_off(&mut peer).await;
}

/// A node that calls another over swps:// with a certificate of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_calls_another_with_its_certificate() {
    let secured = Secured::start(&format!("{AGENTS}{CALLERS}"));
    let (certificate, key) = secured.put("planner", &secured.callers.caller("spiffe://acme/planner"));
    let front = |credentials: &str| {
        let home = Home::new();
        let roots = secured.home.path().join("nodes.pem");
        let config = format!(
            "[outbound]\nca_file = '{}'\nallow_nets = ['127.0.0.0/8']\n[agents.front]\nurl = 'swps://{}/conformance'\n{credentials}\n",
            roots.display(),
            secured.address()
        );
        Setup::in_home(&home).args(["--memory"]).config(&config).start()
    };
    let known = front(&format!("credentials = {{ cert_file = '{}', key_file = '{}' }}", certificate.display(), key.display()));
    let answer: Value = known.send("complete good morning").await;
    assert_eq!(answer["task"]["artifacts"][0]["parts"][0]["text"], "good morning", "{answer}\n{}", known.log());
    let unknown = front("");
    let refused = unknown
        .call(
            "SendMessage",
            serde_json::json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] } }),
        )
        .await;
    assert!(!refused.to_string().contains("COMPLETED"), "{refused}");
}

#[test]
fn plain_frames_are_for_the_loopback_and_tls_is_for_both_sides() {
    let home = Home::new();
    let start = |config: &str, flags: &[&str]| {
        std::fs::write(home.path().join("c.toml"), config).expect("the home takes files");
        let mut command = home.command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--memory", "--config", "c.toml"]).args(flags);
        Ran::of(&mut command)
    };
    let refused = start("[swp]\nlisten = '0.0.0.0:0'\n", &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("without [tls] SWP is not encrypted"), "{}", refused.stderr);
    let refused = start("[swp]\nlisten = '127.0.0.1:0'\n[tls]\ncert_file = 'x'\nkey_file = 'y'\n", &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("swp.listen: needs tls.client_ca_file"), "{}", refused.stderr);
    let open = Setup::in_home(&home).args(["--memory", "--insecure"]).config("[swp]\nlisten = '0.0.0.0:0'\n").start();
    assert!(open.log().contains("listening for SWP"), "{}", open.log());
}
