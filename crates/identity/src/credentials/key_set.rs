//! The keys an issuer signs tokens with, read from a JSON Web Key Set.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::{Issuer, TokenAlgorithm};

/// Where key sets come from.
#[async_trait]
pub trait KeySets: fmt::Debug + Send + Sync {
    /// With `refresh`, a token names a key that the previous set does not hold. Any client can send such a
    /// token, so the implementation limits how often it fetches from the issuer.
    async fn key_set(&self, issuer: &Issuer, refresh: bool) -> Result<Arc<KeySet>, KeySetFault>;
}

/// For nodes without issuers.
#[derive(Debug, Default)]
pub struct NoKeySets;

#[async_trait]
impl KeySets for NoKeySets {
    async fn key_set(&self, issuer: &Issuer, _: bool) -> Result<Arc<KeySet>, KeySetFault> {
        Err(KeySetFault::Unreachable(format!("this node has no key set of {}", issuer.name)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetFault {
    #[error("not a key set: {0}")]
    Malformed(String),
    #[error("{0} keys are more than {most}", most = KeySet::MOST_KEYS)]
    TooManyKeys(usize),
    #[error("{0}")]
    Unreachable(String),
}

/// Public keys for signatures; of other kinds and for other uses none.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    keys: Vec<VerifyingKey>,
}

#[derive(Clone)]
pub(super) struct VerifyingKey {
    kid: Option<String>,
    /// What the set says the key is for; left out, everything its kind can do.
    algorithm: Option<TokenAlgorithm>,
    kind: KeyKind,
    key: DecodingKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyKind {
    Ed25519,
    P256,
    P384,
    Rsa,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(rename = "use")]
    used_for: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl KeySet {
    pub const MOST_KEYS: usize = 64;

    pub fn parse(json: &[u8]) -> Result<Self, KeySetFault> {
        Self::read(&serde_json::from_slice(json).map_err(|fault| KeySetFault::Malformed(fault.to_string()))?)
    }

    pub fn read(document: &Value) -> Result<Self, KeySetFault> {
        let Some(Value::Array(keys)) = document.get("keys") else {
            return Err(KeySetFault::Malformed("it has no list of keys".to_owned()));
        };
        if keys.len() > Self::MOST_KEYS {
            return Err(KeySetFault::TooManyKeys(keys.len()));
        }
        // RFC 7517 §5: keys that are not understood are passed over, not held against the others.
        let read = |key| Jwk::deserialize(key).ok().and_then(VerifyingKey::read);
        Ok(Self { keys: keys.iter().filter_map(read).collect() })
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys a token may be signed with: those with its `kid` and those without any, or all if it names none.
    pub(super) fn named<'a>(&'a self, kid: Option<&'a str>) -> impl Iterator<Item = &'a VerifyingKey> {
        self.keys.iter().filter(move |key| kid.is_none() || key.kid.is_none() || key.kid.as_deref() == kid)
    }
}

impl VerifyingKey {
    fn read(jwk: Jwk) -> Option<Self> {
        if jwk.used_for.is_some_and(|used_for| used_for != "sig")
            || jwk.key_ops.is_some_and(|ops| !ops.iter().any(|op| op == "verify"))
        {
            return None;
        }
        let algorithm = match jwk.alg.as_deref().map(TokenAlgorithm::named) {
            Some(None) => return None,
            named => named.flatten(),
        };
        let coordinates = |bytes| {
            let (x, y) = (jwk.x.as_deref()?, jwk.y.as_deref()?);
            [x, y].iter().all(|text| has_bytes(text, bytes)).then(|| DecodingKey::from_ec_components(x, y).ok())?
        };
        let (kind, key) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("OKP", Some("Ed25519")) => {
                let x = jwk.x.as_deref().filter(|x| has_bytes(x, 32))?;
                (KeyKind::Ed25519, DecodingKey::from_ed_components(x).ok()?)
            }
            ("EC", Some("P-256")) => (KeyKind::P256, coordinates(32)?),
            ("EC", Some("P-384")) => (KeyKind::P384, coordinates(48)?),
            // Moduli under 2048 bits are refused where a signature is checked.
            ("RSA", _) => (KeyKind::Rsa, DecodingKey::from_rsa_components(jwk.n.as_deref()?, jwk.e.as_deref()?).ok()?),
            _ => return None,
        };
        Some(Self { kid: jwk.kid, algorithm, kind, key })
    }

    /// Whether this key makes signatures of this algorithm: a key never serves an algorithm that the token alone names.
    pub(super) fn serves(&self, algorithm: TokenAlgorithm) -> bool {
        let kind = match algorithm {
            TokenAlgorithm::EdDSA => KeyKind::Ed25519,
            TokenAlgorithm::ES256 => KeyKind::P256,
            TokenAlgorithm::ES384 => KeyKind::P384,
            _ => KeyKind::Rsa,
        };
        self.kind == kind && self.algorithm.is_none_or(|own| own == algorithm)
    }

    /// `signature` in base64url, as it stands in the token.
    pub(super) fn verifies(&self, signature: &str, message: &[u8], algorithm: TokenAlgorithm) -> bool {
        let algorithm = match algorithm {
            TokenAlgorithm::EdDSA => Algorithm::EdDSA,
            TokenAlgorithm::ES256 => Algorithm::ES256,
            TokenAlgorithm::ES384 => Algorithm::ES384,
            TokenAlgorithm::RS256 => Algorithm::RS256,
            TokenAlgorithm::RS384 => Algorithm::RS384,
            TokenAlgorithm::RS512 => Algorithm::RS512,
            TokenAlgorithm::PS256 => Algorithm::PS256,
            TokenAlgorithm::PS384 => Algorithm::PS384,
            TokenAlgorithm::PS512 => Algorithm::PS512,
        };
        jsonwebtoken::crypto::verify(signature, message, &self.key, algorithm).unwrap_or(false)
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey").field("kid", &self.kid).field("kind", &self.kind).finish_non_exhaustive()
    }
}

fn has_bytes(text: &str, bytes: usize) -> bool {
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|decoded| decoded.len() == bytes)
}
