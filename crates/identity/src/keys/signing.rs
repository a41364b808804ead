//! A private key that can sign for one use only.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use aws_lc_rs::{digest, hmac};
use chancery_protocol::AgentId;
use secrecy::SecretBox;

use super::domain::{Cards, Domain, HopTokens, OwnFormat, Push};
use super::material::Material;
use super::{Algorithm, KeyFault, PublicKey};

/// A private key for signatures of one use.
pub struct SigningKey<D: Domain> {
    pub(super) material: Arc<Material>,
    public: PublicKey,
    kid: Arc<str>,
    domain: PhantomData<fn() -> D>,
}

impl<D: Domain> SigningKey<D> {
    /// Generates a key.
    pub fn generate(algorithm: Algorithm) -> Result<Self, KeyFault> {
        Self::of(Arc::new(Material::generate(algorithm)?))
    }

    /// PKCS#8 in DER; the algorithm is what the key says.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyFault> {
        Self::of(Arc::new(Material::from_pkcs8(der)?))
    }

    /// PKCS#8 in PEM (`BEGIN PRIVATE KEY`).
    pub fn from_pem(pem: &str) -> Result<Self, KeyFault> {
        Self::of(Arc::new(Material::from_pem(pem)?))
    }

    /// The 32 secret bytes of an Ed25519 key, in hex or base64.
    pub fn from_seed(text: &str) -> Result<Self, KeyFault> {
        Self::of(Arc::new(Material::from_seed(text)?))
    }

    pub(super) fn of(material: Arc<Material>) -> Result<Self, KeyFault> {
        let public = material.public()?;
        let kid = public.kid().into();
        Ok(Self { material, public, kid, domain: PhantomData })
    }

    /// Returns the private key in PKCS#8.
    pub fn to_pkcs8(&self) -> Result<SecretBox<Vec<u8>>, KeyFault> {
        self.material.to_pkcs8()
    }

    /// Returns the algorithm of the key.
    pub fn algorithm(&self) -> Algorithm {
        self.public.algorithm()
    }

    /// The thumbprint of the public half.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns the public key.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// No domain is added: only for formats that are not ours and cannot be mistaken for another.
    pub(crate) fn sign_bytes(&self, message: &[u8]) -> Result<Vec<u8>, KeyFault> {
        self.material.sign(message)
    }
}

impl<D: OwnFormat> SigningKey<D> {
    /// Signs the message with its domain before it.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyFault> {
        self.sign_bytes(&[D::PREFIX, message].concat())
    }
}

impl SigningKey<HopTokens> {
    /// The secret that marks hop tokens, known only to holders of the key. Ed25519 is deterministic (RFC
    /// 8032), so all holders derive the same secret. The signed text has a space, which no token has.
    pub fn marking(&self) -> Result<hmac::Key, KeyFault> {
        let signed = self.sign(b"the secret that marks hop tokens")?;
        Ok(hmac::Key::new(hmac::HMAC_SHA256, digest::digest(&digest::SHA256, &signed).as_ref()))
    }
}

impl SigningKey<Cards> {
    /// The agent that signs with this key, if it is an Ed25519 key.
    pub fn agent_id(&self) -> Option<AgentId> {
        self.public.agent_id()
    }
}

/// Why a notification cannot be signed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PushFault {
    /// The id of the notification has other characters than letters, digits, `_` and `-`.
    #[error("the id of a notification has only letters, digits, '_' and '-'")]
    Id,
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFault),
}

impl SigningKey<Push> {
    /// Signs `ID.SECONDS.BODY`, the way webhook receivers expect it.
    pub fn sign_push(&self, id: &str, seconds: i64, body: &[u8]) -> Result<Vec<u8>, PushFault> {
        Ok(self.sign_bytes(&push_content(id, seconds, body)?)?)
    }
}

pub(super) fn push_content(id: &str, seconds: i64, body: &[u8]) -> Result<Vec<u8>, PushFault> {
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
        return Err(PushFault::Id);
    }
    let mut content = format!("{id}.{seconds}.").into_bytes();
    content.extend_from_slice(body);
    Ok(content)
}

impl<D: Domain> Clone for SigningKey<D> {
    fn clone(&self) -> Self {
        Self { material: self.material.clone(), public: self.public.clone(), kid: self.kid.clone(), domain: PhantomData }
    }
}

impl<D: Domain> fmt::Debug for SigningKey<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key {} for {}", self.algorithm(), self.kid, D::USE)
    }
}
