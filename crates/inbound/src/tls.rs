//! TLS on the listener: the node's certificate, and the certificates callers may show.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs;
use rustls::server::{Acceptor, ParsedCertificate, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::handshakes::HandshakePermit;

/// Whether callers need a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientCertificates {
    /// A caller may show one; one that is shown must be good.
    #[default]
    Optional,
    /// Without one there is no connection.
    Required,
}

/// What a listener needs to speak TLS.
pub struct TlsMaterial {
    /// The node's certificate first, then those that lead to its root.
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    /// The authorities that may sign callers' certificates. Without any, the node requests no certificate.
    pub client_roots: Vec<CertificateDer<'static>>,
    pub client_certificates: ClientCertificates,
}

impl fmt::Debug for TlsMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsMaterial").field("client_certificates", &self.client_certificates).finish_non_exhaustive()
    }
}

/// Why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate and the key do not make a TLS server.
    #[error("the certificate and its key cannot be used: {0}")]
    Certificate(rustls::Error),
    /// The certificates of the authorities for clients cannot be used.
    #[error("a certificate authority for callers cannot be used: {0}")]
    Authority(String),
}

/// The TLS of one listener. What it is made of can be changed while it serves.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ArcSwap<LoadedTls>>);

#[derive(Debug)]
struct LoadedTls {
    config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
    asks_for_certificates: bool,
    speaks: Speaks,
}

/// What comes inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    Http,
    /// TLS 1.3 and nothing before, and both sides show who they are.
    Swp,
}

impl Tls {
    pub fn new(material: TlsMaterial) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(held(material, Speaks::Http)?))))
    }

    /// The same for the SWP listener, where every caller shows a certificate.
    pub fn for_swp(material: TlsMaterial) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(held(material, Speaks::Swp)?))))
    }

    /// New connections get the new certificate; open ones keep theirs.
    pub fn replace(&self, material: TlsMaterial) -> Result<(), TlsError> {
        let speaks = self.0.load().speaks;
        self.0.store(Arc::new(held(material, speaks)?));
        Ok(())
    }

    /// The node's certificate as new connections get it.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.0.load().certificate.clone()
    }

    /// Whether the node requests certificates from callers.
    pub(crate) fn asks_for_certificates(&self) -> bool {
        self.0.load().asks_for_certificates
    }

    /// Whether the node's certificate is good for a host, a DNS name or an address.
    pub fn covers(&self, host: &str) -> bool {
        let certificate = self.certificate();
        let Ok(parsed) = ParsedCertificate::try_from(&certificate) else { return false };
        ServerName::try_from(host).is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
    }

    /// Does the handshake, unless it takes too long or another one takes its place.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        handshake: &HandshakePermit,
        patience: Duration,
    ) -> io::Result<TlsStream<S>> {
        let config = Arc::clone(&self.0.load().config);
        let fault = |kind, why: &str| Err(io::Error::new(kind, why.to_owned()));
        let accepting = async {
            let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
            handshake.spoke();
            hello.into_stream(config).await
        };
        tokio::select! {
            accepted = accepting => accepted,
            () = handshake.evicted() => fault(io::ErrorKind::ConnectionAborted, "another took its place: limits.tls_handshakes"),
            () = tokio::time::sleep(patience) => fault(io::ErrorKind::TimedOut, "it took longer than limits.tls_handshake_ms"),
        }
    }
}

fn held(material: TlsMaterial, speaks: Speaks) -> Result<LoadedTls, TlsError> {
    let certificate = material.chain.first().cloned();
    let certificate = certificate.ok_or(TlsError::Certificate(rustls::Error::NoCertificatesPresented))?;
    let asks_for_certificates = !material.client_roots.is_empty();
    Ok(LoadedTls { config: Arc::new(config(material, speaks)?), certificate, asks_for_certificates, speaks })
}

fn config(material: TlsMaterial, speaks: Speaks) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = match speaks {
        Speaks::Http => builder.with_safe_default_protocol_versions(),
        Speaks::Swp => builder.with_protocol_versions(&[&rustls::version::TLS13]),
    };
    let builder = builder.map_err(TlsError::Certificate)?;
    let builder = if material.client_roots.is_empty() {
        if speaks == Speaks::Swp {
            return Err(TlsError::Authority("SWP needs one: set tls.client_ca_file".to_owned()));
        }
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        for root in material.client_roots {
            roots.add(root).map_err(|fault| TlsError::Authority(fault.to_string()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = match material.client_certificates {
            ClientCertificates::Optional if speaks == Speaks::Http => verifier.allow_unauthenticated(),
            _ => verifier,
        };
        builder.with_client_cert_verifier(verifier.build().map_err(|fault| TlsError::Authority(fault.to_string()))?)
    };
    let mut config = builder.with_single_cert(material.chain, material.key).map_err(TlsError::Certificate)?;
    if speaks == Speaks::Http {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    Ok(config)
}

/// The certificate the caller showed, if any. rustls has checked that it leads to a root and that the caller has its key.
pub(crate) fn shown<S>(stream: &TlsStream<S>) -> Option<CertificateDer<'static>> {
    stream.get_ref().1.peer_certificates()?.first().map(|certificate| certificate.clone().into_owned())
}
