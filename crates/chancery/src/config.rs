//! The one config of a node: what its components can be set to, added up.

mod agent;
mod agreement;
mod call_settings;
mod caller;
mod card;
mod fault;
mod fields;
mod file;
mod governance;
mod issuer;
mod keys;
mod names;
mod nearest;
mod one_or_more;
mod places;
mod public_url;
mod push;
mod routing;
mod schema;
mod section;
mod shape;
mod swp;
mod template;
mod tls;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use chancery_core::{Dedupe, RetentionConfig, TaskLimits};
use chancery_evidence::record::EvidenceConfig;
use chancery_identity::credentials::Issuer;
use chancery_inbound::InboundLimits;
use chancery_memory::{ArtifactsConfig, MemoryConfig};
use chancery_outbound::GuardConfig;
use chancery_outbound::client::ClientLimits;
use chancery_outbound::discovery::DiscoveryConfig;
use chancery_outbound::remote::FollowLimits;
use chancery_protocol::AgentId;
use chancery_rules::health::HealthConfig;
use chancery_rules::routing::RoutingConfig;
use chancery_store::{SqliteOptions, Synchronous};
use chancery_wire::JsonLimits;
use serde::Deserialize;

pub(crate) use self::agent::is_name as is_agent_name;
pub use self::agent::{AgentConfig, AgentSource, ExtendedSkill, RemoteConfig, RemoteCredentials};
pub use self::call_settings::{BindingSetting, CallSettings};
pub use self::caller::CallerConfig;
pub use self::card::{CardBinding, CardConfig};
pub use self::fault::{ConfigError, Fault};
pub use self::file::ConfigFile;
pub(crate) use self::file::digest;
pub use self::governance::{GovernanceConfig, PriceConfig};
pub use self::keys::{KeySource, KeySourceError, KeysConfig};
pub use self::names::{HostName, TenantName};
pub use self::places::Places;
pub use self::public_url::PublicUrl;
pub(crate) use self::push::origin as push_origin;
pub use self::push::{PushConfig, PushOffer};
pub use self::schema::schema;
use self::section::Section;
pub use self::swp::{SwpConfig, SwpDoor, SwpUrl};
pub use self::template::{SCHEMA_FILE, template};
pub use self::tls::{TlsConfig, TlsFileError};
use crate::agents::BuiltIn;

/// What stands in no section.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConfig {
    pub listen: SocketAddr,
    /// What cards and links say; the address we listen at, if nothing else is said.
    pub public_url: Option<PublicUrl>,
    /// The folder of the database, the keys and the admin token.
    pub data: Option<PathBuf>,
    pub dedupe: Dedupe,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7420)), public_url: None, data: None, dedupe: Dedupe::default() }
    }
}

/// The `[limits]` section: every component's limits under one roof.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    pub tasks: TaskLimits,
    pub inbound: InboundLimits,
    pub json: JsonLimits,
}

/// The `[store]` section.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// How often the database waits for the disk.
    pub synchronous: Synchronous,
}

impl StoreConfig {
    pub(crate) fn sqlite(&self) -> SqliteOptions {
        SqliteOptions { synchronous: self.synchronous, ..SqliteOptions::default() }
    }
}

/// The `[identity]` section.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdentityConfig {
    /// The agents that may call, by the ids of their keys. Left out, those that `[callers]` lists.
    pub allow: Option<Vec<AgentId>>,
    /// How far the time of a signed request may be from ours, either way.
    pub signature_window_s: u32,
    /// Signed requests that are remembered, so that none is taken twice.
    pub signatures_remembered: usize,
}

impl Default for IdentityConfig {
    fn default() -> Self {
        Self { allow: None, signature_window_s: 300, signatures_remembered: 100_000 }
    }
}

