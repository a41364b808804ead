//! The one config of a node: what its components can be set to, added up.

mod agent;
mod agreement;
mod call_settings;
mod caller;
mod card;
pub(crate) mod changed_keys;
mod component_keys;
mod effect;
mod fault;
mod fields;
mod file;
pub(crate) mod from_rvagent;
mod governance;
mod inner_path;
mod issuer;
mod keys;
mod lacking;
mod literal_secrets;
mod names;
mod nearest;
mod notation;
mod one_or_more;
mod places;
mod plain_faults;
mod public_url;
mod push;
mod renamed_keys;
mod routing;
pub(crate) mod schema;
mod section;
mod shape;
pub(crate) mod store;
mod swp;
pub(crate) mod template;
mod tls;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

pub use chancery_core::notify::NotifyConfig;
pub use chancery_core::{Dedupe, RetentionConfig, TaskLimits};
pub use chancery_evidence::record::EvidenceConfig;
pub use chancery_identity::credentials::Issuer;
pub use chancery_inbound::{ClientCertificates, Headerless, InboundLimits, ProxyNet, SwpRules, Timestamping, TrustedProxies};
pub use chancery_memory::{ArtifactsConfig, IssuerKey, MemoryConfig};
pub use chancery_outbound::client::ClientLimits;
pub use chancery_outbound::discovery::{CardVerification, DiscoveryConfig};
pub use chancery_outbound::push::{Challenge, CourierConfig, OriginRules};
pub use chancery_outbound::remote::{AgentSettings, FollowLimits, LineageSetting, StreamMode};
pub use chancery_outbound::{GuardConfig, JwksLimits};
use chancery_protocol::AgentId;
pub use chancery_rules::health::HealthConfig;
pub use chancery_rules::routing::RoutingConfig;
pub use chancery_store::{PostgresOptions, SqliteOptions, SslMode, Synchronous};
pub use chancery_wire::JsonLimits;
pub use chancery_wire::swp::codec::SwpLimits;
use serde::Deserialize;

pub(crate) use self::agent::is_name as is_agent_name;
pub use self::agent::{AgentConfig, AgentSource, ExtendedSkill, RemoteConfig, RemoteCredentials};
pub(crate) use self::agreement::{unknown_agents, unknown_revisits};
pub use self::call_settings::{BindingSetting, CallSettings};
pub use self::caller::CallerConfig;
pub use self::card::{CardBinding, CardConfig};
use self::effect::declare_section;
pub use self::effect::{ChangedKey, TakesEffect};
pub use self::fault::{ConfigError, ConfigFault, ConfigFaults};
pub use self::file::ConfigFile;
#[cfg(feature = "cli")]
pub(crate) use self::file::digest;
pub use self::governance::{GovernanceConfig, PriceConfig};
pub use self::keys::{KeySource, KeySourceError, KeysConfig};
pub use self::names::{HostName, NodeHost, TenantName};
pub(crate) use self::nearest::nearest;
use self::notation::{FromJson, is_json, yaml_fault};
pub use self::places::Places;
pub use self::public_url::PublicUrl;
pub(crate) use self::push::origin as push_origin;
pub use self::push::{PushOffer, PushSection};
use self::section::Section;
pub use self::store::{StoreConfig, StoreUrl};
pub use self::swp::{SwpConfig, SwpDoor, SwpUrl};
pub use self::tls::{TlsConfig, TlsFileError};
use crate::agents::BuiltIn;

/// What stands in no section.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConfig {
    /// The address that `chancery serve` listens at.
    pub listen: SocketAddr,
    /// What cards and links say; the address we listen at, if nothing else is said.
    pub public_url: Option<PublicUrl>,
    /// More hosts that the node answers to, and whose web pages may call it.
    pub hosts: Vec<NodeHost>,
    /// The folder of the database, the keys and the admin token.
    pub data: Option<PathBuf>,
    /// Whether a message that is sent again gets the task of the first one.
    pub dedupe: Dedupe,
}

declare_section!(NodeConfig { listen: Restart, public_url: Restart, hosts: Live, data: Restart, dedupe: Live });

impl Default for NodeConfig {
    fn default() -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 7420));
        Self { listen, public_url: None, hosts: Vec::new(), data: None, dedupe: Dedupe::default() }
    }
}

/// The `[limits]` section: every component's limits under one roof.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitsConfig {
    /// The limits on tasks.
    pub tasks: TaskLimits,
    /// The limits on connections and requests.
    pub inbound: InboundLimits,
    /// The limits on JSON text.
    pub json: JsonLimits,
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
    /// How long a token that was verified is accepted without a look at its issuer's keys; 0 looks at them with every call.
    pub tokens_remembered_s: u32,
}

