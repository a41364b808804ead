//! How secrets and keys change without a notification that cannot be verified.

use std::time::Duration;

use chancery_protocol::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::secret::{HmacSecret, SecretFault};
use crate::keys::{KeyRecord, KeyRing, KeyUse, RingFault};

/// So many secrets before the one in use may still sign.
pub const MOST_OLD_SECRETS: usize = 10;
pub const DEFAULT_GRACE: Duration = Duration::from_secs(24 * 60 * 60);
pub const LONGEST_GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long receivers may keep the published keys without asking again.
pub const JWKS_MAX_AGE: Duration = Duration::from_secs(300);
/// A new key is published for so long before it signs: by then every receiver has fetched the keys again.
pub const PUBLISHED_BEFORE_USE: Duration = Duration::from_secs(2 * 300);
/// And the old one after it signed last: what it signed may still be on its way.
pub const KEPT_AFTER_USE: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RotationFault {
    #[error("an old secret signs for at most seven days")]
    GraceTooLong,
    #[error("{MOST_OLD_SECRETS} old secrets still sign; wait until one of them expires")]
    TooManyOldSecrets,
    #[error("the new secret is the current secret, or an old one that still signs")]
    Same,
    #[error("the secrets cannot be read")]
    Unreadable,
    #[error(transparent)]
    Secret(#[from] SecretFault),
}

/// The secrets of one receiver: the one in use, and those before it while their grace lasts. All of them sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSet {
    current: HmacSecret,
    /// Newest first, each with its end.
    old: Vec<(HmacSecret, Timestamp)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RotationJson {
    current: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    old: Vec<(String, Timestamp)>,
}

impl SecretSet {
    pub fn new(current: HmacSecret) -> Self {
        Self { current, old: Vec::new() }
    }

    pub fn current(&self) -> &HmacSecret {
        &self.current
    }

    /// From now on the new secret signs; the one before it goes on doing so for the grace, so that its receiver can change over.
    pub fn rotate(&mut self, new: HmacSecret, grace: Duration, now: Timestamp) -> Result<(), RotationFault> {
        if grace > LONGEST_GRACE {
            return Err(RotationFault::GraceTooLong);
        }
        self.prune(now);
        if self.signing(now).any(|held| *held == new) {
            return Err(RotationFault::Same);
        }
        if !grace.is_zero() && self.old.len() >= MOST_OLD_SECRETS {
            return Err(RotationFault::TooManyOldSecrets);
        }
        let before = std::mem::replace(&mut self.current, new);
        if !grace.is_zero() {
            self.old.insert(0, (before, now + grace));
        }
        Ok(())
    }

    /// All that sign now, the one in use first.
    pub fn signing(&self, now: Timestamp) -> impl Iterator<Item = &HmacSecret> {
        let old = self.old.iter().filter(move |(_, end)| *end > now).map(|(secret, _)| secret);
        std::iter::once(&self.current).chain(old)
    }

    /// Forgets keys whose grace period is over. Returns how many.
    pub fn prune(&mut self, now: Timestamp) -> usize {
        let before = self.old.len();
        self.old.retain(|(_, end)| *end > now);
        before - self.old.len()
    }

    /// For the vault.
    pub fn to_json(&self) -> Result<SecretString, RotationFault> {
        let text = |secret: &HmacSecret| secret.to_text().expose_secret().to_owned();
        let old = self.old.iter().map(|(secret, end)| (text(secret), *end)).collect();
        let written = serde_json::to_string(&RotationJson { current: text(&self.current), old });
        Ok(written.map_err(|_| RotationFault::Unreadable)?.into())
    }

    pub fn from_json(text: &str) -> Result<Self, RotationFault> {
        let written: RotationJson = serde_json::from_str(text).map_err(|_| RotationFault::Unreadable)?;
        let old = written.old.iter().map(|(secret, end)| Ok((HmacSecret::parse(secret)?, *end)));
        Ok(Self { current: HmacSecret::parse(&written.current)?, old: old.collect::<Result<_, SecretFault>>()? })
    }
}

/// New keys for notifications, with the time in which receivers know both.
pub fn rotate_push_keys(ring: &mut KeyRing, now: Timestamp) -> Result<Vec<KeyRecord>, RingFault> {
    ring.rotate(KeyUse::Push, None, PUBLISHED_BEFORE_USE, KEPT_AFTER_USE, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(1_000_000_000) + Duration::from_secs(seconds)
    }

    fn secret() -> HmacSecret {
        HmacSecret::generate().unwrap()
    }

    #[test]
    fn the_secret_before_signs_too_until_its_grace_is_over() {
        let (first, second) = (secret(), secret());
        let mut set = SecretSet::new(first.clone());
        set.rotate(second.clone(), Duration::from_secs(10), at(0)).unwrap();
        assert_eq!(set.signing(at(9)).collect::<Vec<_>>(), [&second, &first]);
        assert_eq!(set.signing(at(10)).collect::<Vec<_>>(), [&second]);
        assert_eq!(set.rotate(first.clone(), DEFAULT_GRACE, at(9)), Err(RotationFault::Same));
        assert_eq!(set.prune(at(10)), 1);
        set.rotate(first, Duration::ZERO, at(11)).unwrap();
        assert_eq!(set.signing(at(11)).count(), 1, "no grace, no old secret");
    }

    #[test]
    fn ten_old_secrets_and_seven_days_are_the_most() {
        let mut set = SecretSet::new(secret());
        let longer = LONGEST_GRACE + Duration::from_micros(1);
        assert_eq!(set.rotate(secret(), longer, at(0)), Err(RotationFault::GraceTooLong));
        for number in 0..MOST_OLD_SECRETS {
            set.rotate(secret(), LONGEST_GRACE, at(number as u64)).unwrap();
        }
        let full = set.clone();
        assert_eq!(set.rotate(secret(), LONGEST_GRACE, at(20)), Err(RotationFault::TooManyOldSecrets));
        assert_eq!(set, full, "what is refused changes nothing");
        set.rotate(secret(), Duration::ZERO, at(20)).unwrap();
        assert_eq!(set.signing(at(20)).count(), 11);
        set.rotate(secret(), DEFAULT_GRACE, at(7 * 86_400)).unwrap();
        assert_eq!(SecretSet::from_json(set.to_json().unwrap().expose_secret()).unwrap(), set);
        assert!(!format!("{set:?}").contains("whsec_A"), "never printed");
        assert_eq!(SecretSet::from_json("{}"), Err(RotationFault::Unreadable));
    }
}
