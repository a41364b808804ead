//! Keys, cards, credentials and seals from outside the crate.

mod common;

mod card_jws;
mod card_signature;
mod credentials;
mod hop_token;
mod jcs;
mod keys;
mod webhook;
