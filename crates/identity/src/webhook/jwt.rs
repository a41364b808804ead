//! The token a webhook is called with if its owner asked for `Bearer` and gave no credentials: a JWT for that receiver and that body.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::jwks::Jwks;
use crate::keys::{Algorithm, KeyFault, KeyUse, PublicKey, Push, SigningKey};
use crate::seal::SealKey;
use crate::strict_json;

/// How long such a token lasts.
pub const PUSH_JWT_LIFE: Duration = Duration::from_secs(300);
/// A longer one is not looked at.
pub const MAX_PUSH_JWT: usize = 8 * 1024;
/// How far two clocks may be apart, in seconds.
const LEEWAY: i64 = 60;

/// Why a JWT is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwtFault {
    /// The text is not a JWT.
    #[error("not a JWT: {0}")]
    Malformed(&'static str),
    /// The algorithm is neither EdDSA nor ES256.
    #[error("the token's algorithm is neither EdDSA nor ES256")]
    Algorithm,
    /// The JWT names no known key.
    #[error("the token has the id (kid) of an unknown key")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the token's signature is wrong")]
    BadSignature,
    /// The JWT has another audience.
    #[error("the token has another audience")]
    Audience,
    /// The JWT has another issuer.
    #[error("the token has another issuer")]
    Issuer,
    /// The JWT has expired.
    #[error("the token has expired")]
    Expired,
    /// The JWT is not valid yet.
    #[error("the token is not valid yet")]
    NotYet,
    /// The JWT is for another message.
    #[error("the token is for another message")]
    OtherMessage,
    /// The JWT is for another body.
    #[error("the token is for another body")]
    OtherBody,
}

/// What such a token says. Members that others add are let be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushClaims {
    /// The URL of the sender's card.
    pub iss: String,
    /// The URL that is called, without its query.
    pub aud: String,
    /// The time when the JWT was made, in seconds since 1970.
    pub iat: i64,
    /// The time when the JWT expires, in seconds since 1970.
    pub exp: i64,
    /// The id of the message.
    pub jti: String,
    /// The task that the notification is about.
    #[serde(rename = "taskId", default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// SHA-256 of the body's bytes, in hex.
    pub request_body_sha256: String,
}

impl PushClaims {
    /// For the attempt that is made now.
    pub fn new(issuer: &str, audience: &str, id: &str, task: &str, body: &[u8], now: Timestamp) -> Self {
        let iat = now.micros().div_euclid(1_000_000);
        Self {
            iss: issuer.to_owned(),
            aud: audience.to_owned(),
            iat,
            exp: iat + i64::try_from(PUSH_JWT_LIFE.as_secs()).unwrap_or(i64::MAX),
            jti: id.to_owned(),
            task: Some(task.to_owned()),
            request_body_sha256: hash(body),
        }
    }
}

/// Signed with the key of notifications: what is signed has one dot, and a signed notification has two, so neither passes for the other.
pub fn mint_push_jwt(key: &SigningKey<Push>, claims: &PushClaims) -> Result<String, KeyFault> {
    let header = serde_json::json!({ "alg": key.algorithm().as_str(), "kid": key.kid(), "typ": "JWT" });
    let claims = serde_json::to_vec(claims).map_err(|_| KeyFault::NotSigned)?;
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign_bytes(signed.as_bytes())?);
    Ok(format!("{signed}.{signature}"))
}

/// What a token must be for.
#[derive(Clone, Copy, Debug)]
pub struct TokenFor<'a> {
    /// The audience, which is the receiver.
    pub audience: &'a str,
    /// Who must have made it, if that matters beside the key.
    pub issuer: Option<&'a str>,
    /// The id of the message, if it has one.
    pub id: Option<&'a str>,
    /// The body of the notification.
    pub body: &'a [u8],
}

/// The keys a sender signs notifications with.
#[derive(Clone, Debug, Default)]
pub struct PushKeys(Vec<(Arc<str>, PublicKey)>);

