//! Frames: a stream of octets cut into bodies by their length prefixes, and bodies given one.

use bytes::{Buf, Bytes, BytesMut};

use crate::{FrameReason, Reject, SwpLimits};

pub(crate) const PREFIX: usize = 4;

/// Cuts a stream into frames, however the stream is cut into pieces.
///
/// It holds the bytes that arrived, never the length that a prefix announces; a body is returned in place.
/// After a wrong prefix no frame can be recognised, so the refusal is permanent.
#[derive(Debug)]
pub struct FrameDecoder {
    max_frame_bytes: u32,
    buffer: BytesMut,
    broken: Option<Reject>,
}

impl FrameDecoder {
    pub fn new(limits: &SwpLimits) -> Self {
        Self { max_frame_bytes: limits.max_frame_bytes, buffer: BytesMut::new(), broken: None }
    }

    /// Adds what was received. Take all frames out before the next piece, or the pieces pile up.
    pub fn push(&mut self, octets: &[u8]) {
        if self.broken.is_none() {
            self.buffer.extend_from_slice(octets);
        }
    }

    /// Where a socket can read into directly, instead of [`push`](Self::push).
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The body of the next frame, or none until more has arrived.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, Reject> {
        if let Some(reject) = &self.broken {
            return Err(reject.clone());
        }
        let Some(length) = self.announced().map_err(|reject| self.broken(reject))? else { return Ok(None) };
        if self.buffer.len() - PREFIX < length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// Says that the stream has ended, which is fine between two frames only.
    pub fn finish(&mut self) -> Result<(), Reject> {
        if let Some(reject) = &self.broken {
            return Err(reject.clone());
        }
        match self.announced() {
            Err(reject) => Err(self.broken(reject)),
            Ok(_) if self.buffer.is_empty() => Ok(()),
            Ok(None) => Err(self.broken(FrameReason::TruncatedPrefix.into())),
            Ok(Some(length)) if self.buffer.len() - PREFIX < length => {
                let arrived = (self.buffer.len() - PREFIX) as u64;
                Err(self.broken(Reject::beyond(FrameReason::TruncatedBody, arrived, length as u64)))
            }
            // A whole frame that was not taken out is the caller's, not the peer's fault.
            Ok(Some(_)) => Ok(()),
        }
    }

    /// The length of the frame at the front, checked before anything is made of it.
    fn announced(&self) -> Result<Option<usize>, Reject> {
        let Some(prefix) = self.buffer.first_chunk::<PREFIX>() else { return Ok(None) };
        let length = u32::from_be_bytes(*prefix);
        if length == 0 {
            return Err(FrameReason::ZeroLength.into());
        }
        if length > self.max_frame_bytes {
            return Err(Reject::beyond(FrameReason::FrameTooLarge, length.into(), self.max_frame_bytes.into()));
        }
        Ok(Some(length as usize))
    }

    fn broken(&mut self, reject: Reject) -> Reject {
        self.buffer = BytesMut::new();
        self.broken.insert(reject).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder(max_frame_bytes: u32, octets: &[u8]) -> FrameDecoder {
        let mut decoder = FrameDecoder::new(&SwpLimits { max_frame_bytes, ..SwpLimits::default() });
        decoder.push(octets);
        decoder
    }

    fn reason<T>(result: Result<T, Reject>) -> Option<FrameReason> {
        result.err().map(|reject| reject.reason())
    }

    #[test]
    fn frames_are_taken_out_one_by_one_and_the_stream_may_end_between_them() {
        let mut decoder = decoder(9, &[0, 0, 0, 1, 7, 0, 0, 0, 2, 8, 9]);
        assert_eq!(decoder.next_frame(), Ok(Some(Bytes::from_static(&[7]))));
        assert_eq!(decoder.next_frame(), Ok(Some(Bytes::from_static(&[8, 9]))));
        assert_eq!(decoder.next_frame(), Ok(None));
        assert_eq!(decoder.finish(), Ok(()));
    }

    #[test]
    fn a_frame_of_the_largest_length_passes_and_one_octet_more_is_refused_before_it_arrives() {
        assert_eq!(decoder(2, &[0, 0, 0, 2, 1, 2]).next_frame(), Ok(Some(Bytes::from_static(&[1, 2]))));
        let reject = decoder(2, &[0, 0, 0, 3]).next_frame().expect_err("too large");
        assert_eq!(reject.reason(), FrameReason::FrameTooLarge);
        assert_eq!(reject.measured(), Some(crate::Measured { found: 3, limit: 2 }));
    }

    #[test]
    fn an_announced_length_reserves_no_memory() {
        let mut decoder = decoder(u32::MAX, &[0xff, 0xff, 0xff, 0xff, 1]);
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(decoder.buffer.capacity() < 1024, "{}", decoder.buffer.capacity());
    }

    #[test]
    fn a_stream_that_ends_inside_a_prefix_or_a_body_is_refused() {
        assert_eq!(reason(decoder(9, &[0, 0]).finish()), Some(FrameReason::TruncatedPrefix));
        assert_eq!(reason(decoder(9, &[0, 0, 0, 4, 1]).finish()), Some(FrameReason::TruncatedBody));
        assert_eq!(reason(decoder(9, &[0, 0, 0, 4]).finish()), Some(FrameReason::TruncatedBody));
    }

    #[test]
    fn after_a_wrong_prefix_nothing_more_is_read_or_kept() {
        let mut decoder = decoder(9, &[0, 0, 0, 0]);
        assert_eq!(reason(decoder.next_frame()), Some(FrameReason::ZeroLength));
        decoder.push(&[0, 0, 0, 1, 7]);
        assert_eq!(reason(decoder.next_frame()), Some(FrameReason::ZeroLength));
        assert_eq!(reason(decoder.finish()), Some(FrameReason::ZeroLength));
        assert!(decoder.buffer.is_empty());
    }

    #[test]
    fn bodies_are_handed_out_where_they_lie() {
        let mut decoder = decoder(9, &[0, 0, 0, 2, 8, 9]);
        let whole = decoder.buffer.as_ptr_range();
        let body = decoder.next_frame().expect("reads").expect("is whole");
        assert!(whole.contains(&body.as_ptr()));
    }
}
