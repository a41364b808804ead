//! Deliveries over a scripted network and a real store, in a time that stands still until everybody waits.
#![allow(clippy::disallowed_methods, reason = "tests start tasks as they like, and wait for them")]

mod barrier;
mod clocks;
mod crowds;
mod deliveries;
mod doomed;
mod ends;
mod house;
mod network;
mod operators;
mod simulation;