impl PushKeys {
    /// Makes a set of public keys.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        Self(keys.into_iter().map(|key| (key.kid().into(), key)).collect())
    }

    /// Those of a published set that are for notifications, or for nothing in particular.
    pub fn from_jwks(jwks: &Jwks) -> Self {
        let both = [Algorithm::EdDsa, Algorithm::Es256];
        Self::new(both.into_iter().flat_map(|algorithm| jwks.candidates(KeyUse::Push, algorithm, None)))
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the Ed25519 keys.
    pub fn ed25519(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.iter().map(|(_, key)| key).filter(|key| key.algorithm() == Algorithm::EdDsa)
    }

    /// Whether the token is one of theirs, for this message and this moment.
    pub fn verify_jwt(&self, token: &str, expected: &TokenFor<'_>, now: Timestamp) -> Result<PushClaims, JwtFault> {
        let claims = self.read(token)?;
        let seconds = now.micros().div_euclid(1_000_000);
        if claims.aud != expected.audience {
            return Err(JwtFault::Audience);
        }
        if expected.issuer.is_some_and(|issuer| issuer != claims.iss) {
            return Err(JwtFault::Issuer);
        }
        if claims.exp.saturating_add(LEEWAY) <= seconds {
            return Err(JwtFault::Expired);
        }
        if claims.iat.saturating_sub(LEEWAY) > seconds {
            return Err(JwtFault::NotYet);
        }
        let longest = i64::try_from(PUSH_JWT_LIFE.as_secs()).unwrap_or(i64::MAX);
        if claims.exp < claims.iat || claims.exp.saturating_sub(claims.iat) > longest {
            return Err(JwtFault::Malformed("it lasts longer than such a token may"));
        }
        if expected.id.is_some_and(|id| id != claims.jti) {
            return Err(JwtFault::OtherMessage);
        }
        if !claims.request_body_sha256.eq_ignore_ascii_case(&hash(expected.body)) {
            return Err(JwtFault::OtherBody);
        }
        Ok(claims)
    }

    fn read(&self, token: &str) -> Result<PushClaims, JwtFault> {
        if token.len() > MAX_PUSH_JWT {
            return Err(JwtFault::Malformed("it is too long"));
        }
        let three = JwtFault::Malformed("it has not three parts");
        let (signed, signature) = token.rsplit_once('.').ok_or(three.clone())?;
        let (header, payload) = signed.split_once('.').filter(|(_, payload)| !payload.contains('.')).ok_or(three)?;
        let header = object(header).ok_or(JwtFault::Malformed("its header is no object in strict JSON"))?;
        // Whoever marks an extension as critical wants to be refused by those who do not know it; we know none.
        if header.get("crit").is_some() {
            return Err(JwtFault::Malformed("it has critical extensions"));
        }
        let text = |name: &str| header.get(name).and_then(Value::as_str);
        let algorithm = text("alg").and_then(Algorithm::from_jose).ok_or(JwtFault::Algorithm)?;
        let kid = text("kid").ok_or(JwtFault::UnknownKey)?;
        let named = self.0.iter().find(|(held, key)| **held == *kid && key.algorithm() == algorithm);
        let (_, key) = named.ok_or(JwtFault::UnknownKey)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| JwtFault::Malformed("its signature is not base64url"))?;
        if !key.verify_bytes(signed.as_bytes(), &signature) {
            return Err(JwtFault::BadSignature);
        }
        let claims = object(payload).ok_or(JwtFault::Malformed("its claims are no object in strict JSON"))?;
        serde_json::from_value(claims).map_err(|_| JwtFault::Malformed("its claims are not those of a notification"))
    }
}

fn object(base64: &str) -> Option<Value> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(base64).ok()?).ok()?;
    strict_json::parse(&text).ok().filter(Value::is_object)
}

fn hash(body: &[u8]) -> String {
    SealKey::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}
