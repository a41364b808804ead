//! The `[agents.NAME]` sections.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chancery_outbound::discovery::CardVerification;
use chancery_outbound::remote::{LineageSetting, StreamMode};
use chancery_protocol::{AgentId, AgentSkill, Version};
use serde::{Deserialize, Serialize};

use super::call_settings::{BindingSetting, CallSettings};
use super::effect::{CompareKeys as _, TakesEffect, declare_keys, effect_of};
use super::governance::PriceConfig;
use super::keys::KeySource;
use super::names::{HostName, TenantName};
use super::one_or_more::OneOrMore;
use super::section::Section;
use crate::agents::BuiltIn;

/// The longest name an agent can be mounted under.
const LONGEST_NAME: usize = 64;

/// One `[agents.NAME]` section.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    /// Who does the work.
    pub source: AgentSource,
    /// The name on the card, if not the agent's own.
    pub title: Option<String>,
    /// The description on the card, if not the agent's own.
    pub description: Option<String>,
    /// The agent's own key, if it is not one the node makes and keeps.
    pub key: Option<KeySource>,
    /// Skills that only callers who proved who they are get to see.
    pub extended_skills: Vec<ExtendedSkill>,
    /// Hosts that are this agent's.
    pub hosts: Vec<HostName>,
    /// Tenants that lead to this agent.
    pub tenants: Vec<TenantName>,
    /// What one call costs.
    pub price: PriceConfig,
    /// The agent has no configured name, so it gets the name on its card.
    pub unnamed: bool,
    /// Whether parts with media types that the card of a remote agent does not list are rejected here.
    pub enforce_input_modes: bool,
}

/// One skill of the extended card.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtendedSkill {
    /// The id that calls name.
    pub id: String,
    /// The name that people read.
    pub name: String,
    /// What the skill does.
    pub description: String,
    /// Words that callers search by.
    pub tags: Vec<String>,
}

/// Who does the work.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentSource {
    /// An agent that comes with the binary.
    BuiltIn(BuiltIn),
    /// A remote agent behind this node.
    Remote(Box<RemoteConfig>),
}

/// A remote agent: one, or several replicas of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// The URLs of the replicas.
    pub urls: Vec<String>,
    /// How the agent's card has to be signed.
    pub verify: CardVerification,
    /// Who it must be.
    pub agent_id: Option<AgentId>,
    /// Public keys its card may be signed with, as JWK or JWKS.
    pub card_keys: Option<PathBuf>,
    /// What this node sends to authenticate itself.
    pub credentials: RemoteCredentials,
    /// Whether a card that differs from the pinned one waits for an operator's approval.
    pub pin: bool,
    /// The local agent that does the work when no replica can be called.
    pub local: Option<BuiltIn>,
    /// How it is called, where its card is not to decide.
    pub calls: CallSettings,
}

impl RemoteConfig {
    /// By default, an agent that must prove its identity is pinned.
    fn pins(verify: CardVerification, agent_id: Option<&AgentId>) -> bool {
        verify == CardVerification::Require || agent_id.is_some()
    }
}

/// What this node shows to an agent it calls. The secrets are in the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteCredentials {
    /// The variable with a bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_env: Option<String>,
    /// The variable with an API key, sent as `X-API-Key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// A certificate in PEM, then those that lead to its root: shown to agents over `swps://`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The private key of `cert_file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
}

impl AgentConfig {
    /// The config of a built-in agent.
    pub fn of(run: BuiltIn) -> Self {
        Self::from(AgentSource::BuiltIn(run))
    }

    /// A remote agent, by its URL.
    pub fn at(url: impl Into<String>) -> Self {
        Self::from(AgentSource::Remote(Box::new(RemoteConfig {
            urls: vec![url.into()],
            verify: CardVerification::default(),
            agent_id: None,
            card_keys: None,
            credentials: RemoteCredentials::default(),
            pin: false,
            local: None,
            calls: CallSettings::default(),
        })))
    }

    /// The same for an agent without a configured name.
    pub fn unnamed_at(url: impl Into<String>) -> Self {
        Self { unnamed: true, ..Self::at(url) }
    }
}

