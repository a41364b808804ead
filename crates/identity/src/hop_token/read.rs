//! Takes a token apart, without believing any of it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::raw_json::members;
use serde_json::{Map, Value};

use super::{HopTokenFault, TYPE};
use crate::strict_json;

/// How much of a stranger's name is repeated.
const MAX_ISSUER: usize = 256;
/// A whole HMAC-SHA256.
const MARK: usize = 32;

/// The three parts of a compact JWS, and what its mark is over.
pub(super) struct JwsParts<'a> {
    pub(super) header: &'a str,
    payload: &'a str,
    mark: &'a str,
    pub(super) signed: &'a str,
}

impl<'a> JwsParts<'a> {
    pub(super) fn of(token: &'a str) -> Result<Self, HopTokenFault> {
        let three = HopTokenFault::Malformed("it has not three parts");
        let (signed, mark) = token.rsplit_once('.').ok_or(three.clone())?;
        let (header, payload) = signed.split_once('.').ok_or(three.clone())?;
        if payload.contains('.') || [header, payload, mark].iter().any(|part| part.is_empty()) {
            return Err(three);
        }
        Ok(Self { header, payload, mark, signed })
    }

    pub(super) fn payload(&self) -> Result<Map<String, Value>, HopTokenFault> {
        object(self.payload).ok_or(HopTokenFault::Malformed("its payload is no object in strict JSON"))
    }

    /// A fault, if another node plainly says that the token is its own. Whatever else is wrong with it is for that node to find.
    pub(super) fn check_foreign(&self, ours: &str) -> Result<(), HopTokenFault> {
        let payload = URL_SAFE_NO_PAD.decode(self.payload).unwrap_or_default();
        let payload = std::str::from_utf8(&payload).unwrap_or_default();
        let issuer = members(payload).find(|(name, _)| name == "iss").map(|(_, value)| value);
        match issuer.and_then(|issuer| serde_json::from_str::<String>(issuer).ok()) {
            Some(issuer) if issuer != ours => Err(foreign(&issuer)),
            _ => Ok(()),
        }
    }

    pub(super) fn mark(&self) -> Result<Vec<u8>, HopTokenFault> {
        let bytes = URL_SAFE_NO_PAD.decode(self.mark).ok().filter(|bytes| bytes.len() == MARK);
        bytes.ok_or(HopTokenFault::Malformed("its signature is not 32 bytes in base64url"))
    }

    /// What to say of a header that none of our keys writes.
    pub(super) fn header_fault(&self) -> HopTokenFault {
        let Some(header) = object(self.header) else {
            return HopTokenFault::Malformed("its header is no object in strict JSON");
        };
        let text = |name: &str| header.get(name).and_then(Value::as_str);
        match (text("alg"), text("typ"), text("kid")) {
            (Some("HS256"), Some(TYPE), Some(_)) if header.len() == 3 => HopTokenFault::UnknownKey,
            (Some("HS256"), Some(TYPE), _) => HopTokenFault::Malformed("its header is not one of ours"),
            (Some("HS256"), ..) => HopTokenFault::Malformed("its type is not that of a hop token"),
            _ => HopTokenFault::Malformed("its algorithm is not HS256"),
        }
    }
}

/// Told by the payload alone, because only its issuer knows the key of a token.
pub(super) fn check_issuer(payload: &Map<String, Value>, ours: &str) -> Result<(), HopTokenFault> {
    match payload.get("iss") {
        Some(Value::String(issuer)) if issuer == ours => Ok(()),
        Some(Value::String(issuer)) => Err(foreign(issuer)),
        _ => Err(HopTokenFault::Malformed("it names no issuer")),
    }
}

fn foreign(issuer: &str) -> HopTokenFault {
    HopTokenFault::Foreign { issuer: issuer.chars().take(MAX_ISSUER).collect() }
}

fn object(base64: &str) -> Option<Map<String, Value>> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(base64).ok()?).ok()?;
    match strict_json::parse(&text).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}
