//! Certificates are for names: the address that was dialled plays no part, and nobody unknown is believed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use chancery_outbound::guard::{Fetch, GuardConfig, GuardError, Outer};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::guard::fakes::{Dialer, Names, guard};
use crate::guard::receiver::{Receiver, ok, read_head};

pub(crate) const PUBLIC: &str = "93.184.216.34";

/// An authority of our own and its certificate in a file.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) file: PathBuf,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.pem", std::process::id()));
        std::fs::write(&file, issuer.pem()).unwrap();
        Self { issuer, file }
    }

    pub(crate) fn acceptor(&self, names: &[&str], protocols: &[&str], valid_until: Option<i32>) -> TlsAcceptor {
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        if let Some(year) = valid_until {
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = rustls::ServerConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    pub(crate) fn trusted(&self) -> GuardConfig {
        GuardConfig { ca_file: Some(self.file.clone()), ..GuardConfig::default() }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Says hello over TLS and writes down which name was asked for.
async fn greeter(acceptor: TlsAcceptor) -> (Receiver, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let names = asked.clone();
    let receiver = Receiver::new(move |stream: TcpStream, _| {
        let (acceptor, names) = (acceptor.clone(), names.clone());
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            names.lock().unwrap().push(server_name(&stream));
            read_head(&mut stream).await;
            stream.write_all(ok("hello").as_bytes()).await.unwrap();
            let _ = stream.shutdown().await;
        }
    })
    .await;
    (receiver, asked)
}

fn server_name(stream: &TlsStream<TcpStream>) -> String {
    stream.get_ref().1.server_name().unwrap_or("none").to_owned()
}

async fn fetch(config: GuardConfig, to: SocketAddr, url: &str) -> Result<String, GuardError> {
    let client = guard(config, &Names::always(&[PUBLIC]), &Dialer::leading_to(to)).client();
    let fetched = client.fetch(Fetch::get(url)).await?;
    assert_eq!(fetched.peer.unwrap().ip().to_string(), PUBLIC);
    Ok(String::from_utf8(fetched.body.to_vec()).unwrap())
}

#[tokio::test]
async fn the_right_name_from_a_trusted_authority_is_believed_through_the_checked_address() {
    let authority = Authority::new("right");
    let (receiver, asked) = greeter(authority.acceptor(&["hooks.example"], &["http/1.1"], None)).await;
    assert_eq!(fetch(authority.trusted(), receiver.address, "https://hooks.example/").await.unwrap(), "hello");
    assert_eq!(fetch(authority.trusted(), receiver.address, "https://HOOKS.example./").await.unwrap(), "hello");
    assert_eq!(*asked.lock().unwrap(), ["hooks.example", "hooks.example"]);
}

#[tokio::test]
async fn a_certificate_for_the_address_only_does_not_speak_for_the_name() {
    let authority = Authority::new("address");
    let (receiver, _) = greeter(authority.acceptor(&[PUBLIC], &[], None)).await;
    let fault = fetch(authority.trusted(), receiver.address, "https://hooks.example/").await.unwrap_err();
    assert!(matches!(fault, GuardError::Tls(_)), "{fault}");
    let literal = format!("https://{PUBLIC}/");
    assert_eq!(fetch(authority.trusted(), receiver.address, &literal).await.unwrap(), "hello");
}

#[tokio::test]
async fn wrong_names_strangers_and_the_expired_are_refused_before_a_word_is_said() {
    let (authority, stranger) = (Authority::new("known"), Authority::new("stranger"));
    let cases = [
        ("wrong name", authority.acceptor(&["other.example"], &[], None)),
        ("name below", authority.acceptor(&["a.hooks.example"], &[], None)),
        ("stranger", stranger.acceptor(&["hooks.example"], &[], None)),
        ("expired", authority.acceptor(&["hooks.example"], &[], Some(2020))),
    ];
    for (case, acceptor) in cases {
        let (receiver, asked) = greeter(acceptor).await;
        let fault = fetch(authority.trusted(), receiver.address, "https://hooks.example/").await.unwrap_err();
        assert!(matches!(fault, GuardError::Tls(_)), "{case}: {fault}");
        assert_eq!(fault.outer(), Outer::Unreachable, "{case}");
        assert!(receiver.all_closed().await);
        assert!(asked.lock().unwrap().is_empty(), "{case}: the handshake ended well on the other side");
    }
    let (receiver, _) = greeter(authority.acceptor(&["hooks.example"], &[], None)).await;
    let fault = fetch(GuardConfig::default(), receiver.address, "https://hooks.example/").await.unwrap_err();
    assert!(matches!(fault, GuardError::Tls(_)), "without ca_file: {fault}");
}
