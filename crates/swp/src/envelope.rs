//! E1: an envelope out of the body of a frame and back, field by field in their fixed order.

use bytes::{BufMut, Bytes, BytesMut};

use crate::frame::PREFIX;
use crate::{Extensions, FrameReason, Profile, Reject, SwpLimits, Timestamps, uvarint};

/// The one version there is.
pub(crate) const VERSION: u64 = 1;

/// What every message has around its payload. As read it may still say anything: [`validate`](Self::validate) judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub version: u64,
    pub profile_id: u64,
    pub msg_type: u64,
    /// No bit has a meaning yet, so none changes how a frame is read; logs should show them.
    pub flags: u64,
    /// Milliseconds since 1970; 0 if the sender has no clock.
    pub ts_unix_ms: u64,
    pub msg_id: Bytes,
    pub extensions: Extensions,
    pub payload: Bytes,
}

impl Envelope {
    pub fn new(profile: Profile, msg_type: u64, msg_id: Bytes, ts_unix_ms: u64, payload: Bytes) -> Self {
        let extensions = Extensions::default();
        Self { version: VERSION, profile_id: profile.id(), msg_type, flags: 0, ts_unix_ms, msg_id, extensions, payload }
    }

    /// An answer within the same exchange: the same profile and message id, nothing else.
    pub fn reply(&self, msg_type: u64, ts_unix_ms: u64, payload: Bytes) -> Self {
        Self {
            version: VERSION,
            profile_id: self.profile_id,
            msg_type,
            flags: 0,
            ts_unix_ms,
            msg_id: self.msg_id.clone(),
            extensions: Extensions::default(),
            payload,
        }
    }

    /// Reads the body of a frame. The octets of id, extensions and payload stay where they are, so keeping an envelope keeps its frame.
    pub fn decode(mut body: Bytes, limits: &SwpLimits) -> Result<Self, Reject> {
        let from = &mut body;
        let version = uvarint::read(from)?;
        let profile_id = uvarint::read(from)?;
        let msg_type = uvarint::read(from)?;
        let flags = uvarint::read(from)?;
        let ts_unix_ms = uvarint::read(from)?;
        let msg_id = uvarint::read_bytes(from)?;
        let block = uvarint::read_bytes(from)?;
        within(FrameReason::ExtensionsTooLarge, block.len(), limits.max_ext_bytes)?;
        let extensions = Extensions::parse(block)?;
        let payload = uvarint::read_bytes(from)?;
        within(FrameReason::PayloadTooLarge, payload.len(), limits.max_payload_bytes)?;
        if !body.is_empty() {
            return Err(FrameReason::TrailingOctets.into());
        }
        Ok(Self { version, profile_id, msg_type, flags, ts_unix_ms, msg_id, extensions, payload })
    }

    /// The whole frame, prefix included, unless a peer with these limits would refuse it.
    pub fn encode(&self, limits: &SwpLimits) -> Result<Bytes, Reject> {
        self.validate(limits, Timestamps::Ignored)?;
        within(FrameReason::ExtensionsTooLarge, self.extensions.as_block().len(), limits.max_ext_bytes)?;
        let frame = self.encode_as_it_is();
        within(FrameReason::FrameTooLarge, frame.len() - PREFIX, limits.max_frame_bytes)?;
        Ok(frame)
    }

    /// The whole frame, also if no peer would take it.
    fn encode_as_it_is(&self) -> Bytes {
        let variable = self.msg_id.len() + self.extensions.as_block().len() + self.payload.len();
        // Eight numbers of at most ten octets stand beside what is counted.
        let mut frame = BytesMut::with_capacity(PREFIX + 80 + variable);
        frame.put_u32(0);
        for number in [self.version, self.profile_id, self.msg_type, self.flags, self.ts_unix_ms] {
            uvarint::write(number, &mut frame);
        }
        for field in [&self.msg_id, self.extensions.as_block(), &self.payload] {
            uvarint::write_bytes(field, &mut frame);
        }
        // A frame that does not fit into 32 bits is above every limit and never leaves `encode`.
        let length = u32::try_from(frame.len() - PREFIX).unwrap_or(u32::MAX);
        frame[..PREFIX].copy_from_slice(&length.to_be_bytes());
        frame.freeze()
    }
}

