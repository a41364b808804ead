//! Signed agent cards, in the three shapes there are: 1.0 and 0.3 with JSON Web Signatures, and the original's with the ADR's
//! signature beside that of the `rvagent-a2a` crate.

mod adr;
mod fault;
mod forms;
mod identity;
mod jku;
mod original;
mod rvagent;
mod schema;
mod sign;
mod verify;

pub use adr::{canonical_card_bytes, sign_adr_card, verify_card, verify_card_value};
pub use fault::CardFault;
pub use forms::CardShape;
pub use identity::{IDENTITY_EXTENSION, IdentityFacts};
pub use jku::jku_allowed;
pub use original::{covered_original_card, sign_original_card, verify_original_card};
pub use rvagent::{sign_rvagent_view, verify_rvagent_card};
pub use sign::sign_card;
pub use verify::{
    CardKeys, KeyHint, MAX_CANDIDATES, MAX_SIGNATURES, VerifiedCard, VerifiedSignature, VerifyRules, card_key_urls,
    check_signature_forms, verify_card_signatures,
};
