//! The control plane for agent-to-agent traffic, as a library: write a `TaskRunner`, build a `Node`, mount its router.
//!
//! `crates/chancery/examples/mount.rs` is a whole program.

mod admin;
mod agent_facts;
mod agent_identities;
mod agent_registry;
mod agent_routes;
pub mod agents;
mod assembly;
mod authentication;
mod build_error;
mod caller_registry;
mod certificate_check;
pub mod config;
mod configured_agents;
mod data_folder;
mod executor;
mod exposure;
mod gateway;
mod hops;
mod key_registry;
#[cfg(feature = "memory-tier")]
mod memory;
#[cfg(not(feature = "memory-tier"))]
#[path = "memory_absent.rs"]
mod memory;
mod mount;
mod node;
mod node_parts;
mod opened_store;
mod part_store;
#[cfg(feature = "policy-cel")]
pub mod policy_expressions;
#[cfg(not(feature = "policy-cel"))]
#[path = "policy_expressions_absent.rs"]
pub mod policy_expressions;
mod preflight;
mod record_keeper;
mod record_mark;
mod reload;
mod scope_names;
mod seal;
mod stored_nonces;
pub mod tool_parts;
mod webhooks;

pub use async_trait::async_trait;
pub use chancery_core::routing;
pub use chancery_core::{
    AfterRestart, Chancery, Finished, RetentionConfig, RunError, SinkClosed, Store, TaskLimits, TaskRunner, TaskUpdateSink, Turn,
};
pub use chancery_identity as identity;
pub use chancery_inbound::InboundLimits;
pub use chancery_protocol as protocol;
pub use chancery_protocol::{AgentCard, Artifact, Message, Metadata, Part, Task, TaskState};

pub use self::admin::{ADMIN_ROUTES, AdminRoute, show_caller, show_key};
pub use self::agent_registry::{AgentRecord, AgentRegistry, AgentRegistryError};
pub use self::agents::new_card;
pub use self::build_error::BuildError;
pub use self::caller_registry::{CallerRegistry, CallerRegistryError};
pub use self::config::Config;
pub use self::data_folder::{Announced, DataFolder, FolderError, Whereabouts};
pub use self::executor::{Executor, RemotePeer};
pub use self::exposure::{open_listener_fault, plain_swp_fault};
pub use self::gateway::{agent_slug, show_added};
pub use self::key_registry::{KeyRegistry, KeyRegistryError};
pub use self::node::{Node, NodeBuilder};
pub use self::preflight::{Preflight, Surroundings, preflight};
pub use self::reload::{Rejected, ReloadError, Reloaded};

/// The versions of the A2A protocol implemented here, newest first. The package's Cargo metadata says the same.
pub const A2A_VERSIONS: [&str; 3] = ["1.0.1", "0.3.0", "0.1.0"];

#[cfg(test)]
mod tests {
    #[test]
    fn the_versions_are_those_of_the_cargo_metadata() {
        let manifest: toml::Table = include_str!("../Cargo.toml").parse().unwrap();
        let versions = manifest["package"]["metadata"]["a2a"]["versions"].as_array().unwrap();
        let versions: Vec<_> = versions.iter().filter_map(toml::Value::as_str).collect();
        assert_eq!(versions, super::A2A_VERSIONS);
    }
}
