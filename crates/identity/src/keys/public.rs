//! The public half of a key: who signed, and whether.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::AgentId;
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject as _;

use super::domain::OwnFormat;
use super::{Algorithm, KeyFault};
use crate::agent_id::agent_id_from_pubkey;

/// A point of P-256 without compression: `04`, x, y.
const P256_POINT: usize = 65;

/// What comes before the raw key in its SubjectPublicKeyInfo (RFC 8410, RFC 5480): nothing in it ever varies.
const ED25519_INFO: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const P256_INFO: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03,
    0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A public key for signatures.
#[derive(Clone)]
pub struct PublicKey {
    algorithm: Algorithm,
    raw: Vec<u8>,
    parsed: Arc<ParsedPublicKey>,
}

impl PublicKey {
    /// The 32 bytes of an Ed25519 key, or the 65 of an uncompressed P-256 point. A point that is not on the curve is refused.
    pub fn from_raw(algorithm: Algorithm, raw: &[u8]) -> Result<Self, KeyFault> {
        let parsed = match algorithm {
            Algorithm::EdDsa if raw.len() != 32 => return Err(KeyFault::NotAPublicKey("an Ed25519 key has 32 bytes")),
            Algorithm::EdDsa => ParsedPublicKey::new(&ED25519, raw),
            Algorithm::Es256 if raw.len() != P256_POINT || raw[0] != 4 => {
                return Err(KeyFault::NotAPublicKey("a P-256 point has 65 bytes and begins with 04"));
            }
            Algorithm::Es256 => ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, raw),
        };
        let parsed = parsed.map_err(|_| KeyFault::NotAPublicKey("not a point of its curve"))?;
        Ok(Self { algorithm, raw: raw.to_vec(), parsed: Arc::new(parsed) })
    }

    /// `BEGIN PUBLIC KEY`.
    pub fn from_pem(pem: &str) -> Result<Self, KeyFault> {
        let info = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| KeyFault::NotAPublicKey("there is no PUBLIC KEY in the PEM text"))?;
        let raw_after = |prefix: &[u8]| info.as_ref().strip_prefix(prefix);
        match (raw_after(&ED25519_INFO), raw_after(&P256_INFO)) {
            (Some(raw), _) => Self::from_raw(Algorithm::EdDsa, raw),
            (_, Some(raw)) => Self::from_raw(Algorithm::Es256, raw),
            _ => Err(KeyFault::NotAPublicKey("only Ed25519 and P-256 keys verify here")),
        }
    }

    /// Returns the algorithm of the key.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// As [`PublicKey::from_raw`] takes it.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The thumbprint of RFC 7638, so that two nodes give one key one name.
    pub fn kid(&self) -> String {
        let coordinate = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        // The members the RFC names, in its order, without spaces.
        let jwk = match self.algorithm {
            Algorithm::EdDsa => format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, coordinate(&self.raw)),
            Algorithm::Es256 => format!(
                r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#,
                coordinate(&self.raw[1..33]),
                coordinate(&self.raw[33..])
            ),
        };
        coordinate(digest::digest(&digest::SHA256, jwk.as_bytes()).as_ref())
    }

    /// Only an Ed25519 key makes an agent.
    pub fn agent_id(&self) -> Option<AgentId> {
        match self.algorithm {
            Algorithm::EdDsa => self.raw.as_slice().try_into().ok().map(agent_id_from_pubkey),
            Algorithm::Es256 => None,
        }
    }

    /// Whether this key signed the message for this use of ours.
    pub fn verify<D: OwnFormat>(&self, message: &[u8], signature: &[u8]) -> bool {
        self.verify_bytes(&[D::PREFIX, message].concat(), signature)
    }

    /// Whether this key signed this notification; see [`super::SigningKey::sign_push`].
    pub fn verify_push(&self, id: &str, seconds: i64, body: &[u8], signature: &[u8]) -> bool {
        super::signing::push_content(id, seconds, body).is_ok_and(|content| self.verify_bytes(&content, signature))
    }

    /// No domain is added: only for formats that are not ours and cannot be mistaken for another.
    pub(crate) fn verify_bytes(&self, message: &[u8], signature: &[u8]) -> bool {
        self.parsed.verify_sig(message, signature).is_ok()
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        (self.algorithm, &self.raw) == (other.algorithm, &other.raw)
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.algorithm, self.kid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8410, 10.1.
    const ED25519: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
";

    #[test]
    fn a_public_key_in_pem_is_the_key_of_its_bytes() {
        let key = PublicKey::from_pem(ED25519).unwrap();
        assert_eq!(key.algorithm(), Algorithm::EdDsa);
        assert_eq!(key.raw()[..4], [0x19, 0xbf, 0x44, 0x09]);

        let point = crate::keys::SigningKey::<crate::keys::Cards>::generate(Algorithm::Es256).unwrap().public().clone();
        let encoded = base64::engine::general_purpose::STANDARD.encode([&P256_INFO[..], point.raw()].concat());
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{encoded}\n-----END PUBLIC KEY-----\n");
        assert_eq!(PublicKey::from_pem(&pem).unwrap(), point);
        for bad in ["", "MCow", &ED25519.replace("MCowBQYDK2Vw", "MCowBQYDK2Vx"), &ED25519.replace("PUBLIC", "PRIVATE")] {
            assert!(PublicKey::from_pem(bad).is_err(), "{bad}");
        }
    }
}
