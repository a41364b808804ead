//! Checks a signed request: what it must cover, when it was made, for whom, and that it comes only once.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::{AgentId, Timestamp};
use http::HeaderMap;
use http::header::HeaderName;

use super::super::presented::{SIGNATURE, SIGNATURE_INPUT};
use super::super::{CredentialRefusal, RefusalKind, RequestFacts};
use super::base::{SignedTarget, covered, signature_base};
use super::dictionary::{MOST_BYTES, dictionary};
use super::nonces::{NONCE_KEY_BYTES, NonceBook, NonceDenied, NonceMemory, NonceUse};
use super::structured::{Bare, DictionaryMember, InnerList, Item};
use super::{ALGORITHM, Authority, CONTENT_DIGEST, TAG, verifies};
use crate::{SealKey, agent_id_from_pubkey};

const MOST_NONCE_BYTES: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureRules {
    /// The names of this node. A request signed for another name is rejected, regardless of its `Host`.
    pub authorities: Vec<Authority>,
    /// How far `created` may be from now, either way.
    pub signature_window_s: u32,
    /// How many nonces are remembered at once.
    pub most_nonces: usize,
}

impl SignatureRules {
    /// Each name costs one signature check more where the signature is for none of them.
    pub const MOST_AUTHORITIES: usize = 8;

    pub fn new(authorities: Vec<Authority>) -> Result<Self, &'static str> {
        if authorities.is_empty() || authorities.len() > Self::MOST_AUTHORITIES {
            return Err("signed requests need 1 to 8 authorities they may be meant for");
        }
        Ok(Self { authorities, signature_window_s: 300, most_nonces: 100_000 })
    }
}

/// Nonces are kept for so many seconds from the time of their signature, also where the window is shorter.
const KEPT_S: i64 = 300;

/// A request that was signed, by whom, and what tells this signature from all others of that key.
#[derive(Debug)]
pub(in super::super) struct SignedRequest {
    pub agent_id: AgentId,
    nonce: [u8; 32],
    until: Timestamp,
    /// How long its nonce is kept.
    kept_until: Timestamp,
    digest: Vec<u8>,
}

#[derive(Debug)]
pub(in super::super) struct Signatures {
    rules: SignatureRules,
    /// Shared by those that follow each other at one door.
    nonces: Arc<dyn NonceBook>,
    /// When this process checked its first signature.
    began: OnceLock<Timestamp>,
}

fn malformed(reason: impl Into<std::borrow::Cow<'static, str>>) -> CredentialRefusal {
    CredentialRefusal::new(RefusalKind::Malformed, reason)
}

impl Signatures {
    pub(in super::super) fn new(rules: SignatureRules, nonces: Option<Arc<dyn NonceBook>>) -> Self {
        Self { rules, nonces: nonces.unwrap_or_else(|| Arc::new(NonceMemory::default())), began: OnceLock::new() }
    }

    /// Remembers what an earlier one has seen, and goes on remembering for both.
    pub(in super::super) fn remember_with(&mut self, earlier: &Self) {
        self.nonces = Arc::clone(&earlier.nonces);
        self.began = earlier.began.clone();
    }

    /// How long a signature of this time is accepted. One that an earlier process may have seen counts no longer than its nonce
    /// was kept by any process, whose window may have been shorter.
    fn window_s(&self, created: i64, now: Timestamp) -> i64 {
        let (window, began) = (i64::from(self.rules.signature_window_s), *self.began.get_or_init(|| now));
        if seconds(created.saturating_sub(KEPT_S)) < began { window.min(KEPT_S) } else { window }
    }

