//! TLS towards servers: whom to believe, and which certificate to show.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chancery_identity::SealKey;
use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::Verifier;

use crate::terms::{Terms, Trust};

/// Whether a server asked for a certificate while there was none to show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(Arc<AtomicBool>);

impl Asked {
    pub(crate) fn in_vain(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Nobody's certificate. A server that insists on one may close the connection without a word, so it is remembered that
/// it asked.
impl ResolvesClientCert for Asked {
    fn resolve(&self, _roots: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.store(true, Ordering::Relaxed);
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// What to speak TLS with.
pub(crate) fn client_config(terms: &Terms, asked: &Asked) -> Result<ClientConfig, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match &terms.trust {
        Trust::System => Arc::new(Verifier::new(Arc::clone(&provider))?),
        Trust::Also(roots) => Arc::new(Verifier::new_with_extra_roots(roots.iter().cloned(), Arc::clone(&provider))?),
        Trust::Exactly(pinned) => Arc::new(Pinned { pinned: *pinned, provider: Arc::clone(&provider) }),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &terms.certificate {
        Some(own) => config.with_client_auth_cert(own.chain.clone(), own.key.clone_key())?,
        None => config.with_client_cert_resolver(Arc::new(asked.clone())),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Believes one certificate. That the server has its key is checked as always.
#[derive(Debug)]
struct Pinned {
    pinned: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match SealKey::digest(end_entity) == self.pinned {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
