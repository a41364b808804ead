//! Tokens of trusted issuers (JWT): the checks of RFC 7519 and RFC 8725, with the time as an argument.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::{Caller, CallerStanding, IdentityProof, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::caller::{DEFAULT_TENANT, checked_name};
use super::token_memory::{TokenMemory, VerifiedToken};
use super::{
    Accept, Callers, CredentialRefusal, Issuer, Issuers, KeyHash, KeySet, KeySets, Known, RefusalKind, TokenAlgorithm, hex,
};
use crate::SealKey;

/// A token without `kid` may be tried with this many keys.
const MOST_TRIES: usize = 8;
/// Longer subjects are named by their hash.
const MOST_SUBJECT_BYTES: usize = 128;

#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) issuers: Issuers,
    key_sets: Arc<dyn KeySets>,
    memory: TokenMemory,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    cty: Option<Value>,
    crit: Option<Value>,
    kid: Option<String>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Option<Audience>,
    exp: Option<f64>,
    nbf: Option<f64>,
    iat: Option<f64>,
    #[serde(flatten)]
    other: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Tokens {
    pub(super) fn new(issuers: Issuers, key_sets: Arc<dyn KeySets>, remembered_s: u32) -> Self {
        Self { issuers, key_sets, memory: TokenMemory::new(remembered_s) }
    }

    /// What a token proved that was verified a moment ago.
    pub(super) fn remembered(&self, hash: &KeyHash, now: Timestamp) -> Option<Arc<VerifiedToken>> {
        self.memory.find(hash, now)
    }

    /// The caller that a token is for. Looked up again for each call, so that a subject removed from the
    /// records is rejected at once.
    pub(super) fn caller(verified: &VerifiedToken, callers: &Callers, now: Timestamp) -> Result<Known, CredentialRefusal> {
        verified.check_time(now)?;
        callers.by_token(&verified.issuer, &verified.subject).or_else(|| verified.own.clone()).ok_or_else(|| {
            CredentialRefusal::new(RefusalKind::Unknown, format!("no caller is this subject of {}", verified.issuer))
        })
    }

    /// Verifies a token and remembers it.
    pub(super) async fn verify(
        &self,
        hash: &KeyHash,
        token: &str,
        now: Timestamp,
    ) -> Result<Arc<VerifiedToken>, CredentialRefusal> {
        let malformed = |what: &'static str| CredentialRefusal::new(RefusalKind::Malformed, what);
        let (message, signature) = token.rsplit_once('.').ok_or_else(|| malformed("not a token"))?;
        let (header, claims) = message.split_once('.').ok_or_else(|| malformed("not a token"))?;
        let header: Header = part(header).ok_or_else(|| malformed("the header of the token cannot be read"))?;
        let claims: Claims = part(claims).ok_or_else(|| malformed("the claims of the token cannot be read"))?;
        let algorithm = header.check()?;
        let Some(issuer) = self.issuers.by_iss(&claims.iss) else {
            return Err(CredentialRefusal::new(RefusalKind::Unknown, "a token of an issuer that is not trusted here"));
        };
        if !issuer.algorithms.contains(&algorithm) {
            let reason = format!("{algorithm:?} is not accepted of {}", issuer.name);
            return Err(CredentialRefusal::new(RefusalKind::WrongAlgorithm, reason));
        }
        // Before the signature: a token that is no use anyway costs no request to the issuer.
        let verified = Arc::new(claims.check(issuer, now)?);
        self.check_signature(issuer, &header, algorithm, message.as_bytes(), signature).await?;
        self.memory.keep(*hash, verified.clone(), now);
        Ok(verified)
    }

    async fn check_signature(
        &self,
        issuer: &Issuer,
        header: &Header,
        algorithm: TokenAlgorithm,
        message: &[u8],
        signature: &str,
    ) -> Result<(), CredentialRefusal> {
        let mut keys = self.key_set(issuer, false).await?;
        let kid = header.kid.as_deref();
        if keys.named(kid).next().is_none() {
            keys = self.key_set(issuer, true).await?;
        }
        if keys.named(kid).next().is_none() {
            return Err(CredentialRefusal::new(RefusalKind::Unknown, format!("{} has no key of that name", issuer.name)));
        }
        let mut fitting = keys.named(kid).filter(|key| key.serves(algorithm)).take(MOST_TRIES).peekable();
        if fitting.peek().is_none() {
            let reason = format!("the key of {} is not for {algorithm:?}", issuer.name);
            return Err(CredentialRefusal::new(RefusalKind::WrongAlgorithm, reason));
        }
        if fitting.any(|key| key.verifies(signature, message, algorithm)) {
            Ok(())
        } else {
            Err(CredentialRefusal::new(RefusalKind::BadSignature, format!("not signed by {}", issuer.name)))
        }
    }

    async fn key_set(&self, issuer: &Issuer, refresh: bool) -> Result<Arc<KeySet>, CredentialRefusal> {
        let fault = |fault| CredentialRefusal::new(RefusalKind::Unavailable, format!("no keys of {}: {fault}", issuer.name));
        self.key_sets.key_set(issuer, refresh).await.map_err(fault)
    }
}

fn part<T: for<'de> Deserialize<'de>>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

impl Header {
    fn check(&self) -> Result<TokenAlgorithm, CredentialRefusal> {
        let Some(algorithm) = TokenAlgorithm::named(&self.alg) else {
            return Err(CredentialRefusal::new(RefusalKind::WrongAlgorithm, "an algorithm that no issuer may use"));
        };
        // Other types are tokens for other purposes, signed by the same key.
        let for_access = |typ: &str| ["jwt", "at+jwt", "application/at+jwt"].iter().any(|one| typ.eq_ignore_ascii_case(one));
        if !self.typ.as_deref().is_none_or(for_access) || self.cty.is_some() {
            return Err(CredentialRefusal::new(RefusalKind::Malformed, "a token of another type"));
        }
        if self.crit.is_some() {
            return Err(CredentialRefusal::new(RefusalKind::Malformed, "a token with critical extensions"));
        }
        Ok(algorithm)
    }
}

