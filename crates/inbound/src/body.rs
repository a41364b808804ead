//! Reads a request's body under the limits on size and time, and accepts only the JSON content type.

use bytes::{Bytes, BytesMut};
use chancery_core::Alarm;
use chancery_protocol::{Error, ErrorKind};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use crate::limits::InboundLimits;

pub(crate) async fn read<B>(body: B, limits: &InboundLimits) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    read_framed(body, 0, limits).await
}

/// The same for a body whose transport wraps it in this many bytes, which do not count.
pub(crate) async fn read_framed<B>(body: B, frame: usize, limits: &InboundLimits) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let most = limits.body_bytes.saturating_add(frame);
    let announced = body.size_hint().lower();
    if announced > most as u64 {
        return Err(too_large(limits));
    }
    // Most bodies are there already: then no timer is set.
    match Alarm::default().unless(Instant::now() + limits.body_read(), collect(body, most, limits)).await {
        Some(read) => read,
        None => Err(Error::new(
            ErrorKind::DeadlineExceeded,
            format!("the body did not arrive within limits.body_read_ms = {}", limits.body_read_ms),
        )),
    }
}

async fn collect<B>(mut body: B, most: usize, limits: &InboundLimits) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first: Option<Bytes> = None;
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(Error::new(ErrorKind::InvalidRequest, "the body could not be read to its end"));
        };
        let Ok(bytes) = frame.into_data() else { continue };
        let so_far = first.as_ref().map_or(joined.len(), Bytes::len);
        if so_far + bytes.len() > most {
            return Err(too_large(limits));
        }
        // Most bodies come in one piece, which is then not copied.
        match first.take() {
            None if joined.is_empty() => first = Some(bytes),
            None => joined.extend_from_slice(&bytes),
            Some(earlier) => {
                joined.extend_from_slice(&earlier);
                joined.extend_from_slice(&bytes);
            }
        }
    }
    Ok(first.unwrap_or_else(|| joined.freeze()))
}

fn too_large(limits: &InboundLimits) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the body has more than limits.body_bytes = {} bytes", limits.body_bytes))
        .with_fact("limit", "limits.body_bytes")
}

/// Only JSON, said to be JSON: a page in somebody's browser cannot send that here without asking first.
pub(crate) fn check_content(head: &Parts, body: &Bytes) -> Result<(), Error> {
    if let Some(encoding) = head.headers.get(CONTENT_ENCODING).filter(|encoding| encoding.as_bytes() != b"identity") {
        return Err(Error::new(
            ErrorKind::ContentTypeNotSupported,
            format!("send the body plain, not with Content-Encoding {encoding:?}"),
        ));
    }
    if body.is_empty() {
        return Ok(());
    }
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") || essence.eq_ignore_ascii_case("application/a2a+json") {
        return Ok(());
    }
    Err(Error::new(ErrorKind::ContentTypeNotSupported, "send Content-Type: application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;

    fn pieces(pieces: &[&'static str]) -> impl Body<Data = Bytes> + Unpin + use<> {
        let frames: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(piece.as_bytes())))).collect();
        StreamBody::new(stream::iter(frames))
    }

    #[tokio::test]
    async fn size_is_counted_as_it_arrives_and_held_at_its_edge() {
        let limits = InboundLimits { body_bytes: 6, ..InboundLimits::default() };
        assert_eq!(read(pieces(&["ab", "cd", "ef"]), &limits).await.unwrap(), "abcdef");
        assert_eq!(read(pieces(&["ab", "cd", "efg"]), &limits).await.unwrap_err().kind, ErrorKind::TooLarge);
        assert_eq!(read(pieces(&[]), &limits).await.unwrap(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let endless = StreamBody::new(stream::pending::<Result<Frame<Bytes>, std::io::Error>>());
        assert_eq!(read(endless, &InboundLimits::default()).await.unwrap_err().kind, ErrorKind::DeadlineExceeded);
    }
}
