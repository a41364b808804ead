//! JSON Web Signatures over a payload that is not sent along (RFC 7515, appendix F).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::Value;

use crate::keys::{Algorithm, Cards, KeyFault, PublicKey, SigningKey};
use crate::strict_json;

/// What the specification names as the type of a card's signature.
const CARD_TYPE: &str = "JOSE";
/// A protected header longer than this (before decoding) is not looked at.
const MAX_PROTECTED: usize = 8 * 1024;
/// Both algorithms of cards make signatures of this length.
const SIGNATURE_BYTES: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Detached {
    pub(crate) protected: String,
    pub(crate) signature: String,
}

#[derive(Serialize)]
struct WrittenHeader<'a> {
    alg: &'a str,
    kid: &'a str,
    typ: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    jku: Option<&'a str>,
}

/// What a protected header says, as far as we act on it.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) algorithm: Algorithm,
    pub(crate) kid: Option<String>,
    pub(crate) jku: Option<String>,
}

pub(crate) fn sign(payload: &[u8], key: &SigningKey<Cards>, jku: Option<&str>) -> Result<Detached, KeyFault> {
    let header = WrittenHeader { alg: key.algorithm().as_str(), kid: key.kid(), typ: CARD_TYPE, jku };
    let header = serde_json::to_vec(&header).map_err(|_| KeyFault::NotSigned)?;
    let protected = URL_SAFE_NO_PAD.encode(header);
    let signature = key.sign_bytes(&signing_input(&protected, payload))?;
    Ok(Detached { protected, signature: URL_SAFE_NO_PAD.encode(signature) })
}

/// Why a signature is invalid, independent of the known keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SignatureFault {
    /// It is not a JSON Web Signature, or it says `alg: none`.
    Malformed(String),
    /// It is well-formed, and uses an algorithm or an extension that is not supported here.
    Unsupported(String),
}

impl fmt::Display for SignatureFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Malformed(reason) | Self::Unsupported(reason)) = self;
        f.write_str(reason)
    }
}

impl Detached {
    /// The header, or why this signature is not to be considered. What is not in the protected part never counts.
    pub(crate) fn header(&self) -> Result<Header, SignatureFault> {
        let malformed = |reason: &str| SignatureFault::Malformed(reason.to_owned());
        if self.protected.len() > MAX_PROTECTED {
            return Err(malformed("its protected header is too long"));
        }
        let bytes = URL_SAFE_NO_PAD.decode(&self.protected);
        let bytes = bytes.map_err(|_| malformed("its protected header is not base64url"))?;
        let text = String::from_utf8(bytes).map_err(|_| malformed("its protected header is not UTF-8"))?;
        let header = strict_json::parse(&text);
        let header = header.map_err(|fault| SignatureFault::Malformed(format!("its protected header is {fault}")))?;
        let Value::Object(header) = header else { return Err(malformed("its protected header is not an object")) };
        // Whoever marks an extension as critical wants to be refused by those who do not know it; we know none.
        if header.contains_key("crit") {
            return Err(SignatureFault::Unsupported("it has critical extensions, of which we know none".to_owned()));
        }
        let text = |name: &str| match header.get(name) {
            // One official SDK writes null for what it was not given.
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(SignatureFault::Malformed(format!("its {name} is not a string"))),
        };
        let named = text("alg")?.ok_or_else(|| malformed("it names no algorithm"))?;
        let Some(algorithm) = Algorithm::from_jose(&named) else {
            let reason = format!("its algorithm {named:?} is not allowed");
            let signs_nothing = named.is_empty() || named.eq_ignore_ascii_case("none");
            return Err(if signs_nothing { SignatureFault::Malformed(reason) } else { SignatureFault::Unsupported(reason) });
        };
        text("typ")?;
        Ok(Header { algorithm, kid: text("kid")?, jku: text("jku")? })
    }

    /// Checks what can be checked without a key: the header, and that the signature has the length of one.
    pub(crate) fn check_form(&self) -> Result<(), SignatureFault> {
        self.header()?;
        let decoded = URL_SAFE_NO_PAD.decode(&self.signature);
        match decoded.map_err(|_| SignatureFault::Malformed("its signature is not base64url".to_owned()))?.len() {
            SIGNATURE_BYTES => Ok(()),
            other => Err(SignatureFault::Malformed(format!("its signature has {other} bytes, not {SIGNATURE_BYTES}"))),
        }
    }

    pub(crate) fn verify(&self, payload: &[u8], key: &PublicKey) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode(&self.signature) else { return false };
        key.verify_bytes(&signing_input(&self.protected, payload), &signature)
    }
}

fn signing_input(protected: &str, payload: &[u8]) -> Vec<u8> {
    let mut input = String::with_capacity(protected.len() + 1 + payload.len().div_ceil(3) * 4);
    input.push_str(protected);
    input.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut input);
    input.into_bytes()
}
