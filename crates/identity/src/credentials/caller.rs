//! One caller as it is configured or added: its name, its credentials, and what it may call.

use std::time::Duration;

use chancery_protocol::{AgentId, AgentName, CallGrant, MayCall, Timestamp};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::{ApiKey, CertificateName, KeyHash};
use crate::KeyError;

/// The same in the file of callers that were added and, field by field, in configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallerRecord {
    /// May be left out where the record stands under its name.
    #[serde(default)]
    pub name: String,
    /// The tenant of the caller.
    #[serde(default = "default_tenant")]
    pub tenant: String,
    /// The agent of this node that this caller is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// `AGENT` or `AGENT/SKILL`; left out, everything.
    #[serde(default, with = "grants", skip_serializing_if = "grants::are_everything")]
    pub may_call: MayCall,
    /// The API keys of the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ApiKeyRecord>,
    /// The client certificates of the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<CertificateName>,
    /// The ids of agents whose signed requests are the caller's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_ids: Vec<AgentId>,
    /// The subjects of tokens that are the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenSubject>,
}

/// An API key of a caller, stored as its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKeyRecord {
    /// The hash of the key.
    pub hash: KeyHash,
    /// The time when the key was made.
    #[serde(default)]
    pub made_at: Timestamp,
    /// The time when the key expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// Whom a token is about: the issuer by the name it has in configuration, and the subject it gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSubject {
    /// The name of the issuer.
    pub issuer: String,
    /// The `sub` claim of the token.
    pub subject: String,
}

/// Why a caller cannot get a new key.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The caller has too many keys that have not expired.
    #[error("caller {0} has {most} keys that have not expired, and cannot have more", most = CallerRecord::MOST_KEYS)]
    TooManyKeys(String),
    /// The key cannot be made.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl CallerRecord {
    /// The largest number of keys that have not expired.
    pub const MOST_KEYS: usize = 10;
    /// How long an old key still works after a rotation, by default.
    pub const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

    /// Makes a caller without credentials.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tenant: default_tenant(),
            agent: None,
            may_call: MayCall::Everything,
            keys: Vec::new(),
            certificates: Vec::new(),
            agent_ids: Vec::new(),
            tokens: Vec::new(),
        }
    }

    /// Gives the caller one more key; the ones it has end after `overlap`, or when they would have anyway.
    pub fn rotate(&mut self, now: Timestamp, overlap: Duration) -> Result<SecretString, RotateError> {
        self.keys.retain(|key| key.expires_at.is_none_or(|end| now < end));
        if self.keys.len() >= Self::MOST_KEYS {
            return Err(RotateError::TooManyKeys(self.name.clone()));
        }
        let key = ApiKey::generate()?;
        let end = now.micros().saturating_add(i64::try_from(overlap.as_micros()).unwrap_or(i64::MAX));
        let end = Timestamp::from_micros(end);
        for old in &mut self.keys {
            old.expires_at = Some(old.expires_at.map_or(end, |earlier| earlier.min(end)));
        }
        self.keys.push(ApiKeyRecord { hash: KeyHash::of(key.expose_secret()), made_at: now, expires_at: None });
        Ok(key)
    }

    /// Removes every credential at once. The caller keeps its name, so that no other caller gets its tasks.
    pub fn revoke(&mut self) {
        self.keys.clear();
        self.certificates.clear();
        self.agent_ids.clear();
        self.tokens.clear();
    }

    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Err(fault) = checked_name(&self.name) {
            faults.push(format!("name: {fault}"));
        } else if self.name.parse::<AgentId>().is_ok() {
            faults.push("name: is an agent id; only the agent with that key has this name".to_owned());
        }
        if let Err(fault) = checked_name(&self.tenant) {
            faults.push(format!("tenant: {fault}"));
        }
        if self.agent.as_deref().is_some_and(str::is_empty) {
            faults.push("agent: must not be empty".to_owned());
        }
        if self.keys.len() > Self::MOST_KEYS {
            faults.push(format!("keys: {} are more than {}", self.keys.len(), Self::MOST_KEYS));
        }
        if self.tokens.iter().any(|token| token.subject.is_empty() || token.issuer.is_empty()) {
            faults.push("tokens: issuer and subject must not be empty".to_owned());
        }
        faults
    }
}

