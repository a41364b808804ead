//! What registrations keep secret, and who may judge where they point.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::registration::{PushEvents, PushProfile};

/// Opens and closes secrets at rest.
pub trait Vault: Send + Sync + fmt::Debug {
    /// The name of the key that seals now.
    fn current(&self) -> Arc<str>;

    /// `bound` is not kept, but must be the same to open what was sealed.
    fn seal(&self, bound: &[u8], plain: &[u8]) -> SealedSecret;

    /// Opens what was sealed for `bound`, if its key is known.
    fn open(&self, bound: &[u8], sealed: &SealedSecret) -> Option<SecretBytes>;
}

/// Bytes that say nothing without the key of that name.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// The name of the key.
    pub kek_id: Arc<str>,
    /// The sealed bytes.
    pub bytes: Arc<[u8]>,
}

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes by {})", self.bytes.len(), self.kek_id)
    }
}

/// Bytes that are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBytes(Arc<[u8]>);

impl SecretBytes {
    /// Makes a secret of bytes.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// As text; secrets that callers register are.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What a registration had sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSecrets {
    /// The token of the registration.
    pub token: Option<SecretBytes>,
    /// The credentials of the registration.
    pub credentials: Option<SecretBytes>,
}

#[derive(Serialize, Deserialize)]
struct SecretFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<std::borrow::Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<std::borrow::Cow<'a, str>>,
}

impl OpenSecrets {
    /// Nothing where there is nothing to keep.
    pub fn seal(vault: &dyn Vault, bound: &[u8], token: Option<&str>, credentials: Option<&str>) -> Option<SealedSecret> {
        if token.is_none() && credentials.is_none() {
            return None;
        }
        let plain = serde_json::to_vec(&SecretFields { token: token.map(Into::into), credentials: credentials.map(Into::into) });
        plain.ok().map(|plain| vault.seal(bound, &plain))
    }

    /// `None` when what was sealed cannot be read: by another key, or for another registration.
    pub fn open(vault: &dyn Vault, bound: &[u8], sealed: Option<&SealedSecret>) -> Option<Self> {
        let Some(sealed) = sealed else { return Some(Self::default()) };
        let plain = vault.open(bound, sealed)?;
        let written: SecretFields<'_> = serde_json::from_slice(plain.expose()).ok()?;
        let secret = |text: Option<std::borrow::Cow<'_, str>>| text.map(|text| SecretBytes::new(text.as_bytes()));
        Some(Self { token: secret(written.token), credentials: secret(written.credentials) })
    }
}

/// Judges a URL by its text, without asking the network: its addresses are judged when it is dialled.
#[async_trait]
pub trait PushTargets: Send + Sync + fmt::Debug {
    /// Returns the destination of a URL, or why it is rejected.
    fn judge(&self, url: &str) -> Result<PushTarget, String>;

    /// Whether such credentials can be used. An unknown scheme is sent unchanged.
    fn judge_scheme(&self, scheme: &str, credentials: Option<&str>) -> Result<(), String>;

    /// Sends the challenge to the webhook, if the operator enables it.
    async fn challenge(&self, url: &str) -> Result<(), String> {
        let _ = url;
        Ok(())
    }
}

/// Where deliveries go, and what the operator wants for that place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushTarget {
    /// `scheme://host:port`, the port always there.
    pub origin: Arc<str>,
    /// Another form than the caller's version has.
    pub profile: Option<PushProfile>,
    /// Other events than the form has by default.
    pub events: Option<PushEvents>,
}
