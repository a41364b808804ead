//! Keys, credentials and their faults, as configs, errors and calls of a node mention them.

pub use chancery_identity::credentials::{
    Accept, AllowAll, Allowlist, ApiKeyRecord, Authority, CallerFault, CallerRecord, CertificateName, IdentityResolver, Issuer,
    KeyHash, RotateError, SignFault, SignedHeaders, TokenAlgorithm, TokenSubject, UnsignedRequest,
};
pub use chancery_identity::keys::{Cards, Domain, KeyFault, KeyRecord, OwnFormat, PushFault, RingFault};
pub use chancery_identity::webhook::{
    HmacSecret, JwtFault, PushClaims, PushKeys, ReplayCheck, Scheme, SecretFault, TokenFor, VerifyFault,
};
pub use chancery_identity::{
    Algorithm, Jwk, Jwks, KeyError, KeyRing, KeyUse, PublicKey, SealKey, SigningKey, agent_id_from_pubkey, cards::CardFault,
    jcs::CanonicalFault, strict_json::StrictJsonFault,
};
