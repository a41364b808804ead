//! One connection read in the order of the protocol: frame, envelope, its validity, the connection's policy, the payload.

use bytes::{Bytes, BytesMut};

use crate::{Envelope, FrameDecoder, FramePayload, Reject, SwpLimits, Timestamps, Traffic};

/// A frame that passed every check but those that need to know about tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub envelope: Envelope,
    pub payload: FramePayload,
}

/// Reads the frames of a peer. A refused frame does not stop the reader: the owner of the connection closes
/// it.
#[derive(Debug)]
pub struct Reader {
    limits: SwpLimits,
    frames: FrameDecoder,
    traffic: Traffic,
}

impl Reader {
    pub fn new(limits: SwpLimits) -> Self {
        Self { frames: FrameDecoder::new(&limits), traffic: Traffic::new(&limits), limits }
    }

    pub fn push(&mut self, octets: &[u8]) {
        self.frames.push(octets);
    }

    /// Where a socket can read into directly.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.frames.buffer()
    }

    /// The body of the next frame, or none until more has arrived. An error here is final: the boundaries of
    /// frames are lost.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, Reject> {
        self.frames.next_frame()
    }

    /// What the body of a frame says. `elapsed_ms` is of a clock that does not go back, for the connection's policy.
    pub fn read(&mut self, body: Bytes, timestamps: Timestamps, elapsed_ms: u64) -> Result<Received, Reject> {
        let envelope = Envelope::decode(body, &self.limits)?;
        envelope.validate(&self.limits, timestamps)?;
        self.traffic.admit(&envelope.msg_id, elapsed_ms)?;
        let payload = FramePayload::read(&envelope, &self.limits)?;
        Ok(Received { envelope, payload })
    }

    /// Says that the stream has ended, which is fine between two frames only.
    pub fn finish(&mut self) -> Result<(), Reject> {
        self.frames.finish()
    }
}
