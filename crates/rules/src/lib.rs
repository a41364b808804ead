//! Decisions as plain functions: no async, no clock, no I/O.

mod average;
pub mod budget;
pub mod health;
pub mod lineage;
mod money;
pub mod policy;
pub mod push;
pub mod recursion;
pub mod routing;
mod setting;
pub mod task_state;

pub use self::money::{MicroUsd, MoneyFault};
