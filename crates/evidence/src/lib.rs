//! Evidence: what was observed, and no more, in forms that others can read.

pub mod adapter;
pub mod bundle;
mod chosen;
pub mod export;
pub mod packets;
pub mod record;
