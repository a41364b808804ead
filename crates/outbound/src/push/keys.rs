//! What notifications are signed with: the node's keys, each from its own time on, and the secrets that origins share with us.

use std::collections::HashMap;

use arc_swap::ArcSwap;
use chancery_identity::keys::Push;
use chancery_identity::webhook::{HmacSecret, SecretFault, SecretSet};
use chancery_identity::{Algorithm, KeyRing, KeyUse, SigningKey};
use chancery_protocol::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};

/// The node's own keys. Cheap to read, so that each attempt is signed with the key of its own time.
#[derive(Debug, Default)]
pub(super) struct OwnKeys(ArcSwap<Vec<(Timestamp, SigningKey<Push>)>>);

impl OwnKeys {
    pub(super) fn take(&self, ring: &KeyRing) {
        let times = ring.records().iter().filter(|record| record.key_use == KeyUse::Push).map(|record| record.used_from);
        let mut keys: Vec<_> =
            times.filter_map(|from| Some((from, ring.signing::<Push>(None, Algorithm::EdDsa, from)?))).collect();
        keys.sort_by_key(|(from, _)| *from);
        self.0.store(keys.into());
    }

    pub(super) fn at(&self, now: Timestamp) -> Option<SigningKey<Push>> {
        self.0.load().iter().rev().find(|(from, _)| *from <= now).map(|(_, key)| key.clone())
    }
}

/// A secret as it is signed with, and as text, which is the key of some.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) secret: HmacSecret,
    pub(super) text: SecretString,
}

impl Shared {
    pub(super) fn parse(text: &str) -> Result<Self, SecretFault> {
        Ok(Self { secret: HmacSecret::parse(text)?, text: text.into() })
    }
}

/// By origin, the newest first: those that can change while the node runs, and those it was started with.
#[derive(Debug, Default)]
pub struct OriginSecrets {
    agreed: ArcSwap<HashMap<String, SecretSet>>,
    configured: HashMap<String, Vec<Shared>>,
}

impl OriginSecrets {
    pub fn add(&mut self, origin: &str, secret: &SecretString) -> Result<(), SecretFault> {
        let shared = Shared::parse(secret.expose_secret())?;
        self.configured.entry(origin.to_owned()).or_default().push(shared);
        Ok(())
    }

    /// What operators agreed with origins, in place of what they did before.
    pub fn agree(&self, agreed: HashMap<String, SecretSet>) {
        self.agreed.store(agreed.into());
    }

    pub(super) fn of(&self, origin: &str, now: Timestamp) -> Vec<Shared> {
        let agreed = self.agreed.load();
        let shared = |secret: &HmacSecret| Shared { secret: secret.clone(), text: secret.to_text() };
        let agreed = agreed.get(origin).into_iter().flat_map(|set| set.signing(now)).map(shared);
        agreed.chain(self.configured.get(origin).into_iter().flatten().cloned()).collect()
    }
}
