//! The evidence adapter and the record from outside the crate.

mod adapter;
mod record;
