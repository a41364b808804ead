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

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("a node needs at least one agent")]
    NoAgent,
    #[error("the agent name {0:?} is taken, or is not made of a-z, 0-9, - and _")]
    AgentName(String),
    #[error("the first agent answers at the root, so {0} cannot be hidden")]
    Hidden(String),
    #[error("the public URL {url:?} {fault}")]
    PublicUrl { url: String, fault: String },
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Keys(#[from] KeyRegistryError),
    #[error(transparent)]
    Callers(#[from] CallerRegistryError),
    #[error(transparent)]
    Agents(#[from] AgentRegistryError),
    #[error("{0}")]
    Credentials(String),
    #[error("agents.{name}: {fault}")]
    Agent { name: String, fault: String },
    #[error("agents: {0}")]
    Signs(String),
    #[error("the card of an agent: {0}")]
    Card(#[from] CardFault),
    #[error(transparent)]
    TlsFile(#[from] TlsFileError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("{key}: needs the feature `{feature}`, which this build does not have")]
    Feature { key: String, feature: &'static str },
    #[error("policy.rules: {}", .0.join("; "))]
    Rules(Vec<String>),
    #[error("outbound: {0}")]
    Outbound(String),
    #[error("push: {0}")]
    Push(String),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Artifacts(#[from] crate::part_store::PartStoreError),
    #[error(transparent)]
    Memory(#[from] crate::memory::MemoryBuildError),
    #[error("without callers the node would accept every client; restart a node with callers to remove all of them")]
    WouldOpen,
    #[error("the folder of the config file cannot be watched: {0}")]
    Watch(String),
    #[error("the tasks of the last run could not be taken up: {0}")]
    Recovery(chancery_protocol::Error),
}
