//! All signing keys of a node: made when missing, published before they sign and for a while after.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::domain::Domain;
use super::material::Material;
use super::record::{KeyJson, KeyRecord};
use super::{Algorithm, KeyFault, KeyUse, SigningKey};

/// How many keys beside the one in use may wait for their end, for each use, owner and algorithm.
pub const MAX_OLD_KEYS: usize = 10;
const FORMAT_VERSION: u32 = 1;

/// Why a key ring cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum RingFault {
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// The text is not a key ring.
    #[error("the key ring cannot be read: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// The ring has a format that this program does not read.
    #[error("the key ring has format {0}, we read format {FORMAT_VERSION}")]
    OtherFormat(u32),
    /// A key in the ring is damaged.
    #[error("the key {0} in the ring is damaged")]
    Damaged(String),
    /// The key is in the ring already.
    #[error("the key {0} is in the ring already; a key has one use and one owner")]
    Twice(String),
    /// There is no such key to rotate.
    #[error("there is no such key to rotate")]
    NoKey,
    /// The key is given from outside and has to be replaced there.
    #[error("the key is given from outside and has to be replaced there")]
    Given,
    /// Too many old keys are still published.
    #[error("{MAX_OLD_KEYS} old keys are still published; wait until some retire")]
    TooManyOldKeys,
}

/// The keys of a node, with old ones that are still published.
#[derive(Clone, Debug, Default)]
pub struct KeyRing {
    records: Vec<KeyRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    keys: Vec<KeyJson>,
}

impl KeyRing {
    /// Reads a key ring.
    pub fn from_json(text: &str) -> Result<Self, RingFault> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }

        let Version { version } = serde_json::from_str(text).map_err(RingFault::Unreadable)?;
        if version != FORMAT_VERSION {
            return Err(RingFault::OtherFormat(version));
        }
        let file: File = serde_json::from_str(text).map_err(RingFault::Unreadable)?;
        let mut ring = Self::default();
        for written in file.keys {
            ring.add(written.read()?)?;
        }
        Ok(ring)
    }

    /// Everything but given keys, private halves included.
    pub fn to_json(&self) -> Result<SecretString, RingFault> {
        let keys = self.records.iter().filter(|record| !record.given).map(KeyJson::of).collect::<Result<_, _>>()?;
        let text = serde_json::to_string_pretty(&File { version: FORMAT_VERSION, keys }).map_err(RingFault::Unreadable)?;
        Ok(text.into())
    }

    /// Every record, in any state.
    pub fn records(&self) -> &[KeyRecord] {
        &self.records
    }

    /// Makes the key if none can sign for this use now. Tells whether it did.
    pub fn ensure(
        &mut self,
        key_use: KeyUse,
        owner: Option<&str>,
        algorithm: Algorithm,
        now: Timestamp,
    ) -> Result<bool, RingFault> {
        if self.in_use(key_use, owner, algorithm, now).is_some() {
            return Ok(false);
        }
        self.add(KeyRecord::new(key_use, owner, Arc::new(Material::generate(algorithm)?), now)?)?;
        Ok(true)
    }

    /// Puts a key from a file or the environment before those of the ring.
    pub fn give<D: Domain>(&mut self, key: &SigningKey<D>, owner: Option<&str>, now: Timestamp) -> Result<(), RingFault> {
        let mut record = KeyRecord::new(D::USE, owner, key.material.clone(), now)?;
        record.given = true;
        self.add(record)
    }

    /// The key that signs now.
    pub fn signing<D: Domain>(&self, owner: Option<&str>, algorithm: Algorithm, now: Timestamp) -> Option<SigningKey<D>> {
        let record = self.in_use(D::USE, owner, algorithm, now)?;
        SigningKey::of(record.material.clone()).ok()
    }

    /// The key of that name, whether or not it signs now.
    pub(crate) fn signing_by_kid<D: Domain>(&self, kid: &str) -> Option<SigningKey<D>> {
        let record = self.records.iter().find(|record| record.key_use == D::USE && *record.kid == *kid)?;
        SigningKey::of(record.material.clone()).ok()
    }

    /// Every key that has not retired: also those that do not sign yet, and those that no longer do.
    pub fn published(&self, now: Timestamp) -> impl Iterator<Item = &KeyRecord> {
        self.records.iter().filter(move |record| !record.retired(now))
    }

    /// A new key for each algorithm of this use and owner. It is published at once and signs after `lead`; the old ones stay
    /// published for `overlap` from then on. All of them change, or none does.
    pub fn rotate(
        &mut self,
        key_use: KeyUse,
        owner: Option<&str>,
        lead: Duration,
        overlap: Duration,
        now: Timestamp,
    ) -> Result<Vec<KeyRecord>, RingFault> {
        let here = |record: &KeyRecord| record.key_use == key_use && record.owner.as_deref() == owner && !record.retired(now);
        let mut made = Vec::new();
        for algorithm in [Algorithm::EdDsa, Algorithm::Es256] {
            let held: Vec<_> = self.records.iter().filter(|one| here(one) && one.algorithm() == algorithm).collect();
            if held.iter().any(|record| record.given) {
                return Err(RingFault::Given);
            }
            if held.len() > MAX_OLD_KEYS {
                return Err(RingFault::TooManyOldKeys);
            }
            if !held.is_empty() {
                let mut record = KeyRecord::new(key_use, owner, Arc::new(Material::generate(algorithm)?), now)?;
                record.used_from = after(now, lead);
                made.push(record);
            }
        }
        if made.is_empty() {
            return Err(RingFault::NoKey);
        }
        let end = after(after(now, lead), overlap);
        for record in self.records.iter_mut().filter(|record| here(record)) {
            // An earlier end stays: rotating again lengthens no life.
            record.retires_at = Some(record.retires_at.map_or(end, |earlier| earlier.min(end)));
        }
        for record in &made {
            self.add(record.clone())?;
        }
        Ok(made)
    }

    /// Forgets retired keys. Tells how many.
    pub fn prune(&mut self, now: Timestamp) -> usize {
        let before = self.records.len();
        self.records.retain(|record| !record.retired(now));
        before - self.records.len()
    }

    fn in_use(&self, key_use: KeyUse, owner: Option<&str>, algorithm: Algorithm, now: Timestamp) -> Option<&KeyRecord> {
        let fits = |record: &&KeyRecord| {
            record.key_use == key_use && record.owner.as_deref() == owner && record.algorithm() == algorithm && record.usable(now)
        };
        self.records.iter().filter(fits).max_by_key(|record| (record.given, record.used_from, record.made_at))
    }

    fn add(&mut self, record: KeyRecord) -> Result<(), RingFault> {
        if self.records.iter().any(|held| held.kid == record.kid) {
            return Err(RingFault::Twice(record.kid.to_string()));
        }
        self.records.push(record);
        Ok(())
    }
}

fn after(time: Timestamp, duration: Duration) -> Timestamp {
    let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(time.micros().saturating_add(micros))
}