    /// All but the body, which the signature covers only by its digest: `check_body` compares that.
    pub(in super::super) fn verify_head(
        &self,
        request: &RequestFacts<'_>,
        now: Timestamp,
    ) -> Result<SignedRequest, CredentialRefusal> {
        let (list, signature) = chosen(request.headers)?;
        self.check_covered(&list, request)?;
        let parameters = Parameters::read(&list)?;
        let until = parameters.check_time(self.window_s(parameters.created, now), now)?;
        let digest = digest(request.headers)?;
        let for_us = |authority: &Authority| {
            let base = signature_base(&list, target(request, authority), request.headers).map_err(malformed)?;
            Ok(verifies(&parameters.key, &base, &signature))
        };
        let names = request.meant_for.map_or(self.rules.authorities.as_slice(), std::slice::from_ref);
        for authority in names {
            if for_us(authority)? {
                let mut nonce = parameters.key.to_vec();
                nonce.extend_from_slice(parameters.nonce.as_bytes());
                let agent_id = agent_id_from_pubkey(&parameters.key);
                let nonce = nonce_of_key(SealKey::digest(&nonce), &parameters.key);
                let kept_until = until.max(seconds(parameters.created.saturating_add(KEPT_S)));
                return Ok(SignedRequest { agent_id, nonce, until, kept_until, digest });
            }
        }
        Err(CredentialRefusal::new(RefusalKind::BadSignature, "the signature is not one of this request to this node"))
    }

    /// Refuses a signature that was accepted before, or whose time ended while its body came in.
    pub(in super::super) async fn use_once(&self, signed: &SignedRequest, now: Timestamp) -> Result<(), CredentialRefusal> {
        if now > signed.until {
            return Err(CredentialRefusal::new(RefusalKind::ClockSkew, "a signature made too long ago"));
        }
        let nonce = NonceUse { nonce: signed.nonce, until: signed.kept_until, now, most: self.rules.most_nonces };
        self.nonces.use_once(nonce).await.map_err(|denied| match denied {
            NonceDenied::Replayed => {
                CredentialRefusal::new(RefusalKind::Replayed, format!("agent {} used this nonce before", signed.agent_id))
            }
            NonceDenied::Full => CredentialRefusal::new(RefusalKind::Unavailable, "no more nonces can be remembered for now"),
            NonceDenied::Unavailable(fault) => {
                CredentialRefusal::new(RefusalKind::Unavailable, format!("the use of a nonce cannot be kept: {fault}"))
            }
        })
    }

    fn check_covered(&self, list: &InnerList, request: &RequestFacts<'_>) -> Result<(), CredentialRefusal> {
        let names = covered(list).map_err(malformed)?;
        let covers = |name: &str| names.contains(&name);
        let whole = covers("@target-uri");
        for (name, there) in [
            ("@method", covers("@method")),
            ("@path", covers("@path")),
            ("content-digest", covers("content-digest")),
            ("@authority or @target-uri", covers("@authority") || whole),
            ("@query", covers("@query") || whole || !request.path_and_query.contains('?')),
        ] {
            if !there {
                return Err(malformed(format!("the signature does not cover {name}")));
            }
        }
        Ok(())
    }
}

fn target<'a>(request: &RequestFacts<'a>, authority: &'a Authority) -> SignedTarget<'a> {
    SignedTarget {
        method: request.method.as_str(),
        scheme: authority.scheme,
        authority: &authority.host_and_port,
        path_and_query: request.path_and_query,
    }
}

/// The one signature that counts. A single one counts with any label and tag. Of several, the one tagged
/// `chancery` counts. If none or more than one is, the choice is unclear and the request is rejected. The
/// others are ignored.
fn chosen(headers: &HeaderMap) -> Result<(InnerList, Vec<u8>), CredentialRefusal> {
    let inputs = field(headers, &SIGNATURE_INPUT)?;
    let mut signatures = field(headers, &SIGNATURE)?;
    let tagged = |member: &DictionaryMember| match member {
        DictionaryMember::List(list) => list.parameter("tag") == Some(&Bare::Text(TAG.to_owned())),
        DictionaryMember::Item(_) => false,
    };
    let alone = inputs.len() == 1;
    let mut candidates = inputs.into_iter().filter(|(_, member)| alone || tagged(member));
    let (Some((label, DictionaryMember::List(list))), None) = (candidates.next(), candidates.next()) else {
        return Err(malformed("not exactly one signature is meant for this node"));
    };
    let at = signatures.iter().position(|(name, _)| *name == label);
    match at.map(|at| signatures.swap_remove(at).1) {
        Some(DictionaryMember::Item(Item { value: Bare::Bytes(signature), .. })) => Ok((list, signature)),
        _ => Err(malformed("Signature-Input names a signature that is not there")),
    }
}

