//! Decisions as plain functions: no async, no clock, no I/O.

pub mod task_state;
