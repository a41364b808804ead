//! Runs agents written for the official Rust SDK as agents of Chancery.
//!
//! An `AgentExecutor` answers a message with a stream of tasks, status updates, artifact updates and messages.
//! [`SdkRunner`] hands it each turn of a task and passes on what it says, so that it is recorded, streamed and
//! recovered like the words of any other agent.

mod runner;
mod story;
mod translate;

pub use a2a;
pub use a2a_server;
pub use runner::SdkRunner;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