/// Names of callers, tenants and issuers: 1 to 64 of `a-z 0-9 - _ .`.
pub(super) fn checked_name(name: &str) -> Result<(), &'static str> {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    if (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        Ok(())
    } else {
        Err("must be 1 to 64 of a-z, 0-9, '-', '_' and '.'")
    }
}

pub(super) const DEFAULT_TENANT: &str = "default";

fn default_tenant() -> String {
    DEFAULT_TENANT.to_owned()
}

/// What a caller may call, as a list of texts.
pub(super) mod grants {
    use serde::de::{self, Deserializer};
    use serde::ser::{SerializeSeq as _, Serializer};

    use super::{CallGrant, Deserialize, MayCall};

    pub(in super::super) fn are_everything(may_call: &MayCall) -> bool {
        matches!(may_call, MayCall::Everything)
    }

    pub(in super::super) fn serialize<S: Serializer>(may_call: &MayCall, to: S) -> Result<S::Ok, S::Error> {
        let MayCall::Only(grants) = may_call else { return to.serialize_none() };
        let mut list = to.serialize_seq(Some(grants.len()))?;
        for grant in grants {
            list.serialize_element(&grant.to_string())?;
        }
        list.end()
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MayCall, D::Error> {
        let Some(texts) = Option::<Vec<String>>::deserialize(from)? else { return Ok(MayCall::Everything) };
        let grant = |text: &String| text.parse::<CallGrant>().map_err(|fault| de::Error::custom(format!("{text:?} {fault}")));
        texts.iter().map(grant).collect::<Result<_, _>>().map(MayCall::Only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_record_reads_back_as_it_was_written_and_unknown_fields_are_refused() {
        let full = r#"{"name":"ci","tenant":"acme","agent":"runner","may_call":["echo","math/add"],
            "keys":[{"hash":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","expires_at":"2027-01-01T00:00:00Z"}],
            "certificates":["spiffe://acme/ci","dns:CI.acme.example"],"tokens":[{"issuer":"corp","subject":"ci@acme"}]}"#;
        let record: CallerRecord = serde_json::from_str(full).unwrap();
        let MayCall::Only(grants) = &record.may_call else { panic!("a list") };
        assert_eq!(grants.len(), 2);
        let written = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<CallerRecord>(&written).unwrap(), record);

        let least: CallerRecord = serde_json::from_str(r#"{"name":"ci"}"#).unwrap();
        assert_eq!(least, CallerRecord::new("ci"));
        assert_eq!(serde_json::to_string(&least).unwrap(), r#"{"name":"ci","tenant":"default"}"#);
        assert!(serde_json::from_str::<CallerRecord>(r#"{"name":"ci","secret":"x"}"#).is_err());
        assert!(serde_json::from_str::<CallerRecord>(r#"{"name":"ci","may_call":["/x"]}"#).is_err());
    }

    #[test]
    fn a_rotation_ends_the_old_keys_after_the_overlap_and_never_later_than_they_would_have() {
        let mut record = CallerRecord::new("ci");
        record.rotate(at(0), CallerRecord::OVERLAP).unwrap();
        assert_eq!(record.keys[0].expires_at, None);
        record.rotate(at(100), Duration::from_secs(50)).unwrap();
        assert_eq!(record.keys[0].expires_at, Some(at(150)));
        record.rotate(at(110), Duration::from_secs(500)).unwrap();
        assert_eq!(record.keys[0].expires_at, Some(at(150)));
        assert_eq!(record.keys[1].expires_at, Some(at(610)));
        // What has expired makes room.
        record.rotate(at(150), Duration::ZERO).unwrap();
        assert_eq!(record.keys.iter().map(|key| key.made_at).collect::<Vec<_>>(), [at(100), at(110), at(150)]);
    }

    #[test]
    fn a_caller_has_at_most_ten_keys_and_none_after_it_is_revoked() {
        let mut record = CallerRecord::new("ci");
        for _ in 0..CallerRecord::MOST_KEYS {
            record.rotate(at(0), CallerRecord::OVERLAP).unwrap();
        }
        assert!(matches!(record.rotate(at(1), CallerRecord::OVERLAP), Err(RotateError::TooManyKeys(_))));
        record.revoke();
        assert_eq!(record, CallerRecord::new("ci"));
    }
}
