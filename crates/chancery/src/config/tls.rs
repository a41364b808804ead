//! The `[tls]` section: the node's certificate, and whose certificates callers may show.

use std::path::{Path, PathBuf};

use chancery_inbound::{ClientCertificates, TlsMaterial};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;

use super::effect::declare_section;
use super::section::Section;

/// Files in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// The node's certificate, then those that lead to its root.
    pub cert_file: Option<PathBuf>,
    /// The private key of `cert_file`.
    pub key_file: Option<PathBuf>,
    /// The authorities that may sign callers' certificates. Without it the server requests no certificate.
    pub client_ca_file: Option<PathBuf>,
    /// Whether callers need a certificate.
    pub client_certificates: ClientCertificates,
}

declare_section!(TlsConfig { cert_file: Restart, key_file: Restart, client_ca_file: Restart, client_certificates: Restart });

/// Why a file of the `[tls]` section cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("tls.{key}: {} {fault}", file.display())]
pub struct TlsFileError {
    key: &'static str,
    file: PathBuf,
    fault: String,
}

impl TlsFileError {
    /// The key of `[tls]` that names the file.
    pub(crate) fn key(&self) -> &'static str {
        self.key
    }

    pub(crate) fn reason(&self) -> String {
        format!("{} {}", self.file.display(), self.fault)
    }
}

pub(super) fn read(tls: &mut Section<'_, '_>) -> TlsConfig {
    let config: TlsConfig = tls.fields();
    if config.cert_file.is_none() || config.key_file.is_none() {
        tls.complain("needs cert_file and key_file".to_owned());
    }
    config
}

impl TlsConfig {
    /// What the files hold; nothing, if there is no TLS to speak.
    pub(crate) fn load(&self) -> Result<Option<TlsMaterial>, TlsFileError> {
        let (Some(cert_file), Some(key_file)) = (&self.cert_file, &self.key_file) else { return Ok(None) };
        let chain = certificates("cert_file", cert_file)?;
        let key = PrivateKeyDer::from_pem_file(key_file).map_err(|fault| {
            // Never more than what kind of fault it is: the file holds a secret.
            TlsFileError { key: "key_file", file: key_file.clone(), fault: format!("holds no private key in PEM: {fault}") }
        })?;
        let client_roots =
            self.client_ca_file.as_deref().map(|file| certificates("client_ca_file", file)).transpose()?.unwrap_or_default();
        Ok(Some(TlsMaterial { chain, key, client_roots, client_certificates: self.client_certificates }))
    }
}

fn certificates(key: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let fault = |fault: String| TlsFileError { key, file: file.to_owned(), fault };
    let read = CertificateDer::pem_file_iter(file).map_err(|error| fault(format!("cannot be read: {error}")))?;
    let certificates: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| fault(format!("is no PEM: {error}")))?;
    if certificates.is_empty() { Err(fault("holds no certificate".to_owned())) } else { Ok(certificates) }
}