impl From<AgentSource> for AgentConfig {
    fn from(source: AgentSource) -> Self {
        let (extended_skills, hosts, tenants) = (Vec::new(), Vec::new(), Vec::new());
        let price = PriceConfig::default();
        Self {
            source,
            title: None,
            description: None,
            key: None,
            extended_skills,
            hosts,
            tenants,
            price,
            unnamed: false,
            enforce_input_modes: false,
        }
    }
}

impl From<&ExtendedSkill> for AgentSkill {
    fn from(skill: &ExtendedSkill) -> Self {
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            tags: skill.tags.clone(),
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    run: Option<BuiltIn>,
    url: OneOrMore<String>,
    verify: Option<CardVerification>,
    agent_id: Option<AgentId>,
    card_keys: Option<PathBuf>,
    credentials: Option<RemoteCredentials>,
    pin: Option<bool>,
    title: Option<String>,
    description: Option<String>,
    key_file: Option<PathBuf>,
    key_env: Option<String>,
    extended_skills: Vec<ExtendedSkill>,
    hosts: OneOrMore<HostName>,
    tenants: OneOrMore<TenantName>,
    price: PriceConfig,
    enforce_input_modes: Option<bool>,
    card_file: Option<PathBuf>,
    address: Option<String>,
    binding: Option<BindingSetting>,
    version: Option<Version>,
    stream: StreamMode,
    lineage: LineageSetting,
    headers: BTreeMap<String, String>,
    headers_env: BTreeMap<String, String>,
    timeout_ms: Option<u64>,
    input_modes: Option<Vec<String>>,
    strict: bool,
}

// Keys of agents are made or read once: a card that is signed with another key is another agent's.
declare_keys!(Fields {
    run: Live,
    url: Live,
    verify: Live,
    agent_id: Live,
    card_keys: Live,
    credentials: Live,
    pin: Live,
    title: Live,
    description: Live,
    key_file: Restart,
    key_env: Restart,
    extended_skills: Live,
    hosts: Live,
    tenants: Live,
    price: Live,
    enforce_input_modes: Live,
    card_file: Live,
    address: Live,
    binding: Live,
    version: Live,
    stream: Live,
    headers: Live,
    headers_env: Live,
    timeout_ms: Live,
    input_modes: Live,
    strict: Live,
    lineage: Live,
});

/// When a change of a key of an agent's section takes effect.
pub(super) fn effect(key: &str) -> TakesEffect {
    effect_of::<Fields>(key)
}

/// The keys that say who does the work, where they differ.
pub(super) fn changed_in_source(before: &AgentSource, after: &AgentSource) -> Vec<&'static str> {
    let (before, after) = match (before, after) {
        (AgentSource::BuiltIn(before), AgentSource::BuiltIn(after)) if before == after => return Vec::new(),
        (AgentSource::BuiltIn(_), AgentSource::BuiltIn(_)) => return vec!["run"],
        (AgentSource::Remote(before), AgentSource::Remote(after)) => (before, after),
        _ => return vec!["run", "url"],
    };
    let RemoteConfig { urls, verify, agent_id, card_keys, credentials, pin, local, calls } = &**before;
    let differs = [
        ("url", *urls != after.urls),
        ("verify", *verify != after.verify),
        ("agent_id", *agent_id != after.agent_id),
        ("card_keys", *card_keys != after.card_keys),
        ("credentials", *credentials != after.credentials),
        ("pin", *pin != after.pin),
        ("run", *local != after.local),
    ];
    let mut changed: Vec<_> = differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect();
    changed.extend(calls.changed(&after.calls));
    changed
}

impl Fields {
    fn calls(&self) -> CallSettings {
        CallSettings {
            card_file: self.card_file.clone(),
            address: self.address.clone(),
            binding: self.binding,
            version: self.version,
            stream: self.stream,
            lineage: self.lineage,
            headers: self.headers.clone(),
            headers_env: self.headers_env.clone(),
            timeout_ms: self.timeout_ms,
            input_modes: self.input_modes.clone(),
            strict: self.strict,
        }
    }
}

