//! Secrets at rest: AES-256-GCM under a key with a name, bound to the place they belong to, so that rows cannot be swapped.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest;
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chancery_protocol::Timestamp;
use secrecy::{ExposeSecret as _, SecretBox, SecretString};
use serde::{Deserialize, Serialize};

const KEY_BYTES: usize = 32;
const FORMAT_VERSION: u32 = 1;
/// What is hashed before a key for its name.
const NAME_DOMAIN: &[u8] = b"chancery vault key\0";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultFault {
    #[error("a vault key has 32 bytes")]
    Key,
    #[error("the operating system returned no random bytes")]
    NoRandomness,
    #[error("a secret could not be encrypted")]
    NotSealed,
    #[error("the vault has no key with this name")]
    UnknownKey,
    #[error("a secret cannot be decrypted: it was changed, or copied from another registration")]
    NotOpened,
    #[error("the vault file cannot be read")]
    Unreadable,
    #[error("the vault key in use cannot be removed")]
    InUse,
}

/// What was sealed, and by which key.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedBytes {
    pub kek_id: Arc<str>,
    /// The nonce, the secret, its tag.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for SealedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedBytes({} bytes by {})", self.bytes.len(), self.kek_id)
    }
}

/// The keys of a vault. The newest seals, all of them open.
pub struct VaultRing {
    /// Oldest first, never none.
    keys: Vec<VaultKey>,
}

struct VaultKey {
    id: Arc<str>,
    bytes: SecretBox<[u8; KEY_BYTES]>,
    key: RandomizedNonceKey,
    made_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    keys: Vec<VaultKeyJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VaultKeyJson {
    id: String,
    made_at: Timestamp,
    key: String,
}

impl VaultKey {
    fn new(bytes: &[u8], made_at: Timestamp) -> Result<Self, VaultFault> {
        let bytes: [u8; KEY_BYTES] = bytes.try_into().map_err(|_| VaultFault::Key)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|_| VaultFault::Key)?;
        let name = digest::digest(&digest::SHA256, &[NAME_DOMAIN, &bytes].concat());
        let id: String = name.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { id: id.into(), bytes: SecretBox::new(Box::new(bytes)), key, made_at })
    }

    fn generate(made_at: Timestamp) -> Result<Self, VaultFault> {
        let mut bytes = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| VaultFault::NoRandomness)?;
        Self::new(&bytes, made_at)
    }
}

impl VaultRing {
    /// With one new key.
    pub fn generate(now: Timestamp) -> Result<Self, VaultFault> {
        Ok(Self { keys: vec![VaultKey::generate(now)?] })
    }

    /// With one given key.
    pub fn with_key(bytes: &[u8], now: Timestamp) -> Result<Self, VaultFault> {
        Ok(Self { keys: vec![VaultKey::new(bytes, now)?] })
    }

    pub fn from_json(text: &str) -> Result<Self, VaultFault> {
        let file: File = serde_json::from_str(text).map_err(|_| VaultFault::Unreadable)?;
        if file.version != FORMAT_VERSION || file.keys.is_empty() {
            return Err(VaultFault::Unreadable);
        }
        let read = |written: VaultKeyJson| {
            let bytes = SecretBox::new(Box::new(STANDARD.decode(&written.key).map_err(|_| VaultFault::Unreadable)?));
            let kept = VaultKey::new(bytes.expose_secret(), written.made_at)?;
            if *kept.id == *written.id { Ok(kept) } else { Err(VaultFault::Unreadable) }
        };
        Ok(Self { keys: file.keys.into_iter().map(read).collect::<Result<_, _>>()? })
    }

    pub fn to_json(&self) -> Result<SecretString, VaultFault> {
        let written = |kept: &VaultKey| VaultKeyJson {
            id: kept.id.to_string(),
            made_at: kept.made_at,
            key: STANDARD.encode(kept.bytes.expose_secret()),
        };
        let file = File { version: FORMAT_VERSION, keys: self.keys.iter().map(written).collect() };
        Ok(serde_json::to_string_pretty(&file).map_err(|_| VaultFault::Unreadable)?.into())
    }

    /// The name of the key that seals.
    pub fn current(&self) -> &Arc<str> {
        &self.newest().id
    }

    /// Names and ages of all keys, oldest first.
    pub fn keys(&self) -> impl Iterator<Item = (&Arc<str>, Timestamp)> {
        self.keys.iter().map(|kept| (&kept.id, kept.made_at))
    }

    /// A new key seals from now on. What others sealed still opens; [`VaultRing::reseal`] brings it over.
    pub fn rotate(&mut self, now: Timestamp) -> Result<&Arc<str>, VaultFault> {
        self.keys.push(VaultKey::generate(now)?);
        Ok(self.current())
    }

    /// Forgets a key that seals nothing any more. Whether it does is for the caller to know.
    pub fn retire(&mut self, id: &str) -> Result<(), VaultFault> {
        if **self.current() == *id {
            return Err(VaultFault::InUse);
        }
        let before = self.keys.len();
        self.keys.retain(|kept| *kept.id != *id);
        if self.keys.len() == before { Err(VaultFault::UnknownKey) } else { Ok(()) }
    }

    /// `bound` is not kept, but must be the same to open it again; see [`bound_to`].
    pub fn seal(&self, bound: &[u8], plain: &[u8]) -> Result<SealedBytes, VaultFault> {
        let kept = self.newest();
        let mut sealed = plain.to_vec();
        let nonce = kept.key.seal_in_place_append_tag(Aad::from(bound), &mut sealed).map_err(|_| VaultFault::NotSealed)?;
        let mut bytes = Vec::with_capacity(NONCE_LEN + sealed.len());
        bytes.extend_from_slice(nonce.as_ref());
        bytes.append(&mut sealed);
        Ok(SealedBytes { kek_id: kept.id.clone(), bytes })
    }

