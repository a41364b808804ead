//! Hop tokens: what an agent is given with a task and sends along when it calls on, so that the call is known to come from it.
//!
//! A token is `NODE.BODY`, then `.NODE.HANDLE` for each node before this one that the task came through.
//! `NODE` is the tag of a node, eight hex digits. `BODY` is base64url over a tag of the key (2 bytes), the
//! claims (35 to 51 bytes) and their mark. The mark is 16 bytes of HMAC-SHA256 over the node's tag, the key's
//! tag and the claims. Other nodes forward `BODY` as the value of a member of `tracestate`.
//!
//! Only the node that issued a token verifies it. So a MAC with the node's secret is as good as a public
//! signature, at a twentieth of the cost. For the same reason a token names its task and repeats nothing that
//! is on record there. A token with all of it as JSON had 670 bytes; this one has at most 101. The secret is
//! derived from the key of hop tokens alone, so that nothing made with another key is a valid token.

mod claims;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use aws_lc_rs::{constant_time, digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::Timestamp;

pub use self::claims::{BudgetCaps, HopClaims, PlaceDigest};
use crate::keys::{Algorithm, HopTokens as Domain, KeyRing, KeyUse};

/// A longer token is neither made nor looked at.
pub const MAX_HOP_TOKEN: usize = 4 * 1024;
/// No token lasts longer, however long its task may run: it is renewed.
pub const MAX_HOP_TOKEN_LIFE: Duration = Duration::from_secs(60 * 60);
/// How far the clocks of nodes that share a key may be apart.
pub const CLOCK_LEEWAY: Duration = Duration::from_secs(30);
/// So many members of `tracestate` are read of one token.
pub const MOST_MARKS: usize = 8;
/// The bytes of a key's tag.
const KEY_TAG: usize = 2;
/// The bytes of a mark.
const MARK: usize = 16;

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
    #[error("the hop token is one of another node")]
    Foreign,
}

/// Why no token was made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MintFault {
    #[error("no key signs hop tokens at this time")]
    NoKey,
    #[error("the hop token would have more than {MAX_HOP_TOKEN} bytes")]
    TooLarge,
    #[error("the id of its task is not a UUID, or its time is before 1970 or after 2106")]
    Unwritten,
}

/// Makes the tokens of a node and knows them again.
#[derive(Debug)]
pub struct HopTokens {
    node: Arc<str>,
    keys: ArcSwap<Vec<Key>>,
}

#[derive(Debug)]
struct Key {
    secret: hmac::Key,
    tag: [u8; KEY_TAG],
    given: bool,
    made_at: Timestamp,
    used_from: Timestamp,
    retires_at: Option<Timestamp>,
}

impl Key {
    fn retired(&self, now: Timestamp) -> bool {
        self.retires_at.is_some_and(|end| end <= now)
    }

    fn mark(&self, node: &str, content: &[u8]) -> hmac::Tag {
        let mut mark = hmac::Context::with_key(&self.secret);
        mark.update(node.as_bytes());
        mark.update(content);
        mark.sign()
    }
}

impl HopTokens {
    /// The node is named by its tag: eight lower-case hex digits, as in its member of `tracestate`.
    pub fn new(node: impl Into<Arc<str>>, ring: &KeyRing) -> Self {
        Self { node: node.into(), keys: ArcSwap::from_pointee(keys_of(ring)) }
    }

    /// Goes on with the keys that are in the ring now. Tokens of keys that are gone are no longer known.
    pub fn take_keys(&self, ring: &KeyRing) {
        self.keys.store(Arc::new(keys_of(ring)));
    }

    /// A token with these claims, and with the members of `tracestate` of the nodes before this one. It ends with the claims, but after
    /// [`MAX_HOP_TOKEN_LIFE`] at the latest.
    pub fn mint(&self, claims: &HopClaims, members: &[&str]) -> Result<String, MintFault> {
        let keys = self.keys.load();
        let now = claims.issued_at;
        let usable = keys.iter().filter(|key| key.used_from <= now && !key.retired(now));
        let key = usable.max_by_key(|key| (key.given, key.used_from, key.made_at)).ok_or(MintFault::NoKey)?;
        let mut body = Vec::with_capacity(80);
        body.extend_from_slice(&key.tag);
        claims.write(&mut body)?;
        let mark = key.mark(&self.node, &body);
        body.extend_from_slice(&mark.as_ref()[..MARK]);
        let mut token = format!("{}.", self.node);
        URL_SAFE_NO_PAD.encode_string(&body, &mut token);
        for (node, handle) in members.iter().filter_map(|member| member_of_node(member)) {
            token.extend([".", node, ".", handle]);
        }
        if token.len() > MAX_HOP_TOKEN { Err(MintFault::TooLarge) } else { Ok(token) }
    }

