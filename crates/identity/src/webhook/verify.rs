//! Whether a message comes from whom it says, is for us, and is fresh.

use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chancery_protocol::Timestamp;
use http::HeaderMap;

use super::id::{WebhookId, audience};
use super::jwt::PushKeys;
use super::secret::HmacSecret;
use super::sign::is_an_id;
use super::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};

/// How far the sender's clock may be from ours, either way.
pub const TOLERANCE: Duration = Duration::from_secs(300);
/// More signatures than this are somebody's mistake or attack.
pub const MOST_SIGNATURES: usize = 32;

/// Why a signed notification is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyFault {
    /// A header is missing.
    #[error("there is no {0} header")]
    Missing(&'static str),
    /// A header appears twice or cannot be read.
    #[error("the {0} header is there more than once, or cannot be read")]
    Malformed(&'static str),
    /// The message is too old.
    #[error("the message is {seconds} seconds old")]
    TooOld {
        /// The age in seconds.
        seconds: u64,
    },
    /// The time of the message is in the future.
    #[error("the message is from {seconds} seconds ahead")]
    TooNew {
        /// The seconds until the time of the message.
        seconds: u64,
    },
    /// There are too many signatures.
    #[error("there are more than {MOST_SIGNATURES} signatures")]
    TooManySignatures,
    /// There is no signature of a kind that the receiver has a key for.
    #[error("there is no signature of a kind we have a key for")]
    NoKey,
    /// No signature is right.
    #[error("no signature is right")]
    BadSignature,
    /// The signature is right, and the message is not for us.
    #[error("the message was signed for another receiver")]
    OtherAudience,
}

/// A signature scheme of Standard Webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HMAC-SHA256.
    V1,
    /// Ed25519.
    V1a,
}

/// What is certain about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedWebhook {
    pub id: String,
    /// What the id says, if it is one of ours.
    pub made_of: Option<WebhookId>,
    pub sent_at: Timestamp,
    pub scheme: Scheme,
}

/// What a receiver knows of its senders. Keys never come from the message.
#[derive(Clone, Debug)]
pub struct Verifier {
    secrets: Vec<HmacSecret>,
    keys: PushKeys,
    audiences: Vec<String>,
    tolerance: Duration,
}

impl Default for Verifier {
    fn default() -> Self {
        Self { secrets: Vec::new(), keys: PushKeys::default(), audiences: Vec::new(), tolerance: TOLERANCE }
    }
}

impl Verifier {
    /// A secret that is shared with the sender. Any of several will do.
    #[must_use]
    pub fn secret(mut self, secret: HmacSecret) -> Self {
        self.secrets.push(secret);
        self
    }

    #[must_use]
    pub fn keys(mut self, keys: PushKeys) -> Self {
        self.keys = keys;
        self
    }

    /// Messages have to be for this URL, exactly as it was registered. Any of several will do. Who shares its keys with other
    /// receivers must say it: without, a message for one of them passes here.
    #[must_use]
    pub fn url(mut self, url: &str) -> Self {
        self.audiences.push(audience(url));
        self
    }

    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Whether anything could be verified at all.
    pub fn has_keys(&self) -> bool {
        !self.secrets.is_empty() || !self.keys.is_empty()
    }

    pub fn push_keys(&self) -> &PushKeys {
        &self.keys
    }

    pub fn verify(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<VerifiedWebhook, VerifyFault> {
        let id = one(headers, ID_HEADER)?;
        let seconds = seconds(one(headers, TIMESTAMP_HEADER)?)?;
        let signatures = one(headers, SIGNATURE_HEADER)?;
        if !is_an_id(id) {
            return Err(VerifyFault::Malformed(ID_HEADER));
        }
        let scheme = self.find_signature(id, seconds, body, signatures)?;
        // Only now is the time more than somebody's word; and whoever has a copy learns nothing about our clock before.
        self.check_time(seconds, now)?;
        let made_of: Option<WebhookId> = id.parse().ok();
        let for_us = |made_of: &WebhookId| self.audiences.contains(&made_of.audience);
        if !self.audiences.is_empty() && !made_of.as_ref().is_some_and(for_us) {
            return Err(VerifyFault::OtherAudience);
        }
        Ok(VerifiedWebhook {
            id: id.to_owned(),
            made_of,
            sent_at: Timestamp::from_micros(seconds.saturating_mul(1_000_000)),
            scheme,
        })
    }

    /// Every signature is compared with every key, whether or not one was right before, so that the time it takes says nothing.
    fn find_signature(&self, id: &str, seconds: i64, body: &[u8], header: &str) -> Result<Scheme, VerifyFault> {
        if header.split(' ').count() > MOST_SIGNATURES {
            return Err(VerifyFault::TooManySignatures);
        }
        let tags: Vec<_> = self.secrets.iter().map(|secret| secret.tag(id, seconds, body)).collect();
        let (mut found, mut tried) = (None, false);
        for (version, encoded) in header.split(' ').filter_map(|signature| signature.split_once(',')) {
            let signature = STANDARD.decode(encoded);
            match version {
                "v1" => {
                    tried |= !tags.is_empty();
                    let Ok(signature) = signature else { continue };
                    for tag in &tags {
                        if verify_slices_are_equal(tag.as_ref(), &signature).is_ok() {
                            found = found.or(Some(Scheme::V1));
                        }
                    }
                }
                "v1a" => {
                    tried |= self.keys.ed25519().next().is_some();
                    let Ok(signature) = signature else { continue };
                    for key in self.keys.ed25519() {
                        if key.verify_push(id, seconds, body, &signature) {
                            found = found.or(Some(Scheme::V1a));
                        }
                    }
                }
                _ => {}
            }
        }
        found.ok_or(if tried { VerifyFault::BadSignature } else { VerifyFault::NoKey })
    }

    fn check_time(&self, seconds: i64, now: Timestamp) -> Result<(), VerifyFault> {
        let age = now.micros().div_euclid(1_000_000).saturating_sub(seconds);
        if age.unsigned_abs() <= self.tolerance.as_secs() {
            return Ok(());
        }
        let seconds = age.unsigned_abs();
        Err(if age > 0 { VerifyFault::TooOld { seconds } } else { VerifyFault::TooNew { seconds } })
    }
}

/// A header that is there once: of two, it is unclear which one was signed.
fn one<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, VerifyFault> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or(VerifyFault::Missing(name))?;
    if values.next().is_some() {
        return Err(VerifyFault::Malformed(name));
    }
    value.to_str().map_err(|_| VerifyFault::Malformed(name))
}

/// Only as a sender writes it: what is signed is the text.
fn seconds(text: &str) -> Result<i64, VerifyFault> {
    let number: i64 = text.parse().map_err(|_| VerifyFault::Malformed(TIMESTAMP_HEADER))?;
    if number.to_string() == text { Ok(number) } else { Err(VerifyFault::Malformed(TIMESTAMP_HEADER)) }
}