impl Claims {
    fn check(&self, issuer: &Issuer, now: Timestamp) -> Result<VerifiedToken, CredentialRefusal> {
        let ours = |audience: &String| issuer.audiences.contains(audience);
        let for_us = match &self.aud {
            None => false,
            Some(Audience::One(audience)) => ours(audience),
            Some(Audience::Many(audiences)) => audiences.iter().any(ours),
        };
        if !for_us {
            return Err(CredentialRefusal::new(
                RefusalKind::WrongAudience,
                format!("a token of {} for another audience", issuer.name),
            ));
        }
        let leeway = i64::from(issuer.leeway_s) * 1_000_000;
        let expires =
            micros(self.exp)?.ok_or_else(|| CredentialRefusal::new(RefusalKind::Malformed, "a token that never expires"))?;
        let issued = micros(self.iat)?;
        check_lifetime(issuer, issued, expires)?;
        let earliest = micros(self.nbf)?.into_iter().chain(issued).max().unwrap_or(i64::MIN);
        let subject = self.text(&issuer.caller_claim)?.to_owned();
        let verified = VerifiedToken {
            issuer: issuer.name.clone(),
            own: self.own_caller(issuer, &subject)?,
            subject,
            from: Timestamp::from_micros(earliest.saturating_sub(leeway)),
            until: Timestamp::from_micros(expires.saturating_add(leeway)),
        };
        verified.check_time(now)?;
        Ok(verified)
    }

    fn text(&self, claim: &str) -> Result<&str, CredentialRefusal> {
        let value = if claim == "iss" { Some(self.iss.as_str()) } else { self.other.get(claim).and_then(Value::as_str) };
        value
            .filter(|text| !text.is_empty())
            .ok_or_else(|| CredentialRefusal::new(RefusalKind::Malformed, format!("a token without a text in its claim {claim}")))
    }

    /// The caller that this subject is where no record lists it.
    fn own_caller(&self, issuer: &Issuer, subject: &str) -> Result<Option<Known>, CredentialRefusal> {
        if issuer.accept == Accept::Listed {
            return Ok(None);
        }
        let tenant = match &issuer.tenant_claim {
            None => DEFAULT_TENANT,
            Some(claim) => self.text(claim)?,
        };
        checked_name(tenant)
            .map_err(|_| CredentialRefusal::new(RefusalKind::Malformed, "the tenant of a token is no tenant's name"))?;
        let standing = CallerStanding {
            proof: IdentityProof::Token,
            may_call: issuer.may_call.clone(),
            unlisted: true,
            ..Default::default()
        };
        let caller = Caller::new(tenant, format!("{}:{}", issuer.name, safe_subject(subject)));
        Ok(Some(Known { caller, standing: Arc::new(standing) }))
    }
}

/// A subject as part of a name: different subjects stay different, and none looks like another's or like a path, a
/// control character or a long text in a log.
fn safe_subject(subject: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'@');
    let mut name = String::with_capacity(subject.len());
    for byte in subject.bytes() {
        if plain(byte) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
        if name.len() > MOST_SUBJECT_BYTES {
            return format!("~{}", hex::HexBytes(&SealKey::digest(subject.as_bytes())));
        }
    }
    name
}

/// Refuses a token that lives longer than `max_lifetime_s`, or that does not say since when it lives.
fn check_lifetime(issuer: &Issuer, issued: Option<i64>, expires: i64) -> Result<(), CredentialRefusal> {
    let (name, most) = (&issuer.name, issuer.max_lifetime_s);
    let refused = |what: String| Err(CredentialRefusal::new(RefusalKind::Malformed, what));
    match issued {
        _ if most == 0 => Ok(()),
        None => {
            refused(format!("a token of {name} without iat, and issuers.{name}.max_lifetime_s bounds exp - iat; 0 lifts that"))
        }
        Some(issued) if expires.saturating_sub(issued) > i64::from(most) * 1_000_000 => {
            let lives = expires.saturating_sub(issued).div_euclid(1_000_000);
            refused(format!("a token of {name} that lives {lives} s, more than issuers.{name}.max_lifetime_s = {most}"))
        }
        Some(_) => Ok(()),
    }
}

/// A NumericDate, which may have a fraction.
fn micros(seconds: Option<f64>) -> Result<Option<i64>, CredentialRefusal> {
    // Up to the year 9999.
    let date = 0.0..253_402_300_800.0;
    match seconds {
        Some(seconds) if !date.contains(&seconds) => {
            Err(CredentialRefusal::new(RefusalKind::Malformed, "a time of a token is no date"))
        }
        seconds => Ok(seconds.map(|seconds| (seconds * 1e6) as i64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_subjects_never_get_the_same_name() {
        let long = "x".repeat(200);
        let subjects = ["a", "A", "a b", "a%20b", "a/b", "a:b", "é", "%C3%A9", "~a", &long, &long[1..]];
        let names: std::collections::HashSet<_> = subjects.iter().map(|subject| safe_subject(subject)).collect();
        assert_eq!(names.len(), subjects.len());
        assert!(names.iter().all(|name| name.len() <= MOST_SUBJECT_BYTES && name.bytes().all(|byte| byte.is_ascii_graphic())));
        assert_eq!(safe_subject("ci@acme"), "ci@acme");
        assert_eq!(safe_subject("a b"), "a%20b");
    }
}
