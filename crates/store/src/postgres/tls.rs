//! TLS to the database, by `sslmode`.

use std::path::Path;
use std::sync::Arc;

use chancery_core::StoreError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::options::SslMode;

/// What a certificate has to show beside the signature of the handshake.
#[derive(Debug)]
enum CertificateRule {
    /// Nothing: the connection is only encrypted.
    Any,
    /// A trusted authority signed it. Its names do not count.
    Signed(Arc<WebPkiServerVerifier>),
}

/// Checks that a server has the key of its certificate, and the certificate by a rule.
#[derive(Debug)]
struct LenientVerifier {
    rule: CertificateRule,
    provider: Arc<CryptoProvider>,
}

/// The TLS connector of a mode, or `None` for a mode without TLS.
pub(super) fn connector(mode: SslMode, ca_file: Option<&Path>) -> Result<Option<MakeRustlsConnect>, StoreError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let lenient = |rule| -> Arc<dyn ServerCertVerifier> { Arc::new(LenientVerifier { rule, provider: Arc::clone(&provider) }) };
    let verifier: Arc<dyn ServerCertVerifier> = match (mode, ca_file) {
        (SslMode::Disable, _) => return Ok(None),
        (SslMode::Prefer | SslMode::Require, _) => lenient(CertificateRule::Any),
        (SslMode::VerifyCa, Some(file)) => lenient(CertificateRule::Signed(signed_by(file, &provider)?)),
        (SslMode::VerifyFull, Some(file)) => signed_by(file, &provider)?,
        (SslMode::VerifyCa | SslMode::VerifyFull, None) => {
            let system = Verifier::new(Arc::clone(&provider));
            Arc::new(system.map_err(|error| StoreError::caused_by("the system's certificate authorities cannot be read", error))?)
        }
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| StoreError::caused_by("TLS to the database cannot be set up", error))?;
    let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn signed_by(file: &Path, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, StoreError> {
    let unusable =
        |error: &dyn std::fmt::Display| StoreError::new(format!("the CA file {} cannot be used: {error}", file.display()));
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))? {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        authorities.add(certificate).map_err(|error| unusable(&error))?;
    }
    if authorities.is_empty() {
        return Err(unusable(&"it has no certificate"));
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(provider))
        .build()
        .map_err(|error| unusable(&error))
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let CertificateRule::Signed(verifier) = &self.rule else { return Ok(ServerCertVerified::assertion()) };
        match verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // Names are compared last: all else about the certificate is in order.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
