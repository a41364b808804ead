//! Who calls: the credentials callers have, and the checks that turn what a request presents into a known caller.

mod api_key;
mod authenticator;
mod caller;
mod callers;
mod certificate;
mod certificate_fields;
mod declared;
mod hex;
mod issuer;
mod key_set;
mod presented;
mod refusal;
mod resolver;
mod signature;
mod token;
mod token_memory;

pub use api_key::{ApiKey, KeyHash};
pub use authenticator::{Authenticator, Checks, RequestFacts};
pub use caller::{ApiKeyRecord, CallerRecord, RotateError, TokenSubject};
pub use callers::{CallerFault, Callers, Known};
pub use certificate::{CertificateName, server_names};
pub use issuer::{Accept, Issuer, Issuers, TokenAlgorithm};
pub use key_set::{KeySet, KeySetFault, KeySets, NoKeySets};
pub use presented::{API_KEY_HEADER, MOST_CREDENTIAL_BYTES, PresentedCredentials};
pub use refusal::{CredentialRefusal, RefusalKind};
pub use resolver::{AllowAll, Allowlist, IdentityResolver};
pub use signature::{
    Authority, NONCE_KEY_BYTES, NonceBook, NonceDenied, NonceMemory, NonceUse, SignFault, SignatureRules, SignedHeaders,
    UnsignedRequest, content_digest, fresh_nonce, is_crowded, share_of_key, sign_request,
};
