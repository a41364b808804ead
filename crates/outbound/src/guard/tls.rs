//! TLS towards others: the system's roots and the operator's, verified for the name in the URL and never for the address dialled.

use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::dial::Stream;
use super::fault::ConfigFault;
use super::target::{Target, TargetHost};
use super::{GuardError, Stage};
use crate::terms::ClientCertificate;

const H2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

/// Whom we believe. A machine without any root can still call plain http where that is allowed.
#[derive(Clone, Debug)]
pub(super) enum Trust {
    Roots { any: Arc<ClientConfig>, h2: Arc<ClientConfig>, verifier: Arc<Verifier> },
    Nobody(String),
}

impl Trust {
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, ConfigFault> {
        let extra = match ca_file {
            Some(file) => roots_in(file)?,
            None => Vec::new(),
        };
        let from_file = !extra.is_empty();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = match Verifier::new_with_extra_roots(extra, provider.clone()) {
            Ok(verifier) => Arc::new(verifier),
            Err(fault) if from_file => return Err(ConfigFault::new("ca_file", fault.to_string())),
            Err(fault) => return Ok(Self::Nobody(fault.to_string())),
        };
        let config = |protocols: &[&[u8]]| {
            let mut config = ClientConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions()
                .map_err(|fault| ConfigFault::new("ca_file", fault.to_string()))?
                .dangerous()
                .with_custom_certificate_verifier(verifier.clone())
                .with_no_client_auth();
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Ok(Arc::new(config))
        };
        let (any, h2) = (config(&[H2, HTTP_1_1])?, config(&[H2])?);
        Ok(Self::Roots { any, h2, verifier })
    }
}

fn roots_in(file: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigFault> {
    let unreadable = |fault: rustls_pki_types::pem::Error| ConfigFault::new("ca_file", format!("{}: {fault}", file.display()));
    let roots = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
    match roots.is_empty() {
        true => Err(ConfigFault::new("ca_file", format!("{}: no certificate in it", file.display()))),
        false => Ok(roots),
    }
}

pub(super) async fn handshake(
    trust: &Trust,
    target: &Target,
    h2_only: bool,
    within: std::time::Duration,
    stream: Box<dyn Stream>,
) -> Result<TlsStream<Box<dyn Stream>>, GuardError> {
    let config = match trust {
        Trust::Roots { h2, .. } if h2_only => h2.clone(),
        Trust::Roots { any, .. } => any.clone(),
        Trust::Nobody(why) => return Err(GuardError::Tls(why.clone())),
    };
    let stream = shake_hands(config, target, within, stream).await?;
    if h2_only && !spoke_h2(&stream) {
        return Err(GuardError::Tls("HTTP/2 was not agreed on".to_owned()));
    }
    Ok(stream)
}

pub(super) async fn shake_hands(
    config: Arc<ClientConfig>,
    target: &Target,
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
        Err(_) => Err(GuardError::TimedOut(Stage::Tls)),
    }
}

/// For SWP: TLS 1.3 and nothing before, with a certificate of our own if there is one.
pub(super) fn slim(trust: &Trust, own: Option<&ClientCertificate>) -> Result<Arc<ClientConfig>, GuardError> {
    let verifier = match trust {
        Trust::Roots { verifier, .. } => Arc::clone(verifier),
        Trust::Nobody(why) => return Err(GuardError::Tls(why.clone())),
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
