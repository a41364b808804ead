//! Keys and the seals made with them.

mod seal;

pub use seal::{KeyError, SealKey};
