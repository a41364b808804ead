//! Runs agents written for `rvagent-a2a` and `rvagent-core` as agents of Chancery.
//!
//! A `TaskRunner` of `rvagent-a2a` answers a `TaskSpec` with a whole `Task`: [`RvagentRunner`]. An agent over the `AgentState` of
//! `rvagent-core` appends messages to a conversation: [`StateRunner`]. Both are recorded, streamed and governed like any other agent.

mod state_runner;
mod task_runner;

pub use rvagent_a2a;
pub use rvagent_core;
pub use state_runner::{StateAgent, StateRunner};
pub use task_runner::RvagentRunner;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
