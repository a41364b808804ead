//! One contract for every store, and deliveries over a store that is held by another.
#![allow(clippy::disallowed_methods, reason = "tests start tasks as they like, and wait for them")]

mod contract;
mod delivering;
mod postgres;
mod server;
