//! The secrets that operators agreed with origins: sealed in the data folder, changed with a time in which the old one signs too.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chancery_core::push::{SealedSecret, Vault as _};
use chancery_identity::webhook::{HmacSecret, RotationFault, SecretSet};
use chancery_protocol::Timestamp;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

use super::vault::KeyVault;
use crate::data_folder::{DataFolder, FolderError};

const FILE: &str = "push-secrets.json";

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretsError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("{FILE} cannot be read")]
    Damaged,
    #[error(transparent)]
    Rotation(#[from] RotationFault),
    #[error("there is no secret for {0}")]
    Unknown(String),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    origins: BTreeMap<String, SealedEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedEntry {
    kek_id: String,
    sealed: String,
}

/// By `scheme://host:port`. What is changed is kept before it is used.
#[derive(Debug)]
pub(crate) struct SecretRegistry {
    vault: Arc<KeyVault>,
    folder: Option<Arc<DataFolder>>,
    sets: Mutex<BTreeMap<String, SecretSet>>,
}

/// As operators see one: never what it is.
#[derive(Debug, Serialize)]
pub(crate) struct AgreedSecretSummary {
    pub(crate) origin: String,
    /// Secrets that sign now, the old ones among them.
    pub(crate) signing: usize,
}

impl SecretRegistry {
    /// Without a folder they last as long as the process.
    pub(crate) fn open(folder: Option<Arc<DataFolder>>, vault: Arc<KeyVault>) -> Result<Self, SecretsError> {
        let kept = folder.as_ref().map(|folder| folder.read(FILE)).transpose()?.flatten();
        let file: File = match kept {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|_| SecretsError::Damaged)?,
            None => File::default(),
        };
        let open = |(origin, written): (String, SealedEntry)| {
            let bytes = STANDARD.decode(&written.sealed).ok()?;
            let sealed = SealedSecret { kek_id: written.kek_id.into(), bytes: bytes.into() };
            let plain = vault.open(&bound(&origin), &sealed)?;
            Some((origin, SecretSet::from_json(plain.expose_text()?).ok()?))
        };
        let sets = file.origins.into_iter().map(|one| open(one).ok_or(SecretsError::Damaged));
        Ok(Self { sets: Mutex::new(sets.collect::<Result<_, _>>()?), vault, folder })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SecretSet>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sets(&self) -> HashMap<String, SecretSet> {
        self.lock().clone().into_iter().collect()
    }

    pub(crate) fn shown(&self, now: Timestamp) -> Vec<AgreedSecretSummary> {
        let sets = self.lock();
        sets.iter()
            .map(|(origin, set)| AgreedSecretSummary { origin: origin.clone(), signing: set.signing(now).count() })
            .collect()
    }

    /// The first one for an origin, or one in place of another, which signs too until the grace is over.
    pub(crate) fn set(&self, origin: &str, secret: HmacSecret, grace: Duration, now: Timestamp) -> Result<(), SecretsError> {
        self.change(|sets| {
            match sets.get_mut(origin) {
                Some(set) => set.rotate(secret, grace, now)?,
                None => drop(sets.insert(origin.to_owned(), SecretSet::new(secret))),
            }
            Ok(())
        })
    }

    pub(crate) fn remove(&self, origin: &str) -> Result<(), SecretsError> {
        self.change(|sets| sets.remove(origin).map(drop).ok_or_else(|| SecretsError::Unknown(origin.to_owned())))
    }

    /// Everything is sealed by the key in use.
    pub(crate) fn reseal(&self) -> Result<(), SecretsError> {
        self.change(|_| Ok(()))
    }

    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, SecretSet>) -> Result<(), SecretsError>,
    ) -> Result<(), SecretsError> {
        let mut sets = self.lock();
        let mut changed = sets.clone();
        change(&mut changed)?;
        if let Some(folder) = &self.folder {
            let write = |(origin, set): (&String, &SecretSet)| {
                let sealed = self.vault.seal(&bound(origin), set.to_json()?.expose_secret().as_bytes());
                let written = SealedEntry { kek_id: sealed.kek_id.to_string(), sealed: STANDARD.encode(&sealed.bytes) };
                Ok((origin.clone(), written))
            };
            let file = File { origins: changed.iter().map(write).collect::<Result<_, RotationFault>>()? };
            folder.write(FILE, &serde_json::to_vec_pretty(&file).map_err(|_| SecretsError::Damaged)?)?;
        }
        *sets = changed;
        Ok(())
    }
}

/// What such a secret is sealed for: no registration has an empty task.
fn bound(origin: &str) -> Vec<u8> {
    chancery_identity::webhook::bound_to("", "", origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);
    const ORIGIN: &str = "https://hooks.example:443";

    #[test]
    fn secrets_survive_a_restart_under_every_key_and_are_not_to_be_read_in_the_file() {
        let home = tempfile::tempdir().unwrap();
        let folder = Arc::new(DataFolder::claim(home.path()).unwrap());
        let open = || {
            let vault = Arc::new(KeyVault::open(Some(Arc::clone(&folder)), NOW).unwrap());
            (SecretRegistry::open(Some(Arc::clone(&folder)), Arc::clone(&vault)).unwrap(), vault)
        };
        let (first, second) = (HmacSecret::generate().unwrap(), HmacSecret::generate().unwrap());
        let (registry, _) = open();
        registry.set(ORIGIN, first.clone(), Duration::ZERO, NOW).unwrap();
        registry.set(ORIGIN, second.clone(), Duration::from_secs(60), NOW).unwrap();
        let (registry, vault) = open();
        let signing = |registry: &SecretRegistry, at| registry.sets()[ORIGIN].signing(at).cloned().collect::<Vec<_>>();
        assert_eq!(signing(&registry, NOW), [second.clone(), first.clone()]);
        let text = std::fs::read_to_string(home.path().join(FILE)).unwrap();
        assert!(!text.contains("whsec_"), "{text}");

        let old = vault.current();
        vault.rotate(NOW).unwrap();
        registry.reseal().unwrap();
        vault.retire(&old).unwrap();
        let (registry, _) = open();
        assert_eq!(signing(&registry, NOW + Duration::from_secs(61)), [second]);
        registry.remove(ORIGIN).unwrap();
        assert!(matches!(registry.remove(ORIGIN), Err(SecretsError::Unknown(_))));
        assert!(open().0.shown(NOW).is_empty());
    }
}
