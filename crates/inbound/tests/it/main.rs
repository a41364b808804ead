//! The doors on real sockets, without the binary: their limits, who is let in and when, bodies, hosts and origins.
#![allow(clippy::disallowed_methods, reason = "tests start tasks as they like, and wait for them")]

mod node;
mod wire;

mod authentication;
mod bodies;
mod connections;
mod heads;
mod hosts;
mod origins;
mod proxies;
mod rates;
