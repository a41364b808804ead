//! The vault for what registrations keep secret, over the node's own vault keys.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_core::push::{SealedSecret, SecretBytes, Vault};
use chancery_identity::webhook::{VaultFault, VaultRing};
use chancery_protocol::Timestamp;
use secrecy::ExposeSecret as _;

use crate::build_error::BuildError;
use crate::data_folder::{DataFolder, FolderError};

const FILE: &str = "vault.json";

#[derive(Debug, thiserror::Error)]
pub(crate) enum VaultError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Ring(#[from] VaultFault),
}

/// What is changed is kept before it is used: nothing is ever sealed by a key that could be lost.
pub(crate) struct KeyVault {
    ring: Mutex<VaultRing>,
    /// Whether there was no file at this start.
    made_now: bool,
    folder: Option<Arc<DataFolder>>,
}

impl std::fmt::Debug for KeyVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyVault")
    }
}

impl KeyVault {
    /// Made on first start. Without a folder the keys last as long as the process, as what they seal does.
    pub(crate) fn open(folder: Option<Arc<DataFolder>>, now: Timestamp) -> Result<Self, BuildError> {
        let fault = |fault: VaultFault| BuildError::Push(format!("the vault: {fault}"));
        let kept = folder.as_ref().map(|folder| folder.read(FILE)).transpose()?.flatten();
        let ring = match &kept {
            Some(bytes) => VaultRing::from_json(&String::from_utf8_lossy(bytes)).map_err(fault)?,
            None => VaultRing::generate(now).map_err(fault)?,
        };
        if let Some(folder) = folder.as_ref().filter(|_| kept.is_none()) {
            folder.write(FILE, ring.to_json().map_err(fault)?.expose_secret().as_bytes())?;
        }
        Ok(Self { ring: Mutex::new(ring), made_now: kept.is_none() && folder.is_some(), folder })
    }

    /// Logs what follows if the file was created again in a folder whose database has registrations.
    pub(crate) fn warn_if_lost(&self, registrations: u64) {
        if self.made_now && registrations > 0 {
            tracing::warn!(
                registrations,
                "{FILE} is missing, and there was one: the node made new keys. It cannot open the secrets of webhooks and of \
                 origins: deliveries that need them fail. Stop the node and restore {FILE} from a backup, or register the \
                 webhooks again"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, VaultRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names and ages of the keys, the one that seals last.
    pub(crate) fn keys(&self) -> Vec<(Arc<str>, Timestamp)> {
        self.lock().keys().map(|(id, made_at)| (Arc::clone(id), made_at)).collect()
    }

    /// A new key seals from now on. Those before it open what they sealed until they are retired.
    pub(crate) fn rotate(&self, now: Timestamp) -> Result<Arc<str>, VaultError> {
        self.change(|ring| ring.rotate(now).cloned())
    }

    /// Forgets a key. Whether it sealed something that is still there is for the caller to know.
    pub(crate) fn retire(&self, id: &str) -> Result<(), VaultError> {
        self.change(|ring| ring.retire(id))
    }

    fn change<T>(&self, change: impl FnOnce(&mut VaultRing) -> Result<T, VaultFault>) -> Result<T, VaultError> {
        let mut ring = self.lock();
        let mut changed = VaultRing::from_json(ring.to_json()?.expose_secret())?;
        let done = change(&mut changed)?;
        if let Some(folder) = &self.folder {
            folder.write(FILE, changed.to_json()?.expose_secret().as_bytes())?;
        }
        *ring = changed;
        Ok(done)
    }
}

impl Vault for KeyVault {
    fn current(&self) -> Arc<str> {
        Arc::clone(self.lock().current())
    }

    fn seal(&self, bound: &[u8], plain: &[u8]) -> SealedSecret {
        match self.lock().seal(bound, plain) {
            Ok(sealed) => SealedSecret { kek_id: sealed.kek_id, bytes: sealed.bytes.into() },
            Err(error) => {
                // Nothing opens that, so deliveries fail and say why.
                tracing::error!(%error, "cannot seal the secrets of a webhook; its deliveries fail");
                SealedSecret { kek_id: "".into(), bytes: Vec::new().into() }
            }
        }
    }

    fn open(&self, bound: &[u8], sealed: &SealedSecret) -> Option<SecretBytes> {
        let opened = self.lock().open(bound, &sealed.kek_id, &sealed.bytes).ok()?;
        Some(SecretBytes::new(opened.expose_secret().as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_survive_a_restart_and_open_only_where_they_belong() {
        let home = tempfile::tempdir().unwrap();
        let now = Timestamp::from_micros(1);
        let folder = Arc::new(DataFolder::claim(home.path()).unwrap());
        let open = || KeyVault::open(Some(Arc::clone(&folder)), now);
        let sealed = open().unwrap().seal(b"here", b"secret");
        assert!(!sealed.bytes.windows(6).any(|window| window == b"secret"));
        let again = open().unwrap();
        assert_eq!(again.open(b"here", &sealed).unwrap().expose(), b"secret");
        assert!(again.open(b"there", &sealed).is_none());
        assert!(KeyVault::open(None, now).unwrap().open(b"here", &sealed).is_none());

        assert_eq!(again.current(), sealed.kek_id);
        let new = again.rotate(now).unwrap();
        let again = open().unwrap();
        assert_eq!((again.current(), again.keys().len()), (new.clone(), 2));
        assert_eq!(again.open(b"here", &sealed).unwrap().expose(), b"secret", "the old key still opens");
        assert!(again.retire(&new).is_err(), "the one that seals stays");
        again.retire(&sealed.kek_id).unwrap();
        assert!(open().unwrap().open(b"here", &sealed).is_none());

        std::fs::write(home.path().join(FILE), "{").unwrap();
        assert!(open().is_err(), "a damaged vault is not replaced by an empty one");
    }
}