    pub fn open(&self, bound: &[u8], kek_id: &str, bytes: &[u8]) -> Result<SecretBox<Vec<u8>>, VaultFault> {
        let kept = self.keys.iter().find(|kept| *kept.id == *kek_id).ok_or(VaultFault::UnknownKey)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN).ok_or(VaultFault::NotOpened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultFault::NotOpened)?;
        let mut plain = SecretBox::new(Box::new(sealed.to_vec()));
        let length = {
            use secrecy::ExposeSecretMut as _;
            let opened = kept.key.open_in_place(nonce, Aad::from(bound), plain.expose_secret_mut());
            opened.map_err(|_| VaultFault::NotOpened)?.len()
        };
        secrecy::ExposeSecretMut::expose_secret_mut(&mut plain).truncate(length);
        Ok(plain)
    }

    /// The same secret under the key in use; none if it is there already.
    pub fn reseal(&self, bound: &[u8], kek_id: &str, bytes: &[u8]) -> Result<Option<SealedBytes>, VaultFault> {
        if **self.current() == *kek_id {
            return Ok(None);
        }
        self.seal(bound, self.open(bound, kek_id, bytes)?.expose_secret()).map(Some)
    }

    fn newest(&self) -> &VaultKey {
        // There is always one: it is made with one, and the newest is never taken away.
        &self.keys[self.keys.len() - 1]
    }
}

impl fmt::Debug for VaultRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|kept| &kept.id)).finish()
    }
}

/// The place a secret belongs to. Lengths keep places apart that read the same when joined.
pub fn bound_to(tenant: &str, task: &str, config: &str) -> Vec<u8> {
    let mut bound = Vec::new();
    for part in [tenant, task, config] {
        bound.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bound.extend_from_slice(part.as_bytes());
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn opened(ring: &VaultRing, bound: &[u8], sealed: &SealedBytes) -> Result<Vec<u8>, VaultFault> {
        ring.open(bound, &sealed.kek_id, &sealed.bytes).map(|plain| plain.expose_secret().clone())
    }

    #[test]
    fn what_is_sealed_opens_in_its_place_and_nowhere_else() {
        let ring = VaultRing::generate(NOW).unwrap();
        let place = bound_to("t", "task", "config");
        let sealed = ring.seal(&place, b"secret").unwrap();
        assert_eq!(opened(&ring, &place, &sealed).unwrap(), b"secret");
        for other in
            [bound_to("u", "task", "config"), bound_to("t", "tas", "kconfig"), bound_to("t", "task", "other"), Vec::new()]
        {
            assert_eq!(opened(&ring, &other, &sealed), Err(VaultFault::NotOpened));
        }
        for at in 0..sealed.bytes.len() {
            let mut altered = sealed.clone();
            altered.bytes[at] ^= 1;
            assert_eq!(opened(&ring, &place, &altered), Err(VaultFault::NotOpened), "byte {at}");
        }
        for short in 0..sealed.bytes.len() {
            let cut = SealedBytes { bytes: sealed.bytes[..short].to_vec(), ..sealed.clone() };
            assert_eq!(opened(&ring, &place, &cut), Err(VaultFault::NotOpened), "{short} bytes");
        }
        assert_ne!(ring.seal(&place, b"secret").unwrap().bytes, sealed.bytes, "never twice the same");
        let empty = ring.seal(&place, b"").unwrap();
        assert_eq!(opened(&ring, &place, &empty).unwrap(), b"");
    }

    #[test]
    fn a_new_key_seals_and_the_old_ones_open_until_they_are_taken_away() {
        let mut ring = VaultRing::with_key(&[7; 32], NOW).unwrap();
        let place = bound_to("t", "task", "config");
        let old = ring.seal(&place, b"secret").unwrap();
        assert_eq!(ring.reseal(&place, &old.kek_id, &old.bytes), Ok(None));
        ring.rotate(NOW).unwrap();
        let new = ring.reseal(&place, &old.kek_id, &old.bytes).unwrap().unwrap();
        assert_ne!(new.kek_id, old.kek_id);

        let ring_again = VaultRing::from_json(ring.to_json().unwrap().expose_secret()).unwrap();
        assert_eq!(opened(&ring_again, &place, &old).unwrap(), b"secret");
        assert_eq!(opened(&ring_again, &place, &new).unwrap(), b"secret");

        assert_eq!(ring.retire(&new.kek_id), Err(VaultFault::InUse));
        ring.retire(&old.kek_id).unwrap();
        assert_eq!(ring.retire(&old.kek_id), Err(VaultFault::UnknownKey));
        assert_eq!(opened(&ring, &place, &old), Err(VaultFault::UnknownKey));
        assert_eq!(opened(&ring, &place, &new).unwrap(), b"secret");
    }

    #[test]
    fn neither_keys_nor_secrets_are_printed_and_a_damaged_file_is_refused() {
        let ring = VaultRing::with_key(&[7; 32], NOW).unwrap();
        assert_eq!(format!("{ring:?}"), format!("[{:?}]", ring.current()));
        let text = ring.to_json().unwrap().expose_secret().to_owned();
        assert!(VaultRing::from_json(&text).is_ok());
        for bad in ["", "{}", r#"{"version":1,"keys":[]}"#, &text.replace("BwcH", "BwcI"), &text.replace(": 1", ": 2")] {
            assert_eq!(VaultRing::from_json(bad).unwrap_err(), VaultFault::Unreadable, "{bad}");
        }
        assert_eq!(VaultRing::with_key(&[7; 31], NOW).unwrap_err(), VaultFault::Key);
    }
}
