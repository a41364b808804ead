//! The `[callers.NAME]` sections: who may call, and how they prove it.

use chancery_identity::credentials::{ApiKey, ApiKeyRecord, CallerRecord, Callers, CertificateName, KeyHash, TokenSubject};
use chancery_protocol::{AgentId, AgentName, MayCall, Timestamp};
use serde::Deserialize;

use super::effect::{TakesEffect, declare_keys, effect_of};
use super::one_or_more::{Granted, OneOrMore};
use super::section::Section;

/// A caller in the file. The file has no key: the environment has it, or the file has only its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerConfig {
    /// The caller with its grants and hashes.
    pub record: CallerRecord,
    /// The environment variable with the caller's key.
    pub key_env: Option<String>,
}

impl CallerConfig {
    /// The record with the key that the environment has.
    pub(crate) fn with_key(&self, variable: impl Fn(&str) -> Option<String>) -> Result<CallerRecord, String> {
        let mut record = self.record.clone();
        let Some(name) = &self.key_env else { return Ok(record) };
        let key = variable(name).ok_or_else(|| format!("callers.{}: the environment variable {name} is not set", record.name))?;
        let hash = ApiKey::given(&key).map_err(|fault| format!("callers.{}: the key in {name}: {fault}", record.name))?;
        record.keys.push(ApiKeyRecord { hash, made_at: Timestamp::default(), expires_at: None });
        Ok(record)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    key_env: Option<String>,
    key_hash: OneOrMore<KeyHash>,
    tenant: Option<String>,
    agent: Option<AgentName>,
    may_call: Option<Vec<Granted>>,
    certificate: OneOrMore<CertificateName>,
    agent_id: OneOrMore<AgentId>,
    token: OneOrMore<TokenSubject>,
}

declare_keys!(Fields {
    key_env: Live,
    key_hash: Live,
    tenant: Live,
    agent: Live,
    may_call: Live,
    certificate: Live,
    agent_id: Live,
    token: Live,
});

/// When a change of a key of a caller's section takes effect.
pub(super) fn effect(key: &str) -> TakesEffect {
    effect_of::<Fields>(key)
}

/// The keys a caller's section can have.
#[cfg(test)]
pub(super) fn keys() -> &'static [&'static str] {
    super::fields::field_names::<Fields>()
}

pub(super) fn read_all(callers: &mut Section<'_, '_>) -> Vec<CallerConfig> {
    let mut read = Vec::new();
    callers.each(|name, section| {
        let fields: Fields = section.fields();
        let mut record = CallerRecord::new(name);
        if let Some(tenant) = fields.tenant {
            record.tenant = tenant;
        }
        record.agent = fields.agent;
        if let Some(grants) = fields.may_call {
            record.may_call = MayCall::Only(grants.into_iter().map(|granted| granted.0).collect());
        }
        let never = |hash| ApiKeyRecord { hash, made_at: Timestamp::default(), expires_at: None };
        record.keys = fields.key_hash.0.into_iter().map(never).collect();
        record.certificates = fields.certificate.0;
        record.agent_ids = fields.agent_id.0;
        record.tokens = fields.token.0;
        let proves = fields.key_env.is_some()
            || !(record.keys.is_empty()
                && record.certificates.is_empty()
                && record.agent_ids.is_empty()
                && record.tokens.is_empty());
        if !proves && section.is_sound() {
            section.complain("needs a credential: key_env, key_hash, certificate, agent_id or token".to_owned());
        }
        read.push(CallerConfig { record, key_env: fields.key_env });
    });
    let records = read.iter().map(|caller| caller.record.clone()).collect();
    if callers.is_sound()
        && let Err(faults) = Callers::new(records)
    {
        for fault in faults {
            callers.complain(fault.to_string());
        }
    }
    read
}