/// The `[peers]` section: the limits on calls to other agents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeersConfig {
    pub client: ClientLimits,
    pub follow: FollowLimits,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub node: NodeConfig,
    pub limits: Limits,
    pub retention: RetentionConfig,
    pub card: CardConfig,
    pub store: StoreConfig,
    /// What is recorded of what is seen and decided.
    pub evidence: EvidenceConfig,
    /// In the order of the file; the first one also answers at the root.
    pub agents: Vec<(String, AgentConfig)>,
    /// Who may call. With nobody here and none added, everybody on the loopback may.
    pub callers: Vec<CallerConfig>,
    /// Whose tokens are accepted.
    pub issuers: Vec<Issuer>,
    pub identity: IdentityConfig,
    pub keys: KeysConfig,
    pub tls: TlsConfig,
    /// The slim binary wire.
    pub swp: SwpConfig,
    /// What may be called, and the limits on it.
    pub outbound: GuardConfig,
    pub discovery: DiscoveryConfig,
    pub peers: PeersConfig,
    /// Which peer gets a task.
    pub routing: RoutingConfig,
    /// When a peer is left alone.
    pub health: HealthConfig,
    /// What governs calls.
    pub governance: GovernanceConfig,
    /// Vectors by reference.
    pub memory: MemoryConfig,
    /// Webhooks.
    pub push: PushConfig,
    /// What artifacts are held to, and what becomes of large ones.
    pub artifacts: ArtifactsConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            node: NodeConfig::default(),
            limits: Limits::default(),
            retention: RetentionConfig::default(),
            card: CardConfig::default(),
            store: StoreConfig::default(),
            evidence: EvidenceConfig::default(),
            agents: vec![("echo".to_owned(), AgentConfig::of(BuiltIn::Echo))],
            callers: Vec::new(),
            issuers: Vec::new(),
            identity: IdentityConfig::default(),
            keys: KeysConfig::default(),
            tls: TlsConfig::default(),
            swp: SwpConfig::default(),
            outbound: GuardConfig::default(),
            discovery: DiscoveryConfig::default(),
            peers: PeersConfig::default(),
            routing: RoutingConfig::default(),
            health: HealthConfig::default(),
            governance: GovernanceConfig::default(),
            memory: MemoryConfig::default(),
            push: PushConfig::default(),
            artifacts: ArtifactsConfig::default(),
        }
    }
}

impl Config {
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        ConfigFile::read(file).map(|read| read.config)
    }

    /// Reads a config. What is wrong with it is told all at once, in the order of the text.
    pub fn parse(text: &str) -> Result<Self, Vec<Fault>> {
        Self::read(text).map(|(config, _)| config)
    }

    /// The same, with where everything stands.
    pub fn read(text: &str) -> Result<(Self, Places), Vec<Fault>> {
        Self::read_and(text, |_, _| Vec::new())
    }

    /// The same, with what else may be wrong with it.
    fn read_and(text: &str, more: impl FnOnce(&Self, &Places) -> Vec<Fault>) -> Result<(Self, Places), Vec<Fault>> {
        section::read(text, Self::sections, |config, places| {
            let mut faults = agreement::faults(config, places);
            faults.extend(more(config, places));
            faults
        })
    }

    /// Every section there is. The schema is made from this too, so that a section added here is in it.
    fn sections(file: &mut Section<'_, '_>) -> Self {
        let limits =
            |section: &mut Section<'_, '_>| Limits { tasks: section.fields(), inbound: section.fields(), json: section.fields() };
        Self {
            node: file.fields(),
            limits: file.section("limits", limits).unwrap_or_default(),
            retention: file.section("retention", |section| section.fields()).unwrap_or_default(),
            card: file.section("card", |section| section.fields()).unwrap_or_default(),
            store: file.section("store", |section| section.fields()).unwrap_or_default(),
            evidence: file.section("evidence", |section| section.fields()).unwrap_or_default(),
            agents: file.section("agents", agent::read_all).unwrap_or_else(|| Self::default().agents),
            callers: file.section("callers", caller::read_all).unwrap_or_default(),
            issuers: file.section("issuers", issuer::read_all).unwrap_or_default(),
            identity: file.section("identity", |section| section.fields()).unwrap_or_default(),
            keys: file.section("keys", keys::read).unwrap_or_default(),
            tls: file.section("tls", tls::read).unwrap_or_default(),
            swp: file.section("swp", swp::read).unwrap_or_default(),
            outbound: file.section("outbound", |section| section.fields()).unwrap_or_default(),
            discovery: file.section("discovery", |section| section.fields()).unwrap_or_default(),
            peers: file
                .section("peers", |section| PeersConfig { client: section.fields(), follow: section.fields() })
                .unwrap_or_default(),
            routing: file.section("routing", |section| section.fields()).unwrap_or_default(),
            health: file.section("health", routing::read_health).unwrap_or_default(),
            governance: GovernanceConfig {
                budget: file.section("budget", |section| section.fields()).unwrap_or_default(),
                policy: file.section("policy", |section| section.fields()).unwrap_or_default(),
                recursion: file.section("recursion", |section| section.fields()).unwrap_or_default(),
                lineage: file.section("lineage", |section| section.fields()).unwrap_or_default(),
            },
            memory: file.section("memory", |section| section.fields()).unwrap_or_default(),
            push: file.section("push", push::read).unwrap_or_default(),
            artifacts: file.section("artifacts", |section| section.fields()).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
