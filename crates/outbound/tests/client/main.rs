//! The agent client against scripted agents of every version and binding. Nothing leaves the machine.
#![allow(clippy::disallowed_methods, reason = "tests start tasks as they like, and wait for them")]

mod agent;
mod faults;
mod garbage;
mod grpc_agent;
mod lenient;
mod operations;
mod raw;
mod refusals;
mod retries;
mod samples;
mod streams;
