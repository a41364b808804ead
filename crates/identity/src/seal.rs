//! Tokens that callers carry and must not forge: content and its MAC under a key that never leaves the node.

use std::fmt;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const MAC_BYTES: usize = 16;

/// Why a seal key cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The key does not have 32 bytes.
    #[error("a seal key has 32 bytes, this one has {0}")]
    Length(usize),
    /// The system gave no random bytes.
    #[error("the system gave no random bytes")]
    NoRandomness,
}

/// A symmetric key that seals texts.
#[derive(Clone)]
pub struct SealKey(hmac::Key);

impl SealKey {
    /// The length of a key.
    pub const BYTES: usize = 32;

    /// New secret bytes for a key.
    pub fn random_bytes() -> Result<[u8; Self::BYTES], KeyError> {
        let mut bytes = [0; Self::BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| KeyError::NoRandomness)?;
        Ok(bytes)
    }

    /// Makes a key of some bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() != Self::BYTES {
            return Err(KeyError::Length(bytes.len()));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// Content and MAC as one URL-safe token. The purpose is part of what is authenticated, not of the token.
    pub fn seal(&self, purpose: &str, content: &[u8]) -> String {
        let mut token = content.to_vec();
        token.extend_from_slice(&self.mac(purpose, content).as_ref()[..MAC_BYTES]);
        URL_SAFE_NO_PAD.encode(token)
    }

    /// Opens a sealed text.
    pub fn open(&self, purpose: &str, token: &str) -> Option<Vec<u8>> {
        let mut content = URL_SAFE_NO_PAD.decode(token).ok()?;
        let mac = content.split_off(content.len().checked_sub(MAC_BYTES)?);
        let expected = self.mac(purpose, &content);
        aws_lc_rs::constant_time::verify_slices_are_equal(&expected.as_ref()[..MAC_BYTES], &mac).ok()?;
        Some(content)
    }

    /// The whole MAC, without the content.
    pub fn mark(&self, purpose: &str, content: &[u8]) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.mac(purpose, content).as_ref());
        bytes
    }

    fn mac(&self, purpose: &str, content: &[u8]) -> hmac::Tag {
        let mut mac = hmac::Context::with_key(&self.0);
        // The length keeps (purpose, content) pairs apart that read the same when joined.
        mac.update(&(purpose.len() as u64).to_be_bytes());
        mac.update(purpose.as_bytes());
        mac.update(content);
        mac.sign()
    }

    /// SHA-256.
    pub fn digest(content: &[u8]) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, content).as_ref());
        bytes
    }

    /// Whether two secrets are equal, in a time that does not tell where they differ.
    pub fn same_secret(left: &[u8], right: &[u8]) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&Self::digest(left), &Self::digest(right)).is_ok()
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SealKey {
        SealKey::new(&SealKey::random_bytes().unwrap()).unwrap()
    }

    #[test]
    fn a_token_opens_only_unaltered_for_its_purpose_and_with_its_key() {
        let key = key();
        let token = key.seal("page", b"content");
        assert_eq!(key.open("page", &token).unwrap(), b"content");
        assert_eq!(key.open("other", &token), None);
        assert_eq!(super::tests::key().open("page", &token), None);
        for at in 0..token.len() {
            let mut altered = token.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(key.open("page", std::str::from_utf8(&altered).unwrap()), None, "byte {at}");
        }
        for garbage in ["", "x", "%%%", "AAAA"] {
            assert_eq!(key.open("page", garbage), None);
        }
    }

    #[test]
    fn a_key_of_another_length_is_refused_and_no_key_is_printed() {
        assert!(SealKey::new(&[0; 31]).is_err());
        assert_eq!(format!("{:?}", key()), "SealKey(…)");
    }
}
