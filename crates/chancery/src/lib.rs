//! The control plane for agent-to-agent (A2A) traffic as a library: write a [`TaskRunner`], build a [`Node`], mount its router.
//!
//! # An agent
//!
//! ```
//! use chancery::{Artifact, Finished, Node, Part, RunError, TaskRunner, TaskUpdateSink, Turn};
//! use chancery::{async_trait, new_card, test_turn};
//!
//! struct Greeter;
//!
//! #[async_trait]
//! impl TaskRunner for Greeter {
//!     async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
//!         let greeting = format!("Hello, {}!", turn.message.first_text().unwrap_or("stranger"));
//!         updates.artifact(Artifact::new("greeting", vec![Part::text(greeting)])).await?;
//!         Ok(updates.complete(None))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = Node::builder().agent("greeter", new_card("Greeter", "Greets you."), Greeter).build().await?;
//! // The router has every door. Merge it into an axum app, or call `node.serve` with a listener.
//! let app = chancery::axum::Router::new().merge(node.router());
//! # drop(app);
//! assert!(node.chancery().agents().get("greeter").is_some());
//!
//! // A unit test of the agent needs no node.
//! let turn = test_turn(Greeter).send("Ada").await?;
//! assert_eq!(turn.task.artifacts[0].parts[0].as_text(), Some("Hello, Ada!"));
//! # Ok(())
//! # }
//! ```
//!
//! # A gateway in front of an agent
//!
//! The gateway is a node too. It fetches the agent's card, and callers reach the agent at `/agents/hello`.
//!
//! ```
//! use chancery::agents::Echo;
//! use chancery::client::{AgentClient, CallConditions, ClientLimits, Guard, GuardConfig, Interface};
//! use chancery::config::AgentConfig;
//! use chancery::protocol::{Binding, Reply, Request, SendMessage, Sent, TraceId, Version};
//! use chancery::{CancellationToken, Message, Node, TaskState, new_card};
//! use tokio::net::TcpListener;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (back, front) = (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
//! let (agent_url, gateway_url) = (format!("http://{}", back.local_addr()?), format!("http://{}", front.local_addr()?));
//! let agent = Node::builder().agent("echo", new_card("Echo", "Says it again."), Echo::default()).public_url(&agent_url);
//! let (agent, stop) = (agent.build().await?, CancellationToken::new());
//! let serving = stop.clone();
//! let agent = tokio::spawn(async move { agent.serve(back, serving).await });
//!
//! let gateway = Node::builder().remote_agent("hello", AgentConfig::at(&agent_url)).public_url(&gateway_url);
//! let (gateway, serving) = (gateway.build().await?, stop.clone());
//! let gateway = tokio::spawn(async move { gateway.serve(front, serving).await });
//!
//! // A client of the gateway. A guard checks every address that the client dials.
//! let loopback = vec!["127.0.0.0/8".parse()?];
//! let guard = Guard::new(GuardConfig { allow_nets: loopback, allow_http: true, ..GuardConfig::default() }, &[]);
//! let guard = guard.map_err(|faults| format!("{faults:?}"))?;
//! let url = format!("{gateway_url}/agents/hello");
//! let interface = Interface { url: url.parse()?, binding: Binding::JsonRpc, version: Version::V1_0, tenant: None };
//! let client = AgentClient::new(&guard, interface, ClientLimits::default())?;
//! let send = Request::SendMessage(SendMessage::new(Message::text(chancery::protocol::Role::User, "message-1", "hello")));
//! let reply = client.call(&send, &CallConditions::new(TraceId(1))).await?;
//! let Reply::Sent(Sent::Task(answer)) = reply else { panic!("an echo is a task") };
//! assert_eq!(answer.task.status.state, TaskState::Completed);
//! stop.cancel();
//! # (agent.await?, gateway.await?);
//! # Ok(())
//! # }
//! ```
//!
//! # A governed call with a budget
//!
//! One call of the agent costs 2 cents, and all its calls of an hour may cost 3. The node rejects the second call.
//!
//! ```
//! use chancery::protocol::{ErrorKind, Role};
//! use chancery::{Config, Message, Node};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config: Config = r#"
//!     [agents.echo]
//!     run = "echo"
//!     price = { per_call_usd = "0.02" }
//!
//!     [budget.agent.echo]
//!     max_usd = "0.03"
//!     window = "1h"
//! "#
//! .parse()?;
//! let node = Node::builder().config(config).configured_agents().build().await?;
//! let echo = node.executor("echo");
//! let artifacts = echo.run(Message::text(Role::User, "message-1", "hello"), None).await?;
//! assert_eq!(artifacts[0].parts[0].as_text(), Some("hello"));
//! let rejected = echo.run(Message::text(Role::User, "message-2", "hello"), None).await;
//! assert!(rejected.is_err_and(|error| error.kind == ErrorKind::BudgetExhausted));
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | [`protocol`] | the A2A model: messages, tasks, cards, requests, errors |
//! | [`config`] | every setting of a node, and the reader of config files |
//! | [`rules`] | budgets, policies, routing and lineage, as functions without I/O |
//! | [`service`] | the control plane behind [`Node::chancery`], and the types of its calls |
//! | [`store`] | the port of a store, and the stores that are built in |
//! | [`client`] | the guarded client that calls other agents |
//! | [`receiver`] | the receiver of push notifications, for programs without a node |
//! | [`identity`] | keys, signed cards, credentials |
//! | [`agents`] | the built-in agents, and [`new_card`] |
//! | [`tool_parts`] | parts that show the tool calls of an agent |
//!
//! `docs/embedding.md` has more programs: tasks from a program, and a store, a clock and rules of the program. It also lists the
//! features of the crate, which leave out what a program does not use.