pub(crate) fn within(reason: FrameReason, found: usize, limit: u32) -> Result<(), Reject> {
    let (found, limit) = (found as u64, u64::from(limit));
    if found > limit { Err(Reject::beyond(reason, found, limit)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope() -> Envelope {
        let msg_id = Bytes::from_static(b"exchange-0000001");
        let mut envelope = Envelope::new(Profile::A2a, 2, msg_id, 1_771_513_334_652, Bytes::from_static(b"work"));
        envelope.extensions = [crate::Extension { ext_type: 16, value: Bytes::from_static(b"abc") }].into_iter().collect();
        envelope
    }

    fn body(envelope: &Envelope) -> Bytes {
        envelope.encode_as_it_is().slice(PREFIX..)
    }

    fn decoded(envelope: &Envelope, limits: &SwpLimits) -> Option<FrameReason> {
        Envelope::decode(body(envelope), limits).err().map(|reject| reject.reason())
    }

    #[test]
    fn the_extensions_and_the_payload_may_be_as_long_as_their_limits_and_no_longer() {
        let limits = |max_ext_bytes, max_payload_bytes| SwpLimits { max_ext_bytes, max_payload_bytes, ..SwpLimits::default() };
        assert_eq!(decoded(&envelope(), &limits(5, 4)), None);
        assert_eq!(decoded(&envelope(), &limits(4, 4)), Some(FrameReason::ExtensionsTooLarge));
        assert_eq!(decoded(&envelope(), &limits(5, 3)), Some(FrameReason::PayloadTooLarge));
        // The extensions stand first, so they are what is reported when both are too long.
        assert_eq!(decoded(&envelope(), &limits(4, 3)), Some(FrameReason::ExtensionsTooLarge));
        for limits in [limits(4, 4), limits(5, 3)] {
            let refused = envelope().encode(&limits).expect_err("is not written either").reason();
            assert_eq!(Some(refused), decoded(&envelope(), &limits));
        }
    }

    #[test]
    fn an_envelope_is_read_whole_before_any_of_it_is_judged() {
        let wrong = Envelope { version: 2, profile_id: 0, msg_type: 0, msg_id: Bytes::new(), ..envelope() };
        assert_eq!(decoded(&wrong, &SwpLimits::default()), None);
        let short = body(&wrong);
        let reject = Envelope::decode(short.slice(..short.len() - 1), &SwpLimits::default()).expect_err("is cut");
        assert_eq!(reject.reason(), FrameReason::TruncatedField);
    }

    #[test]
    fn an_envelope_cut_anywhere_or_with_an_octet_more_is_refused() {
        let whole = body(&envelope());
        for length in 0..whole.len() {
            assert!(Envelope::decode(whole.slice(..length), &SwpLimits::default()).is_err(), "{length}");
        }
        let more = Bytes::from([&whole[..], &[0]].concat());
        let reject = Envelope::decode(more, &SwpLimits::default()).expect_err("goes on");
        assert_eq!(reject.reason(), FrameReason::TrailingOctets);
    }

    #[test]
    fn a_frame_is_written_up_to_the_largest_length_a_peer_takes() {
        let length = body(&envelope()).len() as u32;
        let limits = |max_frame_bytes| SwpLimits { max_frame_bytes, ..SwpLimits::default() };
        let frame = envelope().encode(&limits(length)).expect("fits");
        assert_eq!(frame[..PREFIX], length.to_be_bytes());
        let reject = envelope().encode(&limits(length - 1)).expect_err("does not fit");
        assert_eq!(reject.reason(), FrameReason::FrameTooLarge);
    }

    #[test]
    fn a_reply_has_the_profile_and_the_id_of_its_question_and_nothing_else_of_it() {
        let asked = Envelope { flags: 9, ..envelope() };
        let reply = asked.reply(4, 7, Bytes::from_static(b"done"));
        assert_eq!(reply, Envelope::new(Profile::A2a, 4, asked.msg_id, 7, Bytes::from_static(b"done")));
    }

    #[test]
    fn the_fields_of_an_envelope_lie_where_the_frame_lies() {
        let whole = body(&envelope());
        let read = Envelope::decode(whole.clone(), &SwpLimits::default()).expect("reads");
        for field in [&read.msg_id, read.extensions.as_block(), &read.payload] {
            assert!(whole.as_ptr_range().contains(&field.as_ptr()));
        }
    }
}
