//! An agent with a key of its own that signs its requests.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use chancery_identity::agent_id_from_pubkey;
use chancery_identity::credentials::{UnsignedRequest, fresh_nonce, sign_request};
use chancery_protocol::Timestamp;

use super::seconds_from_now;
use crate::support::wire_client::RawCall;

pub(crate) struct TestAgent {
    pair: Ed25519KeyPair,
    pub(crate) id: String,
}

impl TestAgent {
    /// From 32 secret bytes.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("a seed");
        let public: [u8; 32] = pair.public_key().as_ref().try_into().expect("32 bytes");
        Self { pair, id: agent_id_from_pubkey(&public).to_string() }
    }

    pub(crate) fn random() -> Self {
        let seed = chancery_identity::SealKey::random_bytes().expect("random bytes");
        Self::new(seed[..].try_into().expect("32 bytes"))
    }

    /// The call signed now, for this node.
    pub(crate) fn sign(&self, call: RawCall, authority: &str) -> RawCall {
        self.sign_at(call, authority, seconds_from_now(0))
    }

    pub(crate) fn sign_at(&self, mut call: RawCall, authority: &str, created: i64) -> RawCall {
        let public: [u8; 32] = self.pair.public_key().as_ref().try_into().expect("32 bytes");
        let request = UnsignedRequest {
            method: &call.method,
            authority: &authority.parse().expect("an authority"),
            path_and_query: &call.path,
            body: &call.body,
        };
        let sign = |base: &[u8]| self.pair.sign(base).as_ref().try_into().expect("64 bytes");
        let nonce = fresh_nonce().expect("random bytes");
        let created = Timestamp::from_micros(created * 1_000_000);
        sign_request(&public, sign, request, created, &nonce).expect("headers").add_to(&mut call.headers);
        call
    }
}
