//! `GET /artifacts/TASK/DIGEST`: a large part of an artifact, whole or a range of it, with its digest.

use std::ops::Range;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chancery_core::OffloadedPart;
use chancery_identity::credentials::Known;
use chancery_protocol::{Error, Version};
use futures::stream;
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use crate::doors::Doors;
use crate::response::{self, DoorBody, DoorResponse};

/// Read and sent at once.
const PIECE: u64 = 256 * 1024;

/// The task and the digest, if the path names one.
pub(crate) fn named<'p>(head: &Parts, path: &'p str) -> Option<(&'p str, &'p str)> {
    let reads = head.method == Method::GET || head.method == Method::HEAD;
    path.strip_prefix("/artifacts/").filter(|_| reads)?.split_once('/')
}

impl Doors {
    pub(crate) async fn serve_offloaded_part(&self, head: &Parts, known: &Known, task: &str, digest: &str) -> DoorResponse {
        match self.chancery().offloaded_part(&known.caller, task, digest).await {
            Ok(found) => respond(head, found, digest),
            Err(error) => response::rest_error(&error, Version::V1_0),
        }
    }
}

fn respond(head: &Parts, found: OffloadedPart, digest: &str) -> DoorResponse {
    let tag = format!("\"{digest}\"");
    if head.headers.get_all(IF_NONE_MATCH).iter().any(|known| is_known(known, &tag)) {
        let mut answer = response::private(Response::new(DoorBody::from(Vec::new())));
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        insert(&mut answer, ETAG, &tag);
        return answer;
    }
    // A range is of a GET, and of what the asker has the rest of.
    let of_this = head.headers.get(IF_RANGE).is_none_or(|having| having.as_bytes() == tag.as_bytes());
    let asked = head.headers.get(RANGE).filter(|_| head.method == Method::GET && of_this);
    let asked = asked.map(|range| read_range(range.to_str().unwrap_or_default(), found.length));
    let (status, range) = match asked {
        None => (StatusCode::OK, 0..found.length),
        Some(RequestedRange::Part(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(RequestedRange::Whole) => (StatusCode::OK, 0..found.length),
        Some(RequestedRange::Nothing) => {
            let error = Error::invalid_field("Range", format!("is not within the {} bytes", found.length));
            let mut refused = response::rest_error(&error, Version::V1_0);
            *refused.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            insert(&mut refused, CONTENT_RANGE, &format!("bytes */{}", found.length));
            return refused;
        }
    };
    let length = found.length;
    let body = if head.method == Method::HEAD { DoorBody::from(Vec::new()) } else { pieces(found, range.clone()) };
    let mut answer = response::private(Response::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    answer.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    insert(&mut answer, CONTENT_LENGTH, &(range.end - range.start).to_string());
    insert(&mut answer, ETAG, &tag);
    if let Some(bytes) = unhex(digest) {
        // RFC 9530: of the whole, whichever range of it is sent.
        insert(&mut answer, "repr-digest", &format!("sha-256=:{}:", STANDARD.encode(bytes)));
    }
    if status == StatusCode::PARTIAL_CONTENT {
        insert(&mut answer, CONTENT_RANGE, &format!("bytes {}-{}/{length}", range.start, range.end - 1));
    }
    answer
}

fn insert(answer: &mut DoorResponse, name: impl http::header::IntoHeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

fn pieces(found: OffloadedPart, range: Range<u64>) -> DoorBody {
    let pieces = stream::try_unfold((found, range), |(found, range)| async move {
        if range.is_empty() {
            return Ok::<_, Error>(None);
        }
        let piece = found.piece(range.start, PIECE.min(range.end - range.start)).await?;
        if piece.is_empty() {
            return Err(Error::new(chancery_protocol::ErrorKind::Internal, "it is shorter than it was"));
        }
        let next = range.start + piece.len() as u64..range.end;
        Ok(Some((Bytes::from(piece), (found, next))))
    });
    DoorBody::from(Body::from_stream(pieces))
}

#[derive(Debug, PartialEq)]
enum RequestedRange {
    Part(Range<u64>),
    /// Several ranges, or unknown units: RFC 9110 lets a server send the whole content.
    Whole,
    Nothing,
}

fn read_range(text: &str, length: u64) -> RequestedRange {
    let of_bytes = text.split_once('=').filter(|(unit, _)| unit.eq_ignore_ascii_case("bytes"));
    let one = of_bytes.map(|(_, range)| range.trim()).filter(|range| !range.contains(','));
    let Some((first, last)) = one.and_then(|one| one.split_once('-')) else { return RequestedRange::Whole };
    let range = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..length.min(last.saturating_add(1)),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(most)) if first.is_empty() => length.saturating_sub(most)..length,
        _ => return RequestedRange::Whole,
    };
    if range.is_empty() { RequestedRange::Nothing } else { RequestedRange::Part(range) }
}

/// Digits and nothing else. More of them than fit lie beyond any end.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Whether a list of tags has this one, or all.
fn is_known(list: &HeaderValue, tag: &str) -> bool {
    let list = list.to_str().unwrap_or_default();
    list.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

fn unhex(digest: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digest.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_lies_within() {
        let read = |text| read_range(text, 100);
        for (text, range) in [("bytes=0-0", 0..1), ("bytes=10-19", 10..20), ("bytes=90-", 90..100), ("bytes=-5", 95..100)] {
            assert_eq!(read(text), RequestedRange::Part(range), "{text}");
        }
        assert_eq!(read("bytes=50-999"), RequestedRange::Part(50..100));
        assert_eq!(read("bytes=-999"), RequestedRange::Part(0..100));
        assert_eq!(read("Bytes=5-99999999999999999999999"), RequestedRange::Part(5..100));
        for nothing in ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(read(nothing), RequestedRange::Nothing, "{nothing}");
        }
        for whole in [
            "",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=0-1,3-4",
            "lines=1-2",
            "bytes=x-y",
            "bytes=+1-2",
            "bytes=1-+2",
            "bytes=1-2-3",
            "bytes=--5",
        ] {
            assert_eq!(read(whole), RequestedRange::Whole, "{whole}");
        }
    }
}
