//! All callers a node knows, found by what they present.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use chancery_protocol::{AgentId, Caller, CallerStanding, IdentityProof, Timestamp};

use super::certificate::CertificateFacts;
use super::{CallerRecord, CertificateName, CredentialRefusal, KeyHash, RefusalKind};

/// An identified caller. Made once for each record and kind of proof; a clone counts references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub caller: Caller,
    pub standing: Arc<CallerStanding>,
}

/// A fault of the credentials of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerFault {
    /// The caller or issuer under its configured name, so that the operator finds it.
    pub name: String,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for CallerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.name, self.reason)
    }
}

impl std::error::Error for CallerFault {}

/// Never changed, only replaced by another: every reader sees one consistent state.
#[derive(Debug, Default)]
pub struct Callers {
    records: Vec<CallerRecord>,
    keys: HashMap<KeyHash, (Known, Option<Timestamp>)>,
    certificates: HashMap<CertificateName, Known>,
    agent_ids: HashMap<AgentId, Known>,
    /// By the name of the issuer, then by subject.
    tokens: HashMap<String, HashMap<String, Known>>,
}

impl Callers {
    /// All faults at once.
    pub fn new(records: Vec<CallerRecord>) -> Result<Self, Vec<CallerFault>> {
        let mut callers = Self::default();
        let mut faults = Vec::new();
        let mut names = HashSet::new();
        for record in &records {
            let mut found = record.faults();
            if !names.insert(record.name.as_str()) {
                found.push("two callers have this name".to_owned());
            }
            callers.add(record, &mut found);
            faults.extend(found.into_iter().map(|reason| CallerFault { name: record.name.clone(), reason }));
        }
        if faults.is_empty() { Ok(Self { records, ..callers }) } else { Err(faults) }
    }

    pub fn records(&self) -> &[CallerRecord] {
        &self.records
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn any_has_a_key(&self) -> bool {
        !self.keys.is_empty()
    }

    fn add(&mut self, record: &CallerRecord, faults: &mut Vec<String>) {
        let caller = Caller::new(record.tenant.as_str(), record.name.as_str());
        let known = |proof, agent_id| {
            let (agent, may_call) = (record.agent.clone(), record.may_call.clone());
            let standing = CallerStanding { proof, agent_id, agent, may_call, unlisted: false };
            Known { caller: caller.clone(), standing: Arc::new(standing) }
        };
        let by_key = known(IdentityProof::ApiKey, None);
        for key in &record.keys {
            add_once(&mut self.keys, key.hash, (by_key.clone(), key.expires_at), faults, |hash| format!("key {hash}"));
        }
        let by_certificate = known(IdentityProof::Certificate, None);
        for name in &record.certificates {
            add_once(&mut self.certificates, name.clone(), by_certificate.clone(), faults, |name| format!("certificate {name}"));
        }
        for id in &record.agent_ids {
            let known = known(IdentityProof::Signature, Some(id.clone()));
            add_once(&mut self.agent_ids, id.clone(), known, faults, |id| format!("agent id {id}"));
        }
        let by_token = known(IdentityProof::Token, None);
        for token in &record.tokens {
            let subjects = self.tokens.entry(token.issuer.clone()).or_default();
            let shown = |subject: &String| format!("token subject {subject:?} of {}", token.issuer);
            add_once(subjects, token.subject.clone(), by_token.clone(), faults, shown);
        }
    }

    pub fn by_key(&self, key: &str, now: Timestamp) -> Result<Known, CredentialRefusal> {
        self.by_key_hash(&KeyHash::of(key), now)
    }

    pub fn by_key_hash(&self, hash: &KeyHash, now: Timestamp) -> Result<Known, CredentialRefusal> {
        match self.keys.get(hash) {
            None => Err(CredentialRefusal::new(RefusalKind::Unknown, "no caller has this key")),
            Some((_, Some(end))) if now >= *end => Err(CredentialRefusal::new(RefusalKind::Expired, "the key has expired")),
            Some((known, _)) => Ok(known.clone()),
        }
    }

    pub fn by_certificate(&self, der: &[u8], now: Timestamp) -> Result<Known, CredentialRefusal> {
        self.by_certificate_facts(&CertificateFacts::read(der)?, now)
    }

    /// A certificate whose names belong to two callers is neither's.
    pub(super) fn by_certificate_facts(
        &self,
        certificate: &CertificateFacts,
        now: Timestamp,
    ) -> Result<Known, CredentialRefusal> {
        certificate.check_time(now)?;
        let mut found = certificate.names.iter().filter_map(|name| self.certificates.get(name));
        let Some(known) = found.next() else {
            return Err(CredentialRefusal::new(RefusalKind::Unknown, "no caller has a name of this certificate"));
        };
        if found.any(|other| other.caller != known.caller) {
            return Err(CredentialRefusal::new(RefusalKind::Conflict, "the names of this certificate belong to several callers"));
        }
        Ok(known.clone())
    }

    pub fn by_agent_id(&self, agent_id: &AgentId) -> Option<Known> {
        self.agent_ids.get(agent_id).cloned()
    }

    /// The issuer by its name in configuration.
    pub fn by_token(&self, issuer: &str, subject: &str) -> Option<Known> {
        self.tokens.get(issuer)?.get(subject).cloned()
    }
}

fn add_once<K: Eq + Hash, V>(to: &mut HashMap<K, V>, key: K, value: V, faults: &mut Vec<String>, shown: impl Fn(&K) -> String) {
    match to.entry(key) {
        Entry::Occupied(there) => faults.push(format!("{} is there twice", shown(there.key()))),
        Entry::Vacant(place) => {
            place.insert(value);
        }
    }
}
