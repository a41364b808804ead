//! The guarded way out and the agent client. Nothing leaves the machine.
#![allow(clippy::disallowed_methods, reason = "tests start tasks as they like, and wait for them")]

mod client;
mod guard;
