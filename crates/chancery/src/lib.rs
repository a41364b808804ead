//! The control plane for agent-to-agent traffic, as a library: write a `TaskRunner`, build a `Node`, mount its router.
//!
//! `crates/chancery/examples/mount.rs` is a whole program.

mod admin;
mod agent_book;
mod agent_facts;
pub mod agents;
mod artifact_desk;
mod authentication;
mod build_error;
mod caller_book;
pub mod config;
mod data_folder;
mod executor;
mod gateway;
mod hops;
mod key_chest;
mod lineup;
mod memory;
mod mount;
mod node;
pub mod policy_expressions;
mod record_keeper;
mod reload;
mod seal;
mod signs;
pub mod tool_parts;
mod webhooks;

pub use async_trait::async_trait;
pub use chancery_core::routing;
pub use chancery_core::{
    AfterRestart, Chancery, Closed, Finished, RetentionConfig, RunError, TaskLimits, TaskRunner, TaskUpdateSink, Turn,
};
pub use chancery_identity as identity;
pub use chancery_inbound::InboundLimits;
pub use chancery_protocol as protocol;
pub use chancery_protocol::{AgentCard, Artifact, Message, Metadata, Part, Task, TaskState};

pub use self::admin::{show_caller, show_key};
pub use self::agent_book::{AgentBook, AgentBookError, AgentRecord};
pub use self::agents::new_card;
pub use self::build_error::BuildError;
pub use self::caller_book::{BookError, CallerBook};
pub use self::config::Config;
pub use self::data_folder::{Announced, DataFolder, FolderError, Whereabouts};
pub use self::executor::{Executor, Peer};
pub use self::gateway::{agent_slug, show_added};
pub use self::key_chest::{ChestError, KeyChest};
pub use self::node::{Node, NodeBuilder};
pub use self::reload::{Rejected, ReloadError, Reloaded};

/// The versions of the A2A protocol implemented here, newest first. The workspace's Cargo metadata says the same.
pub const A2A_VERSIONS: [&str; 3] = ["1.0.1", "0.3.0", "0.1.0"];

#[cfg(test)]
mod tests {
    #[test]
    fn the_versions_are_those_of_the_cargo_metadata() {
        let manifest: toml::Table = include_str!("../../../Cargo.toml").parse().unwrap();
        let versions = manifest["workspace"]["metadata"]["a2a"]["versions"].as_array().unwrap();
        let versions: Vec<_> = versions.iter().filter_map(toml::Value::as_str).collect();
        assert_eq!(versions, super::A2A_VERSIONS);
    }
}
