//! Deliveries over a scripted network and a real store, in a time that stands still until everybody waits.

mod barrier;
mod clocks;
mod crowds;
mod deliveries;
mod ending_outbox;
mod ends;
mod network;
mod operators;
mod push_plane;
mod simulation;
