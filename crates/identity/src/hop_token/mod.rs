//! Hop tokens: what an agent is given with a task and sends along when it calls on, so that the call is known to come from it.
//!
//! A token is a compact JWS under HMAC-SHA256. Only the node that issued a token can say anything about it, so a secret that only it
//! has is as good as a signature that everybody could check, and costs a twentieth. The secret comes from the key of hop tokens and
//! from nothing else, so that nothing made with any other key can be taken for a token.

mod claims;
mod memory;
mod read;

use std::sync::{Arc, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::Timestamp;

pub use self::claims::{BudgetCaps, HopClaims, TokenAudience, path_digest};
use self::memory::HopTokenCache;
use crate::keys::{Algorithm, HopTokens as Domain, KeyRing, KeyUse};

/// A longer token is neither made nor looked at.
pub const MAX_HOP_TOKEN: usize = 16 * 1024;
/// No token lasts longer, however long its task may run: it is made anew.
pub const MAX_HOP_TOKEN_LIFE: Duration = Duration::from_secs(60 * 60);
/// How far the clocks of nodes that share a key may be apart.
pub const CLOCK_LEEWAY: Duration = Duration::from_secs(30);
/// So many members of `tracestate` are read of one token.
pub const MOST_MARKS: usize = 8;
const TYPE: &str = "chancery-hop+jwt";

/// Why a token is not believed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum HopTokenFault {
    #[error("not a hop token: {0}")]
    Malformed(&'static str),
    #[error("the hop token is longer than {MAX_HOP_TOKEN} bytes")]
    TooLarge,
    #[error("the hop token names no key of this node")]
    UnknownKey,
    #[error("the signature of the hop token is wrong")]
    BadSignature,
    #[error("the hop token has expired")]
    Expired,
    #[error("the hop token is not valid yet")]
    NotYet,
    /// Not ours to judge.
    #[error("the hop token is one of {issuer:?}")]
    Foreign { issuer: String },
}

/// Why no token was made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MintFault {
    #[error("no key signs hop tokens at this time")]
    NoKey,
    #[error("the names in it are so long that the hop token would have more than {MAX_HOP_TOKEN} bytes")]
    TooLarge,
    #[error("a claim cannot be written")]
    Unwritten,
}

/// Makes the tokens of a node and knows them again.
#[derive(Debug)]
pub struct HopTokens {
    issuer: Arc<str>,
    keys: ArcSwap<Vec<Key>>,
    /// Read on every call, written once for each token. Replaced as a whole with the keys.
    known: RwLock<Arc<HopTokenCache>>,
}

#[derive(Debug)]
struct Key {
    secret: hmac::Key,
    /// The whole first part of its tokens: any other, say with another algorithm, is none of them.
    header: String,
    given: bool,
    made_at: Timestamp,
    used_from: Timestamp,
    retires_at: Option<Timestamp>,
}

impl Key {
    fn retired(&self, now: Timestamp) -> bool {
        self.retires_at.is_some_and(|end| end <= now)
    }
}

