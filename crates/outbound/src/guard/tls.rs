//! TLS towards others: the system's roots and the operator's, verified for the name in the URL and never for the address dialled.

use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::dial::Stream;
use super::fault::OutboundFault;
use super::pinned::{CertificateRequests, PinnedCertificate};
use super::target::{GuardedTarget, TargetHost};
use super::{ConnectStage, GuardError};
use crate::terms::{ClientCertificate, ConnectionTerms, TrustedRoots as ServerTrust};

const H2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

/// Whom we believe, and what we show. A machine without any root can still call plain http where that is allowed.
#[derive(Clone, Debug)]
pub(super) enum TlsTrust {
    Roots { any: Arc<ClientConfig>, h2: Arc<ClientConfig>, verifier: Arc<dyn ServerCertVerifier>, asked: CertificateRequests },
    Nobody(String),
}

impl TlsTrust {
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, OutboundFault> {
        let extra = match ca_file {
            Some(file) => roots_in(file)?,
            None => Vec::new(),
        };
        let from_file = !extra.is_empty();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let fault = |fault: rustls::Error| OutboundFault::new("ca_file", fault.to_string());
        match Verifier::new_with_extra_roots(extra, Arc::clone(&provider)) {
            Ok(verifier) => Self::believing(Arc::new(verifier), &provider, None).map_err(fault),
            Err(error) if from_file => Err(fault(error)),
            Err(error) => Ok(Self::Nobody(error.to_string())),
        }
    }

    /// As a caller's terms say.
    pub(super) fn of(terms: &ConnectionTerms) -> Result<Self, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &terms.trust {
            ServerTrust::System => match Verifier::new(Arc::clone(&provider)) {
                Ok(verifier) => Arc::new(verifier),
                Err(fault) => return Ok(Self::Nobody(fault.to_string())),
            },
            ServerTrust::Also(roots) => Arc::new(Verifier::new_with_extra_roots(roots.iter().cloned(), Arc::clone(&provider))?),
            ServerTrust::Exactly(pinned) => Arc::new(PinnedCertificate { pinned: *pinned, provider: Arc::clone(&provider) }),
        };
        Self::believing(verifier, &provider, terms.certificate.as_ref())
    }

    fn believing(
        verifier: Arc<dyn ServerCertVerifier>,
        provider: &Arc<CryptoProvider>,
        own: Option<&ClientCertificate>,
    ) -> Result<Self, rustls::Error> {
        let asked = CertificateRequests::default();
        let config = |protocols: &[&[u8]]| {
            let config = ClientConfig::builder_with_provider(Arc::clone(provider))
                .with_safe_default_protocol_versions()?
                .dangerous()
                .with_custom_certificate_verifier(Arc::clone(&verifier));
            let mut config = match own {
                Some(own) => config.with_client_auth_cert(own.chain.clone(), own.key.clone_key())?,
                None => config.with_client_cert_resolver(Arc::new(asked.clone())),
            };
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Ok::<_, rustls::Error>(Arc::new(config))
        };
        let (any, h2) = (config(&[H2, HTTP_1_1])?, config(&[H2])?);
        Ok(Self::Roots { any, h2, verifier, asked })
    }

    /// Whether a server asked for a certificate while there was none to show.
    pub(super) fn was_asked_in_vain(&self) -> bool {
        matches!(self, Self::Roots { asked, .. } if asked.in_vain())
    }
}

fn roots_in(file: &Path) -> Result<Vec<CertificateDer<'static>>, OutboundFault> {
    let unreadable = |fault: rustls_pki_types::pem::Error| OutboundFault::new("ca_file", format!("{}: {fault}", file.display()));
    let roots = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
    match roots.is_empty() {
        true => Err(OutboundFault::new("ca_file", format!("{}: no certificate in it", file.display()))),
        false => Ok(roots),
    }
}

pub(super) async fn handshake(
    trust: &TlsTrust,
    target: &GuardedTarget,
    h2_only: bool,
    within: std::time::Duration,
    stream: Box<dyn Stream>,
) -> Result<TlsStream<Box<dyn Stream>>, GuardError> {
    let config = match trust {
        TlsTrust::Roots { h2, .. } if h2_only => h2.clone(),
        TlsTrust::Roots { any, .. } => any.clone(),
        TlsTrust::Nobody(why) => return Err(GuardError::Tls(why.clone())),
    };
    let stream = shake_hands(config, target, within, stream).await?;
    if h2_only && !spoke_h2(&stream) {
        return Err(GuardError::Tls("HTTP/2 was not agreed on".to_owned()));
    }
    Ok(stream)
}

pub(super) async fn shake_hands(
    config: Arc<ClientConfig>,
    target: &GuardedTarget,
    within: std::time::Duration,
    stream: Box<dyn Stream>,
) -> Result<TlsStream<Box<dyn Stream>>, GuardError> {
    let name = match target.host() {
        TargetHost::Name(name) => ServerName::try_from(name.clone()).map_err(|fault| GuardError::Tls(fault.to_string()))?,
        TargetHost::Address(address) => ServerName::from(*address),
    };
    match tokio::time::timeout(within, TlsConnector::from(config).connect(name, stream)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(fault)) => Err(GuardError::Tls(fault.to_string())),
        Err(_) => Err(GuardError::TimedOut(ConnectStage::Tls)),
    }
}

/// For SWP: TLS 1.3 and nothing before, with a certificate of our own if there is one.
pub(super) fn slim(trust: &TlsTrust, own: Option<&ClientCertificate>) -> Result<Arc<ClientConfig>, GuardError> {
    let verifier = match trust {
        TlsTrust::Roots { verifier, .. } => Arc::clone(verifier),
        TlsTrust::Nobody(why) => return Err(GuardError::Tls(why.clone())),
    };
    let unusable = |fault: rustls::Error| GuardError::Tls(fault.to_string());
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(Arc::new(match own {
        Some(own) => config.with_client_auth_cert(own.chain.clone(), own.key.clone_key()).map_err(unusable)?,
        None => config.with_no_client_auth(),
    }))
}

pub(super) fn spoke_h2(stream: &TlsStream<Box<dyn Stream>>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(H2)
}
