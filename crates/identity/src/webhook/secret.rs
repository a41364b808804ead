//! Keys the way webhook senders and receivers write them: `whsec_`, `whsk_`, `whpk_`.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretBox, SecretString};

use crate::keys::{Algorithm, KeyFault, PublicKey, Push, SigningKey};

const SYMMETRIC: &str = "whsec_";
const PRIVATE: &str = "whsk_";
const PUBLIC: &str = "whpk_";
/// What we make ourselves.
const NEW_BYTES: usize = 32;

/// Why a webhook secret cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    /// The text does not begin with the prefix of a secret.
    #[error("a webhook secret begins with {0}")]
    Prefix(&'static str),
    /// The text behind the prefix is not base64.
    #[error("what comes after {0} is not base64")]
    Base64(&'static str),
    /// The secret does not have 24 to 64 bytes.
    #[error("a webhook secret has 24 to 64 bytes, this one has {0}")]
    Length(usize),
    /// The bytes are not an Ed25519 key.
    #[error("not an Ed25519 key of 32 bytes, or of 64 with its public half behind it")]
    NotAKey,
    /// The system gave no random bytes.
    #[error("the system gave no random bytes")]
    NoRandomness,
}

/// A secret that sender and receiver share.
pub struct HmacSecret {
    bytes: SecretBox<Vec<u8>>,
    key: hmac::Key,
}

impl HmacSecret {
    /// Generates a secret.
    pub fn generate() -> Result<Self, SecretFault> {
        let mut bytes = vec![0; NEW_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| SecretFault::NoRandomness)?;
        Self::from_bytes(bytes)
    }

    /// `whsec_` and 24 to 64 bytes in base64.
    pub fn parse(text: &str) -> Result<Self, SecretFault> {
        Self::from_bytes(decode(text, SYMMETRIC)?)
    }

    /// Whether [`HmacSecret::parse`] takes it, without making a key of it.
    pub fn check(text: &str) -> Result<(), SecretFault> {
        let bytes = SecretBox::new(Box::new(decode(text, SYMMETRIC)?));
        check_length(bytes.expose_secret())
    }

    /// Makes a secret of some bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, SecretFault> {
        check_length(&bytes)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        Ok(Self { bytes: SecretBox::new(Box::new(bytes)), key })
    }

    /// As [`HmacSecret::parse`] takes it.
    pub fn to_text(&self) -> SecretString {
        format!("{SYMMETRIC}{}", STANDARD.encode(self.bytes.expose_secret())).into()
    }

    pub(super) fn tag(&self, id: &str, seconds: i64, body: &[u8]) -> hmac::Tag {
        let mut mac = hmac::Context::with_key(&self.key);
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        mac.sign()
    }
}

fn check_length(bytes: &[u8]) -> Result<(), SecretFault> {
    if (24..=64).contains(&bytes.len()) { Ok(()) } else { Err(SecretFault::Length(bytes.len())) }
}

impl Clone for HmacSecret {
    fn clone(&self) -> Self {
        Self { bytes: SecretBox::new(Box::new(self.bytes.expose_secret().clone())), key: self.key.clone() }
    }
}

impl PartialEq for HmacSecret {
    fn eq(&self, other: &Self) -> bool {
        verify_slices_are_equal(self.bytes.expose_secret(), other.bytes.expose_secret()).is_ok()
    }
}

impl Eq for HmacSecret {}

impl fmt::Debug for HmacSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whsec_…")
    }
}

/// `whsk_` and the 32 secret bytes, alone or with the 32 public ones behind them.
pub fn signing_key_from_whsk(text: &str) -> Result<SigningKey<Push>, SecretFault> {
    let bytes = decode(text, PRIVATE)?;
    let (seed, public) = match bytes.len() {
        32 => (&bytes[..], None),
        64 => (&bytes[..32], Some(&bytes[32..])),
        _ => return Err(SecretFault::NotAKey),
    };
    let key = SigningKey::from_seed(&STANDARD.encode(seed)).map_err(|_| SecretFault::NotAKey)?;
    if public.is_some_and(|public| public != key.public().raw()) {
        return Err(SecretFault::NotAKey);
    }
    Ok(key)
}

/// `whpk_` and the 32 bytes of an Ed25519 key.
pub fn public_key_from_whpk(text: &str) -> Result<PublicKey, SecretFault> {
    PublicKey::from_raw(Algorithm::EdDsa, &decode(text, PUBLIC)?).map_err(|_: KeyFault| SecretFault::NotAKey)
}

/// None for a key that is not Ed25519.
pub fn public_key_to_whpk(key: &PublicKey) -> Option<String> {
    (key.algorithm() == Algorithm::EdDsa).then(|| format!("{PUBLIC}{}", STANDARD.encode(key.raw())))
}

fn decode(text: &str, prefix: &'static str) -> Result<Vec<u8>, SecretFault> {
    let encoded = text.strip_prefix(prefix).ok_or(SecretFault::Prefix(prefix))?;
    STANDARD.decode(encoded).map_err(|_| SecretFault::Base64(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_24_to_64_bytes_and_is_never_printed() {
        let of = |length: usize| {
            let text = format!("whsec_{}", STANDARD.encode(vec![7; length]));
            let parsed = HmacSecret::parse(&text);
            assert_eq!(HmacSecret::check(&text), parsed.as_ref().map(drop).map_err(|fault| *fault));
            parsed
        };
        assert_eq!(of(23).unwrap_err(), SecretFault::Length(23));
        assert_eq!(of(65).unwrap_err(), SecretFault::Length(65));
        for length in [24, 64] {
            let secret = of(length).unwrap();
            assert_eq!(HmacSecret::parse(secret.to_text().expose_secret()).unwrap(), secret);
            assert_eq!(format!("{secret:?}"), "whsec_…");
        }
        assert_ne!(HmacSecret::generate().unwrap(), HmacSecret::generate().unwrap());
        assert_eq!(HmacSecret::parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap_err(), SecretFault::Prefix("whsec_"));
        assert_eq!(HmacSecret::parse("whsec_?").unwrap_err(), SecretFault::Base64("whsec_"));
    }

    #[test]
    fn key_pairs_are_read_in_both_lengths_but_not_with_another_public_half() {
        let key = SigningKey::<Push>::from_seed(&"07".repeat(32)).unwrap();
        let (seed, public) = ([7; 32], key.public().raw());
        let short = signing_key_from_whsk(&format!("whsk_{}", STANDARD.encode(seed))).unwrap();
        let long = signing_key_from_whsk(&format!("whsk_{}", STANDARD.encode([&seed[..], public].concat()))).unwrap();
        assert_eq!((short.kid(), long.kid()), (key.kid(), key.kid()));
        let whpk = public_key_to_whpk(key.public()).unwrap();
        assert_eq!(public_key_from_whpk(&whpk).unwrap(), *key.public());
        for bad in [[&seed[..], &seed[..]].concat(), vec![7; 31], vec![7; 65], Vec::new()] {
            let text = format!("whsk_{}", STANDARD.encode(bad));
            assert_eq!(signing_key_from_whsk(&text).unwrap_err(), SecretFault::NotAKey, "{text}");
        }
        assert_eq!(public_key_from_whpk("whpk_AAAA").unwrap_err(), SecretFault::NotAKey);
        let other = SigningKey::<Push>::generate(Algorithm::Es256).unwrap();
        assert_eq!(public_key_to_whpk(other.public()), None);
    }
}
