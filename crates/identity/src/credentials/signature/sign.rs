//! Signs a request as `verify` wants it: for clients, and for our own calls to others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::Timestamp;
use http::Method;
use http::header::{HeaderMap, HeaderValue, InvalidHeaderValue};

use super::super::presented::{SIGNATURE, SIGNATURE_INPUT};
use super::base::{SignedTarget, signature_base};
use super::structured::{Bare, InnerList, Item};
use super::{ALGORITHM, Authority, CONTENT_DIGEST, TAG, content_digest};
use crate::keys::{Algorithm, Cards, KeyFault, SigningKey};
use crate::{KeyError, SealKey};

/// The parts of a request that a signature covers.
#[derive(Clone, Copy, Debug)]
pub struct UnsignedRequest<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// Whom it is sent to.
    pub authority: &'a Authority,
    /// The path and the query.
    pub path_and_query: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// The headers to add to the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHeaders {
    /// The `Content-Digest` header.
    pub content_digest: HeaderValue,
    /// The `Signature-Input` header.
    pub signature_input: HeaderValue,
    /// The `Signature` header.
    pub signature: HeaderValue,
}

impl SignedHeaders {
    /// Adds the headers to those of a request.
    pub fn add_to(self, headers: &mut HeaderMap) {
        headers.insert(CONTENT_DIGEST, self.content_digest);
        headers.insert(&SIGNATURE_INPUT, self.signature_input);
        headers.insert(&SIGNATURE, self.signature);
    }
}

/// A nonce that was never used: 128 random bits.
pub fn fresh_nonce() -> Result<String, KeyError> {
    Ok(URL_SAFE_NO_PAD.encode(&SealKey::random_bytes()?[..16]))
}

/// `sign` makes the Ed25519 signature that belongs to `public_key`.
pub fn sign_request(
    public_key: &[u8; 32],
    sign: impl FnOnce(&[u8]) -> [u8; 64],
    request: UnsignedRequest<'_>,
    created: Timestamp,
    nonce: &str,
) -> Result<SignedHeaders, InvalidHeaderValue> {
    let digest = HeaderValue::try_from(content_digest(request.body))?;
    let target = SignedTarget {
        method: request.method.as_str(),
        scheme: request.authority.scheme,
        authority: &request.authority.host_and_port,
        path_and_query: request.path_and_query,
    };
    let mut covered = vec!["@method", "@authority", "@path"];
    if target.query().is_some() {
        covered.push("@query");
    }
    covered.push("content-digest");
    let text = |text: &str| Bare::Text(text.to_owned());
    let parameters = [
        ("created", Bare::Integer(created.micros().div_euclid(1_000_000))),
        ("nonce", text(nonce)),
        ("keyid", text(&URL_SAFE_NO_PAD.encode(public_key))),
        ("alg", text(ALGORITHM)),
        ("tag", text(TAG)),
    ];
    let list = InnerList {
        items: covered.into_iter().map(|name| Item { value: text(name), parameters: Vec::new() }).collect(),
        parameters: parameters.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    };
    let signature_input = HeaderValue::try_from(format!("sig={list}"))?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_DIGEST, digest.clone());
    // Only the header that was just put there is covered, so nothing can be missing; an empty base would verify nowhere.
    let base = signature_base(&list, target, &headers).unwrap_or_default();
    let signature = HeaderValue::try_from(format!("sig={}", Bare::Bytes(sign(base.as_bytes()).to_vec())))?;
    Ok(SignedHeaders { content_digest: digest, signature_input, signature })
}

/// Why a request cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignFault {
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// A value of the request cannot be a header.
    #[error(transparent)]
    Header(#[from] InvalidHeaderValue),
}

impl SigningKey<Cards> {
    /// Signs a request as the agent that this key makes. What is signed opens with a quotation mark, which no card does, so
    /// neither can stand for the other.
    pub fn sign_request(
        &self,
        request: UnsignedRequest<'_>,
        created: Timestamp,
        nonce: &str,
    ) -> Result<SignedHeaders, SignFault> {
        let other = KeyFault::OtherAlgorithm { wanted: Algorithm::EdDsa, found: self.algorithm() };
        let Ok(public) = <&[u8; 32]>::try_from(self.public().raw()) else { return Err(other.into()) };
        let mut fault = None;
        let sign = |base: &[u8]| {
            let made = self.sign_bytes(base).and_then(|made| made.try_into().map_err(|_| KeyFault::NotSigned));
            made.unwrap_or_else(|failed| {
                fault = Some(failed);
                [0; 64]
            })
        };
        let headers = sign_request(public, sign, request, created, nonce)?;
        fault.map_or(Ok(headers), |fault| Err(fault.into()))
    }
}
