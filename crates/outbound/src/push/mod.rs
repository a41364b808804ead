//! Brings notifications to webhooks: written in the form of their registration, signed, and sent once through the guarded way out.

mod challenge;
mod config;
mod courier;
mod headers;
mod keys;
mod letter;
mod outcome;
mod targets;

pub use challenge::Challenge;
pub use config::{CourierConfig, OriginRules};
pub use courier::HttpCourier;
pub use keys::OriginSecrets;
pub use targets::GuardedTargets;
