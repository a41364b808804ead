//! Decisions as plain functions: no async, no clock, no I/O.

pub mod health;
mod money;
pub mod routing;
mod setting;
pub mod task_state;

pub use self::money::MicroUsd;
