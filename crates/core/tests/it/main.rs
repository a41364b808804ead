//! The control plane over real stores and scripted agents, a module per promise.
#![allow(clippy::disallowed_methods, reason = "tests start tasks as they like, and wait for them")]

mod authorizing;
mod governance;
mod late_replies;
mod outage;
mod push;
mod restart;
mod sender_records;
mod snapshots;
mod task_simulation;
