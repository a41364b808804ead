//! Keys and the seals made with them.

pub mod credentials;
mod seal;

pub use seal::{KeyError, SealKey};
