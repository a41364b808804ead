//! API keys: made from 256 random bits, shown once, kept only as a hash.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::hex;
use crate::{KeyError, SealKey};

/// What every key made here starts with, so that scanners for leaked secrets find it.
const PREFIX: &str = "chk_";

#[derive(Debug)]
pub struct ApiKey;

impl ApiKey {
    /// Shorter keys than this, given by hand, are refused.
    pub const LEAST_BYTES: usize = 16;

    /// Makes a new key. It is stored nowhere: the requester sees it once.
    pub fn generate() -> Result<SecretString, KeyError> {
        Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(SealKey::random_bytes()?)).into())
    }

    /// The hash of a chosen key, for example from an environment variable.
    pub fn given(key: &str) -> Result<KeyHash, &'static str> {
        if key.len() < Self::LEAST_BYTES {
            return Err("a key has at least 16 bytes");
        }
        if key.len() > super::MOST_CREDENTIAL_BYTES {
            return Err("a key has at most 8192 bytes");
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a key is printable ASCII without spaces, or no header could carry it");
        }
        Ok(KeyHash::of(key))
    }
}

/// SHA-256 of a key, `sha256:HEX`. A plain hash is enough for keys that cannot be guessed.
///
/// Keys are looked up by this hash and never compared themselves. The duration of a lookup reveals only
/// something about the hash of the presented key, which the client knows already. It reveals nothing about
/// the stored keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// Hashes an API key.
    pub fn of(key: &str) -> Self {
        Self(SealKey::digest(key.as_bytes()))
    }
}

impl FromStr for KeyHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix("sha256:").and_then(hex::read).map(Self).ok_or("a key hash is sha256: and 64 hex digits")
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex::HexBytes(&self.0))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for KeyHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeyHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_key_has_its_prefix_and_256_bits_and_is_never_made_twice() {
        let (key, other) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        let bits = key.expose_secret().strip_prefix("chk_").unwrap();
        assert_eq!(bits.len(), 43);
        assert_eq!(URL_SAFE_NO_PAD.decode(bits).unwrap().len(), 32);
        assert_ne!(key.expose_secret(), other.expose_secret());
        assert!(!format!("{key:?}").contains(bits));
    }

    #[test]
    fn a_hash_reads_back_as_it_is_printed_and_nothing_else_reads() {
        let hash = KeyHash::of("abc");
        // FIPS 180-2, the one-block message.
        assert_eq!(hash.to_string(), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(hash.to_string().replace("ba78", "BA78").parse(), Ok(hash));
        for bad in ["", "sha256:", "sha256:zz", "md5:00", &hash.to_string()[..70], &format!("{hash}0")] {
            assert!(bad.parse::<KeyHash>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_chosen_key_must_be_long_enough_and_fit_into_a_header() {
        assert_eq!(ApiKey::given("0123456789abcdef"), Ok(KeyHash::of("0123456789abcdef")));
        for bad in ["", "0123456789abcde", "0123456789abcde f", "0123456789abcdéf", &"k".repeat(8193)] {
            assert!(ApiKey::given(bad).is_err(), "{bad}");
        }
    }
}
