//! Signing keys: what each is for, and how none of them can serve for anything else.

mod domain;
mod material;
mod public;
mod record;
mod ring;
mod signing;

pub use domain::{Cards, Domain, HopTokens, KeyUse, MemoryGrants, OwnFormat, Push, Receipts};
pub use material::{Algorithm, KeyFault};
pub use public::PublicKey;
pub use record::KeyRecord;
pub use ring::{KeyRing, MAX_OLD_KEYS, RingFault};
pub use signing::{PushFault, SigningKey};
