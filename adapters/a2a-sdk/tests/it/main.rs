//! Executors written against the official SDK, run by a real service over the memory store.

mod executor;
mod node;

mod cancels;
mod endings;
mod updates;
