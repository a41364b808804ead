//! Notifications to webhooks: signed so that receivers can tell who sent them, that they are meant for them, and that they are fresh.
//!
//! The signature follows Standard Webhooks 1.0.0, over `ID.SECONDS.BODY`. It is HMAC-SHA256 (`v1`) if sender
//! and receiver share a secret, or Ed25519 (`v1a`) with a published key. The id names the receiver too
//! ([`audience`]), so that a notification for one receiver is invalid at another.

mod id;
mod jwt;
mod legacy;
mod replay;
mod rotation;
mod secret;
mod sign;
mod vault;
mod verify;

pub use id::{Carries, WebhookId, audience};
pub use jwt::{JwtFault, MAX_PUSH_JWT, PUSH_JWT_LIFE, PushClaims, PushKeys, TokenFor, mint_push_jwt};
pub use legacy::{
    body_signature, body_signature_ed25519, neuralpost_signature, verify_body_signature, verify_body_signature_ed25519,
    verify_neuralpost,
};
pub use replay::{MOST_REMEMBERED, ReplayCheck, ReplayMemory};
pub use rotation::{
    DEFAULT_GRACE, JWKS_MAX_AGE, KEPT_AFTER_USE, LONGEST_GRACE, MOST_OLD_SECRETS, PUBLISHED_BEFORE_USE, RotationFault, SecretSet,
    rotate_push_keys,
};
pub use secret::{HmacSecret, SecretFault, public_key_from_whpk, public_key_to_whpk, signing_key_from_whsk};
pub use sign::sign;
pub use vault::{SealedBytes, VaultFault, VaultRing, bound_to};
pub use verify::{MOST_SIGNATURES, Scheme, TOLERANCE, VerifiedWebhook, Verifier, VerifyFault};

/// The id of a notification: the same for every attempt.
pub const ID_HEADER: &str = "webhook-id";
/// When this attempt was made, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// `v1,…` and `v1a,…`, with a space between them.
pub const SIGNATURE_HEADER: &str = "webhook-signature";
