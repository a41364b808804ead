//! One key of the ring and its times, and the JSON in which it is kept.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chancery_protocol::Timestamp;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

use super::material::Material;
use super::ring::RingFault;
use super::{Algorithm, KeyFault, KeyUse, PublicKey};

/// A key in the ring. Its private half is reached only through [`super::KeyRing::signing`].
#[derive(Clone, Debug)]
pub struct KeyRecord {
    /// The use of the key.
    pub key_use: KeyUse,
    /// The agent whose key it is; none for keys of the node.
    pub owner: Option<Arc<str>>,
    /// The id of the key.
    pub kid: Arc<str>,
    /// The public key.
    pub public: PublicKey,
    /// The time when the key was made.
    pub made_at: Timestamp,
    /// It is published from the start and signs from here on, so that others know it by then.
    pub used_from: Timestamp,
    /// From here on it is neither used nor published.
    pub retires_at: Option<Timestamp>,
    /// Came from a file or the environment: used before any other, and never written out.
    pub given: bool,
    pub(super) material: Arc<Material>,
}

impl KeyRecord {
    pub(super) fn new(
        key_use: KeyUse,
        owner: Option<&str>,
        material: Arc<Material>,
        made_at: Timestamp,
    ) -> Result<Self, KeyFault> {
        let public = material.public()?;
        Ok(Self {
            key_use,
            owner: owner.map(Into::into),
            kid: public.kid().into(),
            public,
            made_at,
            used_from: made_at,
            retires_at: None,
            given: false,
            material,
        })
    }

    /// Returns the algorithm of the key.
    pub fn algorithm(&self) -> Algorithm {
        self.public.algorithm()
    }

    pub(super) fn retired(&self, now: Timestamp) -> bool {
        self.retires_at.is_some_and(|end| end <= now)
    }

    pub(super) fn usable(&self, now: Timestamp) -> bool {
        self.used_from <= now && !self.retired(now)
    }
}

/// How a record is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyJson {
    #[serde(rename = "use")]
    key_use: KeyUse,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    algorithm: Algorithm,
    kid: String,
    made_at: Timestamp,
    used_from: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retires_at: Option<Timestamp>,
    pkcs8: String,
}

impl KeyJson {
    pub(super) fn of(record: &KeyRecord) -> Result<Self, KeyFault> {
        Ok(Self {
            key_use: record.key_use,
            owner: record.owner.as_deref().map(str::to_owned),
            algorithm: record.algorithm(),
            kid: record.kid.to_string(),
            made_at: record.made_at,
            used_from: record.used_from,
            retires_at: record.retires_at,
            pkcs8: STANDARD.encode(record.material.to_pkcs8()?.expose_secret()),
        })
    }

    pub(super) fn read(self) -> Result<KeyRecord, RingFault> {
        let damaged = || RingFault::Damaged(self.kid.clone());
        let der = STANDARD.decode(&self.pkcs8).map_err(|_| damaged())?;
        let material = Arc::new(Material::from_pkcs8(&der).map_err(|_| damaged())?);
        let mut record = KeyRecord::new(self.key_use, self.owner.as_deref(), material, self.made_at)?;
        if *record.kid != *self.kid || record.algorithm() != self.algorithm {
            return Err(damaged());
        }
        record.used_from = self.used_from;
        record.retires_at = self.retires_at;
        Ok(record)
    }
}
