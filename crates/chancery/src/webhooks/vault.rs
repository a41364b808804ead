//! The vault for what registrations keep secret, over the node's own vault keys.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chancery_core::push::{Sealed, Secret, Vault};
use chancery_identity::webhook::VaultRing;
use chancery_protocol::Timestamp;
use secrecy::ExposeSecret as _;

use crate::build_error::BuildError;
use crate::data_folder::DataFolder;

const FILE: &str = "vault.json";

pub(crate) struct KeyVault(Mutex<VaultRing>);

impl std::fmt::Debug for KeyVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyVault")
    }
}

impl KeyVault {
    /// Made on first start. Without a folder the keys last as long as the process, as what they seal does.
    pub(crate) fn open(folder: Option<&DataFolder>, now: Timestamp) -> Result<Self, BuildError> {
        let fault = |fault: chancery_identity::webhook::VaultFault| BuildError::Push(format!("the vault: {fault}"));
        let Some(folder) = folder else { return Ok(Self(Mutex::new(VaultRing::generate(now).map_err(fault)?))) };
        let ring = match folder.read(FILE)? {
            Some(bytes) => VaultRing::from_json(&String::from_utf8_lossy(&bytes)).map_err(fault)?,
            None => {
                let ring = VaultRing::generate(now).map_err(fault)?;
                folder.write(FILE, ring.to_json().map_err(fault)?.expose_secret().as_bytes())?;
                ring
            }
        };
        Ok(Self(Mutex::new(ring)))
    }

    fn lock(&self) -> MutexGuard<'_, VaultRing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vault for KeyVault {
    fn seal(&self, bound: &[u8], plain: &[u8]) -> Sealed {
        match self.lock().seal(bound, plain) {
            Ok(sealed) => Sealed { kek_id: sealed.kek_id, bytes: sealed.bytes.into() },
            Err(error) => {
                // Nothing opens that, so deliveries fail and say why.
                tracing::error!(%error, "a webhook's secrets could not be sealed");
                Sealed { kek_id: "".into(), bytes: Vec::new().into() }
            }
        }
    }

    fn open(&self, bound: &[u8], sealed: &Sealed) -> Option<Secret> {
        let opened = self.lock().open(bound, &sealed.kek_id, &sealed.bytes).ok()?;
        Some(Secret::new(opened.expose_secret().as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_survive_a_restart_and_open_only_where_they_belong() {
        let home = tempfile::tempdir().unwrap();
        let now = Timestamp::from_micros(1);
        let folder = DataFolder::claim(home.path()).unwrap();
        let sealed = KeyVault::open(Some(&folder), now).unwrap().seal(b"here", b"secret");
        assert!(!sealed.bytes.windows(6).any(|window| window == b"secret"));
        let again = KeyVault::open(Some(&folder), now).unwrap();
        assert_eq!(again.open(b"here", &sealed).unwrap().expose(), b"secret");
        assert!(again.open(b"there", &sealed).is_none());
        assert!(KeyVault::open(None, now).unwrap().open(b"here", &sealed).is_none());
        std::fs::write(home.path().join(FILE), "{").unwrap();
        assert!(KeyVault::open(Some(&folder), now).is_err(), "a damaged vault is not replaced by an empty one");
    }
}