    /// What a token of ours says.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<HopClaims, HopTokenFault> {
        if token.len() > MAX_HOP_TOKEN {
            return Err(HopTokenFault::TooLarge);
        }
        let body = match parts(token) {
            Some((node, body, _)) if *node == *self.node => body,
            Some(_) => return Err(HopTokenFault::Foreign),
            None if is_jws(token) => return Err(HopTokenFault::Foreign),
            None => return Err(HopTokenFault::Malformed("it does not begin with the tag of a node")),
        };
        self.verify_body(body, now)
    }

    /// What the body of a token of ours says, which is how other nodes pass it on.
    pub fn verify_body(&self, body: &str, now: Timestamp) -> Result<HopClaims, HopTokenFault> {
        let bytes = decoded(body)?;
        let (content, mark) = bytes.split_at(bytes.len() - MARK);
        let (tag, claims) = content.split_at(KEY_TAG);
        let keys = self.keys.load();
        let mut fitting = keys.iter().filter(|key| key.tag == *tag && !key.retired(now)).peekable();
        if fitting.peek().is_none() {
            return Err(HopTokenFault::UnknownKey);
        }
        let is_marked = |key: &Key| {
            let expected = key.mark(&self.node, content);
            constant_time::verify_slices_are_equal(&expected.as_ref()[..MARK], mark).is_ok()
        };
        // Two keys may have one tag.
        if !fitting.any(is_marked) {
            return Err(HopTokenFault::BadSignature);
        }
        let claims = HopClaims::read(claims)?;
        if now >= claims.expires_at {
            return Err(HopTokenFault::Expired);
        }
        if now + CLOCK_LEEWAY < claims.issued_at {
            return Err(HopTokenFault::NotYet);
        }
        Ok(claims)
    }
}

/// The readable content of another node's token. Nothing of it is proven: it may only restrict the call it
/// came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignClaims {
    /// Members of `tracestate`, each as `NODE@chancery=HANDLE`: the other node's own, and those of nodes that the call came through.
    pub marks: Vec<String>,
    pub budget: BudgetCaps,
}

impl ForeignClaims {
    /// What is there to be read of it, without believing that it is anybody's.
    pub fn of(token: &str) -> Option<Self> {
        let (node, body, members) = parts(token).filter(|_| token.len() <= MAX_HOP_TOKEN)?;
        let bytes = decoded(body).ok()?;
        let claims = HopClaims::read(&bytes[KEY_TAG..bytes.len() - MARK]).ok()?;
        let members: Vec<&str> = members.split('.').collect();
        let pairs = members.as_chunks().0.iter().map(|[node, handle]| (*node, *handle));
        let marks = std::iter::once((node, body)).chain(pairs).map(|(node, handle)| format!("{node}{MEMBER}{handle}"));
        let marks = marks.filter(|mark| member_of_node(mark).is_some()).take(MOST_MARKS).collect();
        Some(Self { marks, budget: claims.budget })
    }
}

/// Between the tag of a node and its handle, in a member of `tracestate`.
const MEMBER: &str = "@chancery=";

/// The tag and the handle of a node, if it can be a node's member of `tracestate`.
fn member_of_node(mark: &str) -> Option<(&str, &str)> {
    /// No value of `tracestate` may be longer.
    const LONGEST: usize = 256;
    let (node, handle) = mark.split_once(MEMBER)?;
    (is_node(node) && is_base64url(handle) && handle.len() <= LONGEST).then_some((node, handle))
}

fn is_node(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

fn is_base64url(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// The tag of the node, the body, and what comes behind it.
fn parts(token: &str) -> Option<(&str, &str, &str)> {
    let (node, rest) = token.split_once('.').filter(|(node, _)| is_node(node))?;
    let (body, members) = rest.split_once('.').unwrap_or((rest, ""));
    Some((node, body, members))
}

/// Tokens of other systems, and those of nodes before this form, are compact JWS. They say nothing here.
fn is_jws(token: &str) -> bool {
    token.starts_with("eyJ") && token.split('.').count() == 3 && token.split('.').all(is_base64url)
}

fn decoded(body: &str) -> Result<Vec<u8>, HopTokenFault> {
    let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| HopTokenFault::Malformed("its body is not base64url"))?;
    if bytes.len() < KEY_TAG + MARK { Err(HopTokenFault::Malformed("it is shorter than its claims")) } else { Ok(bytes) }
}

fn keys_of(ring: &KeyRing) -> Vec<Key> {
    let ours = ring.records().iter().filter(|record| record.key_use == KeyUse::HopTokens && record.owner.is_none());
    ours.filter(|record| record.algorithm() == Algorithm::EdDsa)
        .filter_map(|record| {
            let secret = ring.signing_by_kid::<Domain>(&record.kid)?.marking().ok()?;
            let tag = *digest::digest(&digest::SHA256, record.kid.as_bytes()).as_ref().first_chunk()?;
            Some(Key {
                secret,
                tag,
                given: record.given,
                made_at: record.made_at,
                used_from: record.used_from,
                retires_at: record.retires_at,
            })
        })
        .collect()
}
