//! Keys and what is proven with them: seals, agent ids, signed cards, hop tokens, callers' credentials, webhooks.

mod agent_id;
pub mod cards;
pub mod credentials;
pub mod hop_token;
pub mod jcs;
pub mod jwks;
mod jws;
pub mod keys;
mod seal;
pub mod strict_json;
pub mod webhook;

pub use agent_id::agent_id_from_pubkey;
pub use jwks::{Jwk, Jwks};
pub use keys::{Algorithm, KeyRing, KeyUse, PublicKey, SigningKey};
pub use seal::{KeyError, SealKey};
