//! The private half of a key, for every use. Only this folder can sign with it.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use secrecy::SecretBox;
use serde::{Deserialize, Serialize};

use super::PublicKey;

/// The signature algorithm of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// ECDSA over P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
}

impl Algorithm {
    /// The name in JOSE headers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
        }
    }

    /// The algorithms a signature may name. RFC 9864 calls EdDSA over this curve `Ed25519`. Everything else
    /// is rejected: `none`, and every algorithm that takes a public key for a shared secret.
    pub fn from_jose(name: &str) -> Option<Self> {
        match name {
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyFault {
    /// The key cannot be generated.
    #[error("the system made no key")]
    NotMade,
    /// The bytes are not a supported private key.
    #[error("neither an Ed25519 nor a P-256 key in PKCS#8")]
    NotPkcs8,
    /// The PEM text has no private key.
    #[error("no PKCS#8 private key in the PEM text")]
    NotPem,
    /// The text is not a seed of 32 bytes.
    #[error("a seed is 32 bytes, in hex or base64")]
    NotASeed,
    /// The bytes are not a supported public key.
    #[error("not a public key we can use: {0}")]
    NotAPublicKey(&'static str),
    /// The key failed to sign.
    #[error("the key signed nothing")]
    NotSigned,
    /// The key has another algorithm than the one that is needed.
    #[error("the key is {found}, not {wanted}")]
    OtherAlgorithm {
        /// The algorithm that is needed.
        wanted: Algorithm,
        /// The algorithm of the key.
        found: Algorithm,
    },
}

pub(super) enum Material {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
}

impl Material {
    pub(super) fn generate(algorithm: Algorithm) -> Result<Self, KeyFault> {
        let made = match algorithm {
            Algorithm::EdDsa => Ed25519KeyPair::generate().map(Self::Ed25519),
            Algorithm::Es256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map(Self::P256),
        };
        made.map_err(|_| KeyFault::NotMade)
    }

    pub(super) fn from_pkcs8(der: &[u8]) -> Result<Self, KeyFault> {
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Ok(Self::Ed25519(pair));
        }
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).map(Self::P256).map_err(|_| KeyFault::NotPkcs8)
    }

    pub(super) fn from_pem(pem: &str) -> Result<Self, KeyFault> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| KeyFault::NotPem)?;
        Self::from_pkcs8(der.secret_pkcs8_der())
    }

    /// 32 bytes in hex, or in base64 of either alphabet.
    pub(super) fn from_seed(text: &str) -> Result<Self, KeyFault> {
        let text = text.trim();
        let seed = if text.len() == 64 {
            unhex(text)
        } else {
            [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].iter().find_map(|base64| base64.decode(text).ok())
        };
        let seed = seed.filter(|seed| seed.len() == 32).ok_or(KeyFault::NotASeed)?;
        Ed25519KeyPair::from_seed_unchecked(&seed).map(Self::Ed25519).map_err(|_| KeyFault::NotASeed)
    }

    pub(super) fn to_pkcs8(&self) -> Result<SecretBox<Vec<u8>>, KeyFault> {
        let document = match self {
            Self::Ed25519(pair) => pair.to_pkcs8v1(),
            Self::P256(pair) => pair.to_pkcs8v1(),
        };
        let document = document.map_err(|_| KeyFault::NotPkcs8)?;
        Ok(SecretBox::new(Box::new(document.as_ref().to_vec())))
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Ed25519(_) => Algorithm::EdDsa,
            Self::P256(_) => Algorithm::Es256,
        }
    }

    pub(super) fn public(&self) -> Result<PublicKey, KeyFault> {
        match self {
            Self::Ed25519(pair) => PublicKey::from_raw(Algorithm::EdDsa, pair.public_key().as_ref()),
            Self::P256(pair) => PublicKey::from_raw(Algorithm::Es256, pair.public_key().as_ref()),
        }
    }

    /// 64 bytes for either algorithm.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyFault> {
        let signature = match self {
            Self::Ed25519(pair) => pair.try_sign(message),
            Self::P256(pair) => pair.sign(&SystemRandom::new(), message),
        };
        Ok(signature.map_err(|_| KeyFault::NotSigned)?.as_ref().to_vec())
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(…)", self.algorithm())
    }
}

/// Hex of lower or upper case.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}