#![deny(missing_docs)]

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
#[doc(hidden)]
pub mod cli_support;
pub mod client;
pub mod config;
mod configured_agents;
mod data_folder;
mod executor;
mod exposure;
mod gateway;
mod hops;
pub mod identity;
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
mod policy_expressions;
#[cfg(not(feature = "policy-cel"))]
#[path = "policy_expressions_absent.rs"]
mod policy_expressions;
#[cfg(feature = "postgres")]
mod postgres_node;
#[cfg(not(feature = "postgres"))]
#[path = "postgres_node_absent.rs"]
mod postgres_node;
mod preflight;
pub mod protocol;
mod record_keeper;
mod record_mark;
mod reload;
pub mod rules;
mod scope_names;
mod seal;
pub mod service;
mod start_place;
pub mod store;
mod stored_nonces;
mod test_turn;
pub mod tool_parts;
mod webhooks;

pub use async_trait::async_trait;
pub use axum;
pub use bytes;
pub use chancery_core::{
    AfterRestart, Chancery, Delegation, Finished, Link, MemoryRecall, Passed, ReplyMode, RunError, SelectorQuery, SinkClosed,
    StoreError, Subscription, TaskRunner, TaskUpdateSink, Turn, WaitingTask,
};
pub use chancery_inbound::TlsError;
#[cfg(feature = "memory-tier")]
pub use chancery_memory::GrantRefusal;
pub use chancery_memory::{MemoryError, SchemaFault};
pub use chancery_protocol::{AgentCard, Artifact, Message, Metadata, Part, Task, TaskState};
#[doc(inline)]
pub use chancery_receiver as receiver;
pub use chancery_rules::MicroUsd;
pub use http;
pub use rustls_pki_types;
pub use secrecy;
pub use serde_json;
pub use tokio;
pub use tokio_util::sync::CancellationToken;
pub use url;

pub use self::agent_registry::AgentRegistryError;
pub use self::agents::new_card;
pub use self::build_error::BuildError;
pub use self::caller_registry::CallerRegistryError;
pub use self::config::Config;
pub use self::data_folder::{DataFolder, FolderError};
pub use self::executor::Executor;
pub use self::key_registry::KeyRegistryError;
pub use self::memory::MemoryBuildError;
pub use self::node::{Node, NodeBuilder};
pub use self::part_store::PartStoreError;
pub use self::reload::{Rejected, ReloadError, Reloaded};
pub use self::test_turn::{TestTurn, TestedTurn, test_turn};

/// The programs of the documents, compiled and run with the other examples.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../docs/embedding.md")]
    mod embedding {}
    #[doc = include_str!("../docs/push-receivers.md")]
    mod push_receivers {}
    #[doc = include_str!("../docs/tool-parts.md")]
    mod tool_parts {}
}

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
