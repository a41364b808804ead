//! The agent client against scripted agents of every version and binding. Nothing leaves the machine.

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
