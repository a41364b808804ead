//! Deliveries over a scripted network and a real store, in a time that stands still until everybody waits.

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
