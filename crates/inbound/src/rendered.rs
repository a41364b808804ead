//! Public documents, rendered once and served as bytes that caches can store.

use std::time::SystemTime;

use bytes::Bytes;
use chancery_identity::SealKey;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::response::{DoorBody, DoorResponse, JSON};

/// Bytes that are served as they are, with everything a cache needs.
#[derive(Debug)]
pub(crate) struct Rendered {
    bytes: Bytes,
    etag: HeaderValue,
    last_modified: HeaderValue,
    /// Of every answer with this card, whether the card is in it or not.
    headers: HeaderMap,
}

impl Rendered {
    /// `content` is what the tag is made from: it stays the same while only the bytes of a signature change.
    pub(crate) fn new(bytes: Vec<u8>, content: &[u8], made: &HeaderValue, caching: HeaderMap) -> Self {
        let digest = SealKey::digest(content);
        let tag: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let etag = HeaderValue::from_str(&format!("\"{tag}\"")).unwrap_or(HeaderValue::from_static("\"\""));
        let mut headers = caching;
        headers.insert(ETAG, etag.clone());
        headers.insert(LAST_MODIFIED, made.clone());
        Self { bytes: bytes.into(), etag, last_modified: made.clone(), headers }
    }

    /// The bytes and their tag, without its quotes.
    #[cfg(feature = "swp")]
    pub(crate) fn tagged(&self) -> (Bytes, String) {
        (self.bytes.clone(), self.etag.to_str().unwrap_or_default().trim_matches('"').to_owned())
    }

    pub(crate) fn respond(&self, head: &Parts) -> DoorResponse {
        let known = self.is_known(&head.headers);
        let body = (!known && head.method != Method::HEAD).then(|| self.bytes.clone());
        let mut response = Response::new(DoorBody::from(body.unwrap_or_default()));
        *response.headers_mut() = self.headers.clone();
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            response.headers_mut().insert(CONTENT_LENGTH, self.bytes.len().into());
        }
        response
    }

    /// As HTTP has it: the tag decides when there is one, the date only otherwise.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        if let Some(tags) = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()) {
            let own = self.etag.to_str().unwrap_or_default();
            return tags.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == own);
        }
        let Some(since) = headers.get(IF_MODIFIED_SINCE) else { return false };
        let since = since.to_str().ok().and_then(|value| httpdate::parse_http_date(value).ok());
        let made = self.last_modified.to_str().ok().and_then(|value| httpdate::parse_http_date(value).ok());
        matches!((since, made), (Some(since), Some(made)) if made <= since)
    }
}

/// When something was rendered, as a header says it.
pub(crate) fn rendered_now() -> HeaderValue {
    #[expect(
        clippy::disallowed_methods,
        reason = "the date a card was rendered goes into an HTTP header, no decision depends on it"
    )]
    let now = SystemTime::now();
    HeaderValue::from_str(&httpdate::fmt_http_date(now)).unwrap_or(HeaderValue::from_static(""))
}