// How long a nonce is remembered was settled when it came.
declare_section!(IdentityConfig {
    allow: Live,
    signature_window_s: Restart,
    signatures_remembered: Restart,
    tokens_remembered_s: Live,
});

impl Default for IdentityConfig {
    fn default() -> Self {
        Self { allow: None, signature_window_s: 300, signatures_remembered: 100_000, tokens_remembered_s: 300 }
    }
}

/// The `[peers]` section: the limits on calls to other agents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeersConfig {
    /// The limits of one call.
    pub client: ClientLimits,
    /// The limits on following a task.
    pub follow: FollowLimits,
}

/// Every setting of a node. `Config::default()` is the config of an empty file.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The `[node]` section.
    pub node: NodeConfig,
    /// The `[limits]` section.
    pub limits: LimitsConfig,
    /// The `[retention]` section.
    pub retention: RetentionConfig,
    /// The `[card]` section.
    pub card: CardConfig,
    /// The `[store]` section.
    pub store: StoreConfig,
    /// What is recorded of what is seen and decided.
    pub evidence: EvidenceConfig,
    /// In the order of the file; the first one also answers at the root.
    pub agents: Vec<(String, AgentConfig)>,
    /// The callers. Without a caller here or in the data folder, every call over loopback is accepted.
    pub callers: Vec<CallerConfig>,
    /// Whose tokens are accepted.
    pub issuers: Vec<Issuer>,
    /// The `[identity]` section.
    pub identity: IdentityConfig,
    /// How long keys of issuers are kept, and how often they are fetched.
    pub jwks: JwksLimits,
    /// The `[keys]` section.
    pub keys: KeysConfig,
    /// The `[tls]` section.
    pub tls: TlsConfig,
    /// The slim binary wire.
    pub swp: SwpConfig,
    /// What may be called, and the limits on it.
    pub outbound: GuardConfig,
    /// The `[discovery]` section.
    pub discovery: DiscoveryConfig,
    /// The `[peers]` section.
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
    pub push: PushSection,
    /// The limits of artifacts, and where large ones are stored.
    pub artifacts: ArtifactsConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            node: NodeConfig::default(),
            limits: LimitsConfig::default(),
            retention: RetentionConfig::default(),
            card: CardConfig::default(),
            store: StoreConfig::default(),
            evidence: EvidenceConfig::default(),
            agents: vec![("echo".to_owned(), AgentConfig::of(BuiltIn::Echo))],
            callers: Vec::new(),
            issuers: Vec::new(),
            identity: IdentityConfig::default(),
            jwks: JwksLimits::default(),
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
            push: PushSection::default(),
            artifacts: ArtifactsConfig::default(),
        }
    }
}

impl Config {
    /// Reads and checks a config file.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        ConfigFile::read(file).map(|read| read.config)
    }

    /// Reads a config. It returns all faults at once, in the order of the text. `text.parse::<Config>()` returns them as one error.
    pub fn parse(text: &str) -> Result<Self, Vec<ConfigFault>> {
        Self::read(text).map(|(config, _)| config)
    }

    /// The same, with where everything stands.
    pub fn read(text: &str) -> Result<(Self, Places), Vec<ConfigFault>> {
        Self::read_and(text, |_, _| Vec::new())
    }

    /// The same, with what else may be wrong with it.
    fn read_and(text: &str, more: impl FnOnce(&Self, &Places) -> Vec<ConfigFault>) -> Result<(Self, Places), Vec<ConfigFault>> {
        if let Some(fault) = yaml_fault(text) {
            return Err(vec![fault]);
        }
        let all = |config: &Self, places: &Places| {
            let mut faults = agreement::faults(config, places);
            faults.extend(lacking::faults(config, places));
            faults.extend(more(config, places));
            faults
        };
        if !is_json(text) {
            return section::read(text, Self::sections, all);
        }
        let json = FromJson::read(text)?;
        let read = section::read(&json.toml, Self::sections, all);
        let read = read.map_err(|faults| faults.into_iter().map(|fault| json.moved(fault)).collect::<Vec<_>>())?;
        Ok((read.0, read.1.moved(|place| json.place(place))))
    }

    /// Every section there is. The schema is made from this too, so that a section added here is in it.
    fn sections(file: &mut Section<'_, '_>) -> Self {
        let limits = |section: &mut Section<'_, '_>| LimitsConfig {
            tasks: section.fields(),
            inbound: section.fields(),
            json: section.fields(),
        };
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
            jwks: file.section("jwks", |section| section.fields()).unwrap_or_default(),
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

impl std::str::FromStr for Config {
    type Err = ConfigFaults;

    fn from_str(text: &str) -> Result<Self, ConfigFaults> {
        Self::parse(text).map_err(ConfigFaults)
    }
}

#[cfg(test)]
mod tests;
