//! What a request brings along to show who sent it, before any of it is checked.

use std::fmt;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::certificate::CertificateFacts;
use super::signature::SignedRequest;
use super::{CredentialRefusal, KeyHash, RefusalKind};

pub const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
// Statics, because every mention of a constant makes and drops one, and these are looked up for every call.
static API_KEY: HeaderName = API_KEY_HEADER;
pub(super) static SIGNATURE: HeaderName = HeaderName::from_static("signature");
pub(super) static SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");

/// Longer keys and tokens are refused unread.
pub const MOST_CREDENTIAL_BYTES: usize = 8 * 1024;

#[derive(Debug, Default)]
pub struct PresentedCredentials {
    pub(super) secret: Option<SecretHash>,
    pub(super) signed: bool,
    /// The signature, once the head of the request was found to hold it.
    pub(super) signature: Option<SignedRequest>,
    pub(super) certificate: Option<CertificateFacts>,
}

/// A key or a token, by its hash. The text itself stays where it is, in the headers.
#[derive(Clone, Copy)]
pub(super) struct SecretHash {
    pub hash: KeyHash,
    /// Whether it may be a token: sent as a bearer's, and of the shape.
    pub token_shaped: bool,
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl PresentedCredentials {
    pub fn nothing() -> Self {
        Self::default()
    }

    pub fn is_nothing(&self) -> bool {
        self.secret.is_none() && !self.signed && self.certificate.is_none()
    }

    /// Whether the whole body is needed to tell who sent it.
    pub fn needs_body(&self) -> bool {
        self.signed
    }

    pub(super) fn read(headers: &HeaderMap, certificate: Option<&[u8]>) -> Result<Self, CredentialRefusal> {
        let bearer = bearer(headers)?;
        let key = only_value(headers, &API_KEY)?;
        let secret = match (bearer, key) {
            (Some(bearer), Some(key)) if bearer != key => {
                return Err(CredentialRefusal::new(
                    RefusalKind::Conflict,
                    "Authorization and X-API-Key hold different credentials",
                ));
            }
            (bearer, key) => bearer.or(key).map(|text| SecretHash {
                hash: KeyHash::of(text),
                token_shaped: bearer.is_some() && text.bytes().filter(|byte| *byte == b'.').count() == 2,
            }),
        };
        let signed = match (headers.contains_key(&SIGNATURE), headers.contains_key(&SIGNATURE_INPUT)) {
            (true, false) | (false, true) => {
                return Err(CredentialRefusal::new(
                    RefusalKind::Malformed,
                    "Signature and Signature-Input come together or not at all",
                ));
            }
            (both, _) => both,
        };
        Ok(Self { secret, signed, signature: None, certificate: certificate.map(CertificateFacts::read).transpose()? })
    }
}

/// The credential in `Authorization: Bearer …`.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, CredentialRefusal> {
    let Some(value) = only_value(headers, &AUTHORIZATION)? else { return Ok(None) };
    let (scheme, credential) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(CredentialRefusal::new(RefusalKind::Malformed, "an Authorization scheme other than Bearer"));
    }
    let credential = credential.trim_matches(' ');
    if credential.is_empty() || credential.contains(' ') {
        return Err(CredentialRefusal::new(RefusalKind::Malformed, "Authorization holds no single credential"));
    }
    Ok(Some(credential))
}

/// The value of a header that may come several times only if it says the same each time.
fn only_value<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, CredentialRefusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.any(|other: &HeaderValue| other != value) {
        return Err(CredentialRefusal::new(RefusalKind::Conflict, format!("several different {name} headers")));
    }
    if value.len() > MOST_CREDENTIAL_BYTES {
        return Err(CredentialRefusal::new(
            RefusalKind::Malformed,
            format!("{name} is longer than {MOST_CREDENTIAL_BYTES} bytes"),
        ));
    }
    match value.to_str().map(str::trim) {
        Ok(text) if !text.is_empty() => Ok(Some(text)),
        _ => Err(CredentialRefusal::new(RefusalKind::Malformed, format!("{name} is empty or not ASCII"))),
    }
}