/// A header that is a dictionary, over all its lines.
fn field(headers: &HeaderMap, name: &HeaderName) -> Result<Vec<(String, DictionaryMember)>, CredentialRefusal> {
    let mut joined = String::new();
    for value in headers.get_all(name) {
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(value.to_str().map_err(|_| malformed(format!("{name} is not ASCII")))?);
        if joined.len() > MOST_BYTES {
            return Err(malformed(format!("{name} is longer than {MOST_BYTES} bytes")));
        }
    }
    dictionary(&joined).ok_or_else(|| malformed(format!("{name} is no dictionary")))
}

fn digest(headers: &HeaderMap) -> Result<Vec<u8>, CredentialRefusal> {
    let digests = field(headers, &CONTENT_DIGEST)?;
    match digests.into_iter().find(|(name, _)| name == "sha-256") {
        Some((_, DictionaryMember::Item(Item { value: Bare::Bytes(digest), .. }))) => Ok(digest),
        _ => Err(malformed("Content-Digest has no sha-256")),
    }
}

impl SignedRequest {
    pub(in super::super) fn check_body(&self, body: &[u8]) -> Result<(), CredentialRefusal> {
        if *self.digest == SealKey::digest(body) {
            Ok(())
        } else {
            Err(CredentialRefusal::new(RefusalKind::BadSignature, "the body is not the one that Content-Digest is about"))
        }
    }
}

/// The time of a signature. It has at most fifteen digits, so that nothing overflows before the last step.
fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds.saturating_mul(1_000_000))
}

/// The name of a nonce begins with that of its key: so the store can count the nonces of one key.
fn nonce_of_key(mut nonce: [u8; 32], key: &[u8; 32]) -> [u8; 32] {
    nonce[..NONCE_KEY_BYTES].copy_from_slice(&SealKey::digest(key)[..NONCE_KEY_BYTES]);
    nonce
}

struct Parameters<'a> {
    created: i64,
    expires: Option<i64>,
    nonce: &'a str,
    key: [u8; 32],
}

impl<'a> Parameters<'a> {
    fn read(list: &'a InnerList) -> Result<Self, CredentialRefusal> {
        let text = |name: &'static str| match list.parameter(name) {
            Some(Bare::Text(text)) => Ok(text.as_str()),
            _ => Err(malformed(format!("the signature has no {name}"))),
        };
        if text("alg")? != ALGORITHM {
            return Err(CredentialRefusal::new(RefusalKind::WrongAlgorithm, "a signature that is not ed25519"));
        }
        let Some(Bare::Integer(created)) = list.parameter("created") else {
            return Err(malformed("the signature has no created"));
        };
        let expires = match list.parameter("expires") {
            None => None,
            Some(Bare::Integer(expires)) => Some(*expires),
            Some(_) => return Err(malformed("expires is no integer")),
        };
        let nonce = text("nonce")?;
        if nonce.is_empty() || nonce.len() > MOST_NONCE_BYTES {
            return Err(malformed(format!("a nonce has 1 to {MOST_NONCE_BYTES} bytes")));
        }
        let key = URL_SAFE_NO_PAD.decode(text("keyid")?).ok().and_then(|key| <[u8; 32]>::try_from(key).ok());
        let key = key.ok_or_else(|| malformed("keyid is no Ed25519 public key in base64url"))?;
        Ok(Self { created: *created, expires, nonce, key })
    }

    /// The last moment at which this signature is accepted.
    fn check_time(&self, window_s: i64, now: Timestamp) -> Result<Timestamp, CredentialRefusal> {
        let at = seconds;
        let until = at(self.created + window_s);
        if now < at(self.created - window_s) {
            return Err(CredentialRefusal::new(RefusalKind::ClockSkew, "a signature from the future"));
        }
        if now > until {
            return Err(CredentialRefusal::new(RefusalKind::ClockSkew, "a signature made too long ago"));
        }
        if self.expires.is_some_and(|expires| now > at(expires)) {
            return Err(CredentialRefusal::new(RefusalKind::Expired, "a signature that has expired"));
        }
        Ok(until)
    }
}
