//! Agents written against the rvagent crates, run by a real service over the memory store.

mod node;

mod states;
mod tasks;
