//! All callers of the node: those in the config, and those that an operator added to the running node.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use chancery_identity::credentials::{CallerFault, CallerRecord, Callers, RotateError};
use chancery_protocol::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::data_folder::{DataFolder, FolderError};

const FILE: &str = "callers.json";

/// Why the list of added callers cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum CallerRegistryError {
    /// The data folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// `callers.json` cannot be parsed.
    #[error("callers.json of the data folder is damaged: {0}")]
    Damaged(String),
    /// Records of callers have faults.
    #[error("{}", list(.0))]
    Faulty(Vec<CallerFault>),
    /// Another caller has the name.
    #[error("there is a caller {0} already; give it a new key with `chancery callers rotate`")]
    Taken(String),
    /// No caller has the name.
    #[error("there is no caller {0}")]
    Unknown(String),
    /// The config file has the caller, so only it can change the caller.
    #[error("{0} is in the config file and has to be changed there")]
    Configured(String),
    /// The node has no data folder to write to.
    #[error("callers cannot be added to a node without a data folder; list them in its config")]
    NoFolder,
    /// The key of the caller cannot be rotated.
    #[error(transparent)]
    Rotate(#[from] RotateError),
}

fn list(faults: &[CallerFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    callers: Vec<CallerRecord>,
}

/// Holds the callers and the place the added ones are kept in. What is changed is kept before it holds.
#[derive(Debug)]
pub struct CallerRegistry {
    kept: Mutex<CallerLists>,
    live: Arc<ArcSwap<Callers>>,
    folder: Option<Arc<DataFolder>>,
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct CallerLists {
    configured: Vec<CallerRecord>,
    added: Vec<CallerRecord>,
}

impl CallerLists {
    fn callers(configured: &[CallerRecord], added: &[CallerRecord]) -> Result<Callers, CallerRegistryError> {
        Callers::new(configured.iter().chain(added).cloned().collect()).map_err(CallerRegistryError::Faulty)
    }

    fn added_by(&mut self, name: &str) -> Result<&mut CallerRecord, CallerRegistryError> {
        if self.configured.iter().any(|record| record.name == name) {
            return Err(CallerRegistryError::Configured(name.to_owned()));
        }
        self.added.iter_mut().find(|record| record.name == name).ok_or_else(|| CallerRegistryError::Unknown(name.to_owned()))
    }
}

impl CallerRegistry {
    /// Reads the added callers of the folder, behind the configured ones.
    pub fn open(folder: Option<Arc<DataFolder>>, configured: Vec<CallerRecord>) -> Result<Self, CallerRegistryError> {
        let kept = folder.as_ref().map(|folder| folder.read(FILE)).transpose()?.flatten();
        let File { callers: added } = match kept {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|fault| CallerRegistryError::Damaged(fault.to_string()))?,
            None => File::default(),
        };
        let live = CallerLists::callers(&configured, &added)?;
        Ok(Self {
            kept: Mutex::new(CallerLists { configured, added }),
            live: Arc::new(ArcSwap::from_pointee(live)),
            folder,
            changes: watch::Sender::new(0),
        })
    }

    /// The callers that were added to a folder, also while a node has it; none, if they cannot be read.
    pub(crate) fn added_in(folder: &std::path::Path) -> Vec<CallerRecord> {
        let file = std::fs::read(folder.join(FILE)).ok().and_then(|bytes| serde_json::from_slice::<File>(&bytes).ok());
        file.unwrap_or_default().callers
    }

    /// The callers as calls see them, now and after every change.
    pub fn live(&self) -> Arc<ArcSwap<Callers>> {
        Arc::clone(&self.live)
    }

    /// Changes with every change of the callers.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns whether there are no callers.
    pub fn is_empty(&self) -> bool {
        self.live.load().is_empty()
    }

    /// Every caller, and whether the config has it.
    pub fn list(&self) -> Vec<(CallerRecord, bool)> {
        let kept = self.lock();
        let configured = kept.configured.iter().map(|record| (record.clone(), true));
        configured.chain(kept.added.iter().map(|record| (record.clone(), false))).collect()
    }

    /// What the callers would be if the config had these.
    pub(crate) fn preview(&self, configured: &[CallerRecord]) -> Result<Callers, CallerRegistryError> {
        CallerLists::callers(configured, &self.lock().added)
    }

    /// Puts others in the place of the callers of the config, for the next call.
    pub(crate) fn configure(&self, configured: Vec<CallerRecord>) -> Result<(), CallerRegistryError> {
        let mut kept = self.lock();
        let live = CallerLists::callers(&configured, &kept.added)?;
        kept.configured = configured;
        self.live.store(Arc::new(live));
        drop(kept);
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Adds a caller. It gets a key, shown this once, unless the record brings another way to prove itself.
    pub fn add(&self, mut record: CallerRecord, now: Timestamp) -> Result<Option<SecretString>, CallerRegistryError> {
        if self.list().iter().any(|(known, _)| known.name == record.name) {
            return Err(CallerRegistryError::Taken(record.name));
        }
        let proves = !(record.certificates.is_empty() && record.agent_ids.is_empty() && record.tokens.is_empty());
        let key = if proves { None } else { Some(record.rotate(now, Duration::ZERO)?) };
        self.change(|kept| {
            kept.added.push(record);
            Ok(())
        })?;
        Ok(key)
    }

    /// A new key for a caller; the ones it has work on for `overlap`.
    pub fn rotate(&self, name: &str, overlap: Duration, now: Timestamp) -> Result<SecretString, CallerRegistryError> {
        self.change(|kept| Ok(kept.added_by(name)?.rotate(now, overlap)?))
    }

    /// Takes all credentials from a caller, at once. What it made stays its own.
    pub fn revoke(&self, name: &str) -> Result<(), CallerRegistryError> {
        self.change(|kept| {
            kept.added_by(name)?.revoke();
            Ok(())
        })
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut CallerLists) -> Result<T, CallerRegistryError>,
    ) -> Result<T, CallerRegistryError> {
        let folder = self.folder.as_ref().ok_or(CallerRegistryError::NoFolder)?;
        let mut held = self.lock();
        let mut kept = CallerLists { configured: held.configured.clone(), added: held.added.clone() };
        let made = change(&mut kept)?;
        let live = CallerLists::callers(&kept.configured, &kept.added)?;
        let file = serde_json::to_vec_pretty(&File { callers: kept.added.clone() });
        folder.write(FILE, &file.map_err(|fault| CallerRegistryError::Damaged(fault.to_string()))?)?;
        *held = kept;
        self.live.store(Arc::new(live));
        self.changes.send_modify(|count| *count += 1);
        Ok(made)
    }

    fn lock(&self) -> MutexGuard<'_, CallerLists> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000);

    #[test]
    fn an_added_caller_is_known_at_once_and_after_a_restart_until_it_is_revoked() {
        let home = tempfile::tempdir().unwrap();
        let folder = Some(Arc::new(DataFolder::claim(home.path()).unwrap()));
        let registry = CallerRegistry::open(folder.clone(), Vec::new()).unwrap();
        assert!(registry.is_empty());
        let key = registry.add(CallerRecord::new("ci"), NOW).unwrap().expect("a key");
        let live = registry.live();
        assert_eq!(&*live.load().by_key(key.expose_secret(), NOW).unwrap().caller.name, "ci");
        assert!(matches!(registry.add(CallerRecord::new("ci"), NOW), Err(CallerRegistryError::Taken(_))));

        let again = CallerRegistry::open(folder.clone(), Vec::new()).unwrap();
        assert!(again.live().load().by_key(key.expose_secret(), NOW).is_ok());
        let second = again.rotate("ci", Duration::from_secs(10), NOW).unwrap();
        assert!(again.live().load().by_key(key.expose_secret(), NOW).is_ok(), "within the overlap");
        again.revoke("ci").unwrap();
        for key in [key, second] {
            assert!(again.live().load().by_key(key.expose_secret(), NOW).is_err());
        }
        let file = std::fs::read_to_string(home.path().join(FILE)).unwrap();
        assert!(file.contains("\"ci\"") && !file.contains("chk_"), "{file}");
    }

    #[test]
    fn callers_of_the_config_are_changed_there() {
        let home = tempfile::tempdir().unwrap();
        let folder = Some(Arc::new(DataFolder::claim(home.path()).unwrap()));
        let registry = CallerRegistry::open(folder.clone(), vec![CallerRecord::new("ci")]).unwrap();
        assert!(matches!(registry.revoke("ci"), Err(CallerRegistryError::Configured(_))));
        assert!(matches!(registry.revoke("who"), Err(CallerRegistryError::Unknown(_))));
        let homeless = CallerRegistry::open(None, Vec::new()).unwrap();
        assert!(matches!(homeless.add(CallerRecord::new("x"), NOW), Err(CallerRegistryError::NoFolder)));
    }
}
