//! Why a node cannot be put together.

use chancery_core::StoreError;
use chancery_identity::KeyError;
use chancery_identity::cards::CardFault;
use chancery_inbound::TlsError;

use crate::agent_registry::AgentRegistryError;
use crate::caller_registry::CallerRegistryError;
use crate::config::TlsFileError;
use crate::data_folder::FolderError;
use crate::key_registry::KeyRegistryError;

/// Why a node cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The node was given no agent.
    #[error("a node needs at least one agent")]
    NoAgent,
    /// Two agents have the name, or it has other characters.
    #[error("the agent name {0:?} is used by another agent, or has a character other than a-z, 0-9, - and _")]
    AgentName(String),
    /// No agent can be served at the root, because all are hidden.
    #[error("callers can see no agent, and one must be served at the root: expose {0}, or add an agent")]
    Hidden(String),
    /// Calls of the builder contradict each other.
    #[error("two calls of the node builder contradict each other: {0}")]
    Contradiction(&'static str),
    /// A method of the builder that takes one value, or one value per agent, was called twice.
    #[error("{0}() of the builder was called twice; call it once")]
    Repeated(&'static str),
    /// A call of the builder names an agent that the node does not have.
    #[error("{method} names the agent {name}, which the node was not given")]
    UnknownAgent {
        /// The name of the agent.
        name: String,
        /// The method of the builder.
        method: &'static str,
    },
    /// The config has an agent that the program does not give, and the node does not serve the agents of the config.
    #[error("the config has the agent {0}, which the node would not serve; call configured_agents()")]
    AgentNotServed(String),
    /// An agent of an open node has an extended card, which no caller could read.
    #[error("{0} has an extended card, and the node has no callers that could see it")]
    ExtendedCard(String),
    /// The card of an agent says that it has an extended card, and the node was given none.
    #[error("the card of {0} declares an extended card; give it with extended_card(), or remove extendedAgentCard from the card")]
    NoExtendedCard(String),
    /// A capability of an agent differs between its card and its extended card.
    #[error("{capability} of {name} differs between its card and its extended card; the node can do only one of them")]
    CardsDiffer {
        /// The name of the agent.
        name: String,
        /// The member of the cards.
        capability: &'static str,
    },
    /// The card of an agent promises webhooks, and the config turned them off.
    #[error("the card of {0} has push notifications, and the config turned them off")]
    NoPush(String),
    /// The public URL cannot be used.
    #[error("the public URL {url:?} {fault}")]
    PublicUrl {
        /// The URL as it was given.
        url: String,
        /// What is wrong with it.
        fault: String,
    },
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The node's keys cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyRegistryError),
    /// The callers cannot be read.
    #[error(transparent)]
    Callers(#[from] CallerRegistryError),
    /// The added agents cannot be read.
    #[error(transparent)]
    Agents(#[from] AgentRegistryError),
    /// Credentials of the config cannot be used.
    #[error("{0}")]
    Credentials(String),
    /// An agent cannot be served.
    #[error("agents.{name}: {fault}")]
    Agent {
        /// The name of the agent.
        name: String,
        /// What is wrong with it.
        fault: String,
    },
    /// Hosts or tenants of agents contradict each other.
    #[error("agents: {0}")]
    Signs(String),
    /// A card cannot be rendered or signed.
    #[error("the card of an agent: {0}")]
    Card(#[from] CardFault),
    /// A file of the `[tls]` section cannot be read.
    #[error(transparent)]
    TlsFile(#[from] TlsFileError),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The config asks for something that needs a Cargo feature this build does not have.
    #[error("{key}: needs the feature `{feature}`, which this build does not have")]
    Feature {
        /// The key of the config.
        key: String,
        /// The Cargo feature.
        feature: &'static str,
    },
    /// Rules of the policy have faults, one text for each.
    #[error("policy.rules: {}", .0.join("; "))]
    Rules(Vec<String>),
    /// The `[outbound]` section cannot be used.
    #[error("outbound: {0}")]
    Outbound(String),
    /// The `[push]` section cannot be used.
    #[error("push: {0}")]
    Push(String),
    /// A key cannot be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The `[store]` section contradicts itself.
    #[error("{0}")]
    StoreSection(String),
    /// The store cannot be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store of large parts cannot be used.
    #[error(transparent)]
    Artifacts(#[from] crate::part_store::PartStoreError),
    /// The node's memory cannot be opened.
    #[error(transparent)]
    Memory(#[from] crate::memory::MemoryBuildError),
    /// A reload would remove the last caller, and the node would accept every call.
    #[error("without callers the node would accept every client; restart a node with callers to remove all of them")]
    WouldOpen,
    /// The node was built without a config file, so there is no file to watch.
    #[error("the node has no config file to watch; give it one with config_file()")]
    NoConfigFile,
    /// The config file cannot be watched.
    #[error("the folder of the config file cannot be watched: {0}")]
    Watch(String),
    /// The tasks of the last run cannot be recovered.
    #[error("the node could not recover the tasks of its last run: {0}")]
    Recovery(chancery_protocol::Error),
}