/// The keys an agent's section can have.
#[cfg(test)]
pub(super) fn keys() -> &'static [&'static str] {
    super::fields::field_names::<Fields>()
}

pub(super) fn read_all(agents: &mut Section<'_, '_>) -> Vec<(String, AgentConfig)> {
    let mut read: Vec<(String, AgentConfig)> = Vec::new();
    agents.each(|name, section| {
        let fields: Fields = section.fields();
        if !is_name(name) {
            section
                .complain(format!("an agent's name is 1 to {LONGEST_NAME} of a-z, 0-9, - and _, because it is part of its URL"));
        }
        let calls = fields.calls();
        for (key, fault) in calls.faults() {
            section.complain(format!("{key}: {fault}"));
        }
        let key = KeySource::of(fields.key_file, fields.key_env).unwrap_or_else(|fault| {
            section.complain(fault.to_owned());
            None
        });
        let Fields {
            run, url, verify, agent_id, card_keys, credentials, pin, title, description, extended_skills, price, ..
        } = fields;
        let (hosts, tenants) = (fields.hosts.0, fields.tenants.0);
        for fault in taken(&read, &hosts, &tenants) {
            section.complain(fault);
        }
        let enforce_input_modes = fields.enforce_input_modes.unwrap_or_default();
        let about_peers = verify.is_some() || agent_id.is_some() || card_keys.is_some() || credentials.is_some() || pin.is_some();
        let source = match (run, url.0) {
            (Some(_), urls) if urls.is_empty() && !calls.is_default() => {
                Err("runs in this node: `address`, `binding`, `stream`, `headers` and other settings of calls are for agents with `url`")
            }
            (Some(_), urls) if urls.is_empty() && about_peers => {
                Err("is here: `verify`, `agent_id`, `card_keys`, `credentials` and `pin` are for agents with `url`")
            }
            (Some(_), urls) if urls.is_empty() && fields.enforce_input_modes.is_some() => {
                Err("is here, where input modes are always enforced: `enforce_input_modes` is for agents with `url`")
            }
            (Some(run), urls) if urls.is_empty() => Ok(AgentSource::BuiltIn(run)),
            (None, urls) if urls.is_empty() && (section.has_fault_at("run") || section.has_fault_at("url")) => return,
            (None, urls) if urls.is_empty() => Err("needs `url`, or `run`: \"echo\", \"conformance\" or \"recall\""),
            (local, urls) => Ok(AgentSource::Remote(Box::new(RemoteConfig {
                urls,
                local,
                pin: pin.unwrap_or_else(|| RemoteConfig::pins(verify.unwrap_or_default(), agent_id.as_ref())),
                verify: verify.unwrap_or_default(),
                agent_id,
                card_keys,
                credentials: credentials.unwrap_or_default(),
                calls,
            }))),
        };
        match source {
            Ok(source) => {
                let agent = AgentConfig {
                    source,
                    title,
                    description,
                    key,
                    extended_skills,
                    hosts,
                    tenants,
                    price,
                    unnamed: false,
                    enforce_input_modes,
                };
                read.push((name.to_owned(), agent));
            }
            Err(fault) => section.complain(fault.to_owned()),
        }
    });
    if read.is_empty() && agents.is_sound() {
        agents.complain("names no agent; leave the section out to get the echo agent".to_owned());
    }
    read
}

/// Hosts and tenants that lead to an agent already: one name, one agent.
fn taken(read: &[(String, AgentConfig)], hosts: &[HostName], tenants: &[TenantName]) -> Vec<String> {
    let host = |host: &HostName| {
        let (name, _) = read.iter().find(|(_, agent)| agent.hosts.iter().any(|other| other.name() == host.name()))?;
        Some(format!("the host {host} is the agent {name}'s"))
    };
    let tenant = |tenant: &TenantName| {
        let (name, _) = read.iter().find(|(_, agent)| agent.tenants.contains(tenant))?;
        Some(format!("the tenant {tenant} leads to the agent {name}"))
    };
    hosts.iter().filter_map(host).chain(tenants.iter().filter_map(tenant)).collect()
}

/// Whether an agent can be mounted under this name.
pub(crate) fn is_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(legal)
}
