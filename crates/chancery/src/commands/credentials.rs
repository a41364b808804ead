//! The credentials and trusted certificates of the command line. Secrets come from files and the environment,
//! because every user of the machine can list the arguments of processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chancery_core::{Clock as _, SystemClock};
use chancery_identity::SigningKey;
use chancery_outbound::{ClientCertificate, ConnectionTerms, RequestSigner, TrustedRoots, TypedUrl};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::{ExposeSecret as _, SecretString};

use super::{Failure, complain};

/// Where a caller's key is if nothing else is said.
const KEY_VARIABLE: &str = "CHANCERY_KEY";

#[derive(clap::Args)]
#[command(next_help_heading = "Credentials")]
pub(super) struct CredentialArgs {
    /// The environment variable with the caller's key or token [default: CHANCERY_KEY, if it is set]
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_file")]
    key_env: Option<String>,
    /// The file with the caller's key or token
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Sign the call with the agent's own Ed25519 key in this file: PEM, or a seed of 32 bytes in hex or base64
    #[arg(long, value_name = "FILE")]
    sign_with: Option<PathBuf>,
    /// Trust certificates of these roots (PEM) too
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    #[command(flatten)]
    own: OwnCertificate,
}

/// For servers that ask callers for a certificate.
#[derive(clap::Args)]
#[command(next_help_heading = "Credentials")]
pub(super) struct OwnCertificate {
    /// The client certificate (PEM)
    #[arg(long, value_name = "FILE", global = true, requires = "client_key", env = "CHANCERY_CLIENT_CERT")]
    client_cert: Option<PathBuf>,
    /// The key (PEM) of the client certificate
    #[arg(long, value_name = "FILE", global = true, requires = "client_cert", env = "CHANCERY_CLIENT_KEY")]
    client_key: Option<PathBuf>,
}

impl CredentialArgs {
    /// `trust` is what is known of the server already.
    pub(super) fn terms(&self, trust: Option<TrustedRoots>) -> Result<ConnectionTerms, Failure> {
        let signer = self.sign_with.as_deref().map(signer).transpose()?;
        let trust = match (trust, &self.ca_file) {
            (_, Some(file)) => TrustedRoots::Also(certificates(file)?),
            (known, None) => known.unwrap_or_default(),
        };
        Ok(ConnectionTerms { secret: self.secret(signer.is_some())?, signer, certificate: self.own.load()?, trust })
    }

    /// The default variable is ignored where another credential is given.
    fn secret(&self, is_signed: bool) -> Result<Option<SecretString>, Failure> {
        let text: SecretString = match (&self.key_file, &self.key_env) {
            (Some(file), _) => read_secret(file, "the key")?,
            (None, Some(name)) => {
                let value = std::env::var(name);
                value
                    .map_err(|_| Failure::Usage(format!("the environment variable {name} is not set; it must contain the key")))?
                    .into()
            }
            (None, None) if is_signed => return Ok(None),
            (None, None) => match std::env::var(KEY_VARIABLE) {
                Ok(value) if !value.trim().is_empty() => value.into(),
                _ => return Ok(None),
            },
        };
        let key = text.expose_secret().trim();
        if key.is_empty() {
            return Err(Failure::Usage("the key is empty".to_owned()));
        }
        Ok(Some(key.into()))
    }
}

impl OwnCertificate {
    pub(super) fn load(&self) -> Result<Option<ClientCertificate>, Failure> {
        let (Some(cert), Some(key)) = (&self.client_cert, &self.client_key) else { return Ok(None) };
        let chain = certificates(cert)?;
        let bad = |fault| Failure::Usage(format!("{} holds no private key in PEM: {fault}", key.display()));
        let key = Arc::new(PrivateKeyDer::from_pem_file(key).map_err(bad)?);
        Ok(Some(ClientCertificate { chain, key }))
    }
}

/// Warns of a secret that would be sent unencrypted.
pub(super) fn warn_of_plain(typed: &TypedUrl) {
    if typed.terms().secret.is_some() && typed.is_plain() && !typed.is_loopback() {
        complain("the key is sent over unencrypted http; use https");
    }
}

fn signer(file: &Path) -> Result<RequestSigner, Failure> {
    let text = read_secret(file, "the key to sign with")?;
    let text = text.expose_secret().trim();
    let key = if text.starts_with("-----BEGIN") { SigningKey::from_pem(text) } else { SigningKey::from_seed(text) };
    let bad = |fault| Failure::Usage(format!("the key in {} cannot be used: {fault}", file.display()));
    Ok(RequestSigner::new(key.map_err(bad)?, || SystemClock.now()))
}

pub(super) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|fault| Failure::Usage(format!("{} holds no certificate in PEM: {fault}", file.display())))?;
    if found.is_empty() { Err(Failure::Usage(format!("{} holds no certificate", file.display()))) } else { Ok(found) }
}

pub(super) fn read_secret(file: &Path, what: &str) -> Result<SecretString, Failure> {
    let text = std::fs::read_to_string(file);
    text.map(Into::into).map_err(|fault| Failure::Usage(format!("cannot read {what} in {}: {fault}", file.display())))
}