impl HopTokens {
    pub fn new(issuer: impl Into<Arc<str>>, ring: &KeyRing) -> Self {
        let keys = ArcSwap::from_pointee(keys_of(ring));
        Self { issuer: issuer.into(), keys, known: RwLock::default() }
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Goes on with the keys that are in the ring now. Tokens of keys that are gone are no longer known.
    pub fn take_keys(&self, ring: &KeyRing) {
        self.keys.store(Arc::new(keys_of(ring)));
        *self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::default();
    }

    /// A token with these claims. It ends with them, but after [`MAX_HOP_TOKEN_LIFE`] at the latest.
    pub fn mint(&self, claims: &HopClaims) -> Result<String, MintFault> {
        let keys = self.keys.load();
        let now = claims.issued_at;
        let usable = keys.iter().filter(|key| key.used_from <= now && !key.retired(now));
        let key = usable.max_by_key(|key| (key.given, key.used_from, key.made_at)).ok_or(MintFault::NoKey)?;
        let payload = claims.written(&self.issuer).map_err(|_| MintFault::Unwritten)?;
        let mut token = String::with_capacity(key.header.len() + payload.len() * 4 / 3 + 96);
        token.push_str(&key.header);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(&payload, &mut token);
        let mark = hmac::sign(&key.secret, token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(mark, &mut token);
        if token.len() > MAX_HOP_TOKEN { Err(MintFault::TooLarge) } else { Ok(token) }
    }

    /// What a token of ours says. An agent sends the same one with many calls, so the second time costs a hash.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Arc<HopClaims>, HopTokenFault> {
        if token.len() > MAX_HOP_TOKEN {
            return Err(HopTokenFault::TooLarge);
        }
        let parts = read::JwsParts::of(token)?;
        if !self.keys.load().iter().any(|key| key.header == parts.header) {
            // Tokens of other nodes come with every call through a chain of them; they are told without being taken apart.
            parts.check_foreign(&self.issuer)?;
        }
        let hash = digest::digest(&digest::SHA256, token.as_bytes());
        // Taken before the keys are looked at: what is verified with keys that are then replaced is kept where nobody looks.
        let known = self.known.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let claims = match known.find(hash.as_ref(), now) {
            Some(claims) => claims,
            None => {
                let (claims, until) = self.read(&parts, now)?;
                let claims = Arc::new(claims);
                known.keep(hash.as_ref(), claims.clone(), until);
                claims
            }
        };
        if now >= claims.expires_at {
            return Err(HopTokenFault::Expired);
        }
        if now + CLOCK_LEEWAY < claims.issued_at {
            return Err(HopTokenFault::NotYet);
        }
        Ok(claims)
    }

    /// Everything but the time; with the moment from which its key no longer counts.
    fn read(&self, parts: &read::JwsParts<'_>, now: Timestamp) -> Result<(HopClaims, Timestamp), HopTokenFault> {
        let payload = parts.payload()?;
        read::check_issuer(&payload, &self.issuer)?;
        let keys = self.keys.load();
        let Some(key) = keys.iter().find(|key| key.header == parts.header && !key.retired(now)) else {
            return Err(parts.header_fault());
        };
        hmac::verify(&key.secret, parts.signed.as_bytes(), &parts.mark()?).map_err(|_| HopTokenFault::BadSignature)?;
        Ok((HopClaims::read(payload)?, key.retires_at.unwrap_or(Timestamp::from_micros(i64::MAX))))
    }
}

/// What a token of another node says to those it is none of. Nothing of it is proven: it may only bind the call it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignClaims {
    /// Members of `tracestate`, each as `NODE@chancery=HANDLE`: the other node's own, and those of nodes that the call came through.
    pub marks: Vec<String>,
    pub budget: BudgetCaps,
}

impl ForeignClaims {
    /// What is there to be read of it, without believing that it is anybody's.
    pub fn of(token: &str) -> Option<Self> {
        let parts = read::JwsParts::of(token).ok().filter(|_| token.len() <= MAX_HOP_TOKEN)?;
        let mut payload = parts.payload().ok()?;
        let marks = match payload.remove("marks") {
            Some(serde_json::Value::String(marks)) => {
                marks.split(',').filter(|mark| is_member(mark)).take(MOST_MARKS).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let budget = payload.remove("budget").and_then(|budget| serde_json::from_value(budget).ok()).unwrap_or_default();
        Some(Self { marks, budget })
    }
}

/// Whether it can be a node's member of `tracestate`.
fn is_member(mark: &str) -> bool {
    /// No value of `tracestate` may be longer.
    const LONGEST: usize = 256;
    let Some((key, handle)) = mark.split_once('=') else { return false };
    let Some(node) = key.strip_suffix("@chancery") else { return false };
    let is_node = node.len() == 8 && node.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    let is_handle = !handle.is_empty() && handle.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_node && is_handle && handle.len() <= LONGEST
}

fn keys_of(ring: &KeyRing) -> Vec<Key> {
    let ours = ring.records().iter().filter(|record| record.key_use == KeyUse::HopTokens && record.owner.is_none());
    ours.filter(|record| record.algorithm() == Algorithm::EdDsa)
        .filter_map(|record| {
            let secret = ring.signing_by_kid::<Domain>(&record.kid)?.marking().ok()?;
            let header = format!(r#"{{"alg":"HS256","kid":"{}","typ":"{TYPE}"}}"#, record.kid);
            Some(Key {
                secret,
                header: URL_SAFE_NO_PAD.encode(header),
                given: record.given,
                made_at: record.made_at,
                used_from: record.used_from,
                retires_at: record.retires_at,
            })
        })
        .collect()
}
