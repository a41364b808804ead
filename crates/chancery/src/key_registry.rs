//! The node's signing keys: made on first start, kept in the data folder, rotated while the node runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chancery_core::Chancery;
use chancery_evidence::record::Recorder;
use chancery_identity::hop_token::HopTokens as KeyedTokens;
use chancery_identity::keys::{Cards, HopTokens, KeyRecord, Push, Receipts, RingFault};
use chancery_identity::{Algorithm, KeyRing, KeyUse};
use chancery_inbound::DoorsHandle;
use chancery_protocol::{AgentId, Timestamp};
use secrecy::ExposeSecret as _;
use tokio::sync::watch;

use crate::caller_registry::CallerRegistry;
use crate::config::{KeySource, KeySourceError, KeysConfig};
use crate::data_folder::{DataFolder, FolderError};
use crate::record_mark::RecordMark;
use crate::webhooks::Webhooks;

const FILE: &str = "keys.json";
/// The names of all keys for receipts that there ever were. Keys go when they have retired; what they signed stays.
const SIGNERS: &str = "receipt-keys.json";

/// Why the node's keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyRegistryError {
    /// The data folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The file of keys is damaged.
    #[error("the node's keys: {0}")]
    Ring(#[from] RingFault),
    /// The file of former keys is damaged.
    #[error("{SIGNERS} cannot be read: {0}")]
    Signers(#[source] serde_json::Error),
    /// A key of the config cannot be used.
    #[error(transparent)]
    Given(#[from] KeySourceError),
}

/// Holds the keys, and the place they are kept in. What is changed is kept before it is used.
#[derive(Debug)]
pub struct KeyRegistry {
    ring: Mutex<KeyRing>,
    signers: Mutex<BTreeSet<String>>,
    folder: Option<Arc<DataFolder>>,
    changes: watch::Sender<u64>,
    /// The newest checkpoint that these keys signed, kept beside them.
    pub(crate) record_mark: RecordMark,
}

impl KeyRegistry {
    /// How long a new key is published before it signs: twice as long as caches may keep the list of keys.
    pub const LEAD: Duration = Duration::from_secs(600);
    /// How long an old key stays published after it has signed for the last time.
    pub const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

    /// Without a folder the keys last as long as the process.
    pub fn open(folder: Option<Arc<DataFolder>>) -> Result<Self, KeyRegistryError> {
        let kept = folder.as_ref().map(|folder| folder.read(FILE)).transpose()?.flatten();
        let ring = match &kept {
            Some(bytes) => KeyRing::from_json(&String::from_utf8_lossy(bytes))?,
            None => KeyRing::default(),
        };
        let signers = folder.as_ref().map(|folder| folder.read(SIGNERS)).transpose()?.flatten();
        if let (None, Some(_), Some(folder)) = (&kept, &signers, &folder) {
            tracing::warn!(
                folder = %folder.path().display(),
                "{FILE} is missing, and there was one: the node made new signing keys. Receivers that pinned the old ones reject \
                 this node's cards, notifications and receipts. Hop tokens that agents hold are invalid. Stop the node and \
                 restore {FILE} from a backup to keep the old keys"
            );
        }
        let signers = signers.map(|bytes| serde_json::from_slice(&bytes)).transpose().map_err(KeyRegistryError::Signers)?;
        let signers = Mutex::new(signers.unwrap_or_default());
        let record_mark = RecordMark::open(folder.clone())?;
        Ok(Self { ring: Mutex::new(ring), signers, folder, changes: watch::Sender::new(0), record_mark })
    }

    /// The AgentIDs of the cards that the node of this folder signs for its agents. It does not need the
    /// folder's lock.
    pub(crate) fn card_ids_in(folder: &std::path::Path) -> Vec<AgentId> {
        let kept = std::fs::read_to_string(folder.join(FILE)).ok();
        let ring = kept.and_then(|text| KeyRing::from_json(&text).ok()).unwrap_or_default();
        let of_cards = ring.records().iter().filter(|key| key.key_use == KeyUse::Cards && key.owner.is_some());
        of_cards.filter_map(|key| key.public.agent_id()).collect()
    }

    /// The names of all keys that this node ever signed receipts and its record with.
    pub(crate) fn signers(&self) -> BTreeSet<String> {
        self.signers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The agents that keys were made for, also in earlier runs.
    pub(crate) fn agents(&self) -> BTreeSet<String> {
        self.lock().records().iter().filter_map(|record| record.owner.as_ref().map(ToString::to_string)).collect()
    }

    /// Before any of them signs.
    fn remember_signers(&self, ring: &KeyRing) -> Result<(), KeyRegistryError> {
        let mut signers = self.signers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = signers.clone();
        let of_receipts = ring.records().iter().filter(|record| record.key_use == KeyUse::Receipts);
        all.extend(of_receipts.map(|record| record.kid.to_string()));
        if all != *signers {
            if let Some(folder) = &self.folder {
                folder.write(SIGNERS, &serde_json::to_vec(&all).map_err(KeyRegistryError::Signers)?)?;
            }
            *signers = all;
        }
        Ok(())
    }

    /// Makes sure that there is a key for everything that is signed, and forgets those that have retired.
    pub fn ensure_keys(
        &self,
        agents: &[(String, Option<KeySource>)],
        given: &KeysConfig,
        now: Timestamp,
    ) -> Result<(), KeyRegistryError> {
        self.change(|ring| {
            ring.prune(now);
            for (agent, source) in agents {
                if let Some(source) = source {
                    ring.give(&source.load::<Cards>()?, Some(agent), now)?;
                }
                for algorithm in [Algorithm::EdDsa, Algorithm::Es256] {
                    ring.ensure(KeyUse::Cards, Some(agent), algorithm, now)?;
                }
            }
            if let Some(source) = &given.hop_tokens {
                ring.give(&source.load::<HopTokens>()?, None, now)?;
            }
            if let Some(source) = &given.push {
                ring.give(&source.load::<Push>()?, None, now)?;
            }
            if let Some(source) = &given.receipts {
                ring.give(&source.load::<Receipts>()?, None, now)?;
            }
            for key_use in [KeyUse::HopTokens, KeyUse::Push, KeyUse::Receipts] {
                ring.ensure(key_use, None, Algorithm::EdDsa, now)?;
            }
            Ok(())
        })
    }

    /// Makes sure that the node has a key for one more use.
    pub fn ensure(&self, key_use: KeyUse, now: Timestamp) -> Result<(), KeyRegistryError> {
        let has = self.lock().published(now).any(|key| key.key_use == key_use && key.owner.is_none());
        if has {
            return Ok(());
        }
        self.change(|ring| Ok(ring.ensure(key_use, None, Algorithm::EdDsa, now).map(drop)?))
    }

    /// Puts new keys in the place of those of one use and owner.
    pub fn rotate(
        &self,
        key_use: KeyUse,
        owner: Option<&str>,
        lead: Duration,
        overlap: Duration,
        now: Timestamp,
    ) -> Result<Vec<KeyRecord>, KeyRegistryError> {
        self.change(|ring| Ok(ring.rotate(key_use, owner, lead, overlap, now)?))
    }

    /// The keys as they are.
    pub fn ring(&self) -> KeyRing {
        self.lock().clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut KeyRing) -> Result<T, KeyRegistryError>) -> Result<T, KeyRegistryError> {
        let mut held = self.lock();
        let mut ring = held.clone();
        let made = change(&mut ring)?;
        self.remember_signers(&ring)?;
        if let Some(folder) = &self.folder {
            folder.write(FILE, ring.to_json()?.expose_secret().as_bytes())?;
        }
        *held = ring;
        drop(held);
        self.changes.send_modify(|count| *count += 1);
        Ok(made)
    }

    fn lock(&self) -> MutexGuard<'_, KeyRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The signers that use the node's own keys.
#[derive(Debug)]
pub(crate) struct Signers {
    pub(crate) hops: Arc<KeyedTokens>,
    pub(crate) webhooks: Option<Arc<Webhooks>>,
}

impl Signers {
    fn take_keys(&self, ring: &KeyRing) {
        self.hops.take_keys(ring);
        if let Some(webhooks) = &self.webhooks {
            webhooks.take_keys(ring);
        }
    }
}

/// How often to look whether a key has come into use or has retired.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Renders cards and public keys again when the keys, their validity or the callers change. A card lists the
/// kinds of credentials that callers have.
pub(crate) async fn keep_published(
    doors_handle: DoorsHandle,
    keys: Arc<KeyRegistry>,
    callers: Arc<CallerRegistry>,
    signers: Signers,
    recorder: Option<Arc<Recorder>>,
    chancery: Chancery,
) {
    let mut changes = keys.changes.subscribe();
    let mut other_callers = callers.changes();
    let stopping = chancery.shutdown_token();
    let mut shown = names(&keys.ring(), chancery.now());
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            changed = other_callers.changed() => {
                if changed.is_err() {
                    return;
                }
                shown.clear();
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = stopping.cancelled() => return,
        }
        let ring = keys.ring();
        let now = names(&ring, chancery.now());
        if now != shown {
            signers.take_keys(&ring);
            if let Some(recorder) = &recorder {
                recorder.take_keys(&ring, chancery.now());
            }
            match doors_handle.publish(&ring) {
                Ok(()) => shown = now,
                Err(error) => tracing::error!(%error, "cannot sign the cards again; the node serves the old ones"),
            }
        }
    }
}

/// The keys that are published, and whether they sign yet.
fn names(ring: &KeyRing, now: Timestamp) -> Vec<(Arc<str>, bool)> {
    ring.published(now).map(|key| (Arc::clone(&key.kid), key.used_from <= now)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn registry(home: &std::path::Path) -> KeyRegistry {
        let registry = KeyRegistry::open(Some(Arc::new(DataFolder::claim(home).unwrap()))).unwrap();
        registry.ensure_keys(&[("echo".to_owned(), None)], &KeysConfig::default(), at(0)).unwrap();
        registry
    }

    fn kids(registry: &KeyRegistry) -> Vec<String> {
        registry.ring().records().iter().map(|record| record.kid.to_string()).collect()
    }

    #[test]
    fn keys_are_made_once_and_kept_for_the_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let first = kids(&registry(home.path()));
        assert_eq!(first.len(), 5, "two for the agent's cards, one for each other use");
        assert_eq!(kids(&registry(home.path())), first);
        let mode = std::fs::metadata(home.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_rotation_outlives_the_process_and_the_old_key_goes_when_its_time_is_over() {
        let home = tempfile::tempdir().unwrap();
        let registry = registry(home.path());
        let made = registry.rotate(KeyUse::Push, None, KeyRegistry::LEAD, KeyRegistry::OVERLAP, at(10)).unwrap();
        drop(registry);
        let again = KeyRegistry::open(Some(Arc::new(DataFolder::claim(home.path()).unwrap()))).unwrap();
        assert!(kids(&again).contains(&made[0].kid.to_string()));
        assert_eq!(again.ring().published(at(10)).filter(|key| key.key_use == KeyUse::Push).count(), 2);
        let over = at(10) + (KeyRegistry::LEAD + KeyRegistry::OVERLAP);
        again.ensure_keys(&[("echo".to_owned(), None)], &KeysConfig::default(), over).unwrap();
        assert_eq!(again.ring().records().iter().filter(|key| key.key_use == KeyUse::Push).count(), 1);
    }

    #[test]
    fn a_damaged_file_is_refused_and_stays() {
        let home = tempfile::tempdir().unwrap();
        drop(registry(home.path()));
        std::fs::write(home.path().join(FILE), "{").unwrap();
        let refused = KeyRegistry::open(Some(Arc::new(DataFolder::claim(home.path()).unwrap())));
        assert!(matches!(refused, Err(KeyRegistryError::Ring(_))));
        assert_eq!(std::fs::read_to_string(home.path().join(FILE)).unwrap(), "{");
    }
}
