//! One contract for every store, deliveries over a store that is held by another, and several nodes on one database.
#![allow(clippy::disallowed_methods, reason = "tests start tasks as they like, and wait for them")]

mod contract;
mod delivering;
mod nodes;
mod postgres;
mod server;
