//! P1: the protobuf wrapper that every profile but MCP puts around its messages.

use bytes::Bytes;
use prost::Message;

use crate::{Reason, Reject};

/// The messages of one profile. The number of each in the wrapper is its message type.
pub(crate) trait Body: Sized {
    type Wrapper: Message + Default;

    const MSG_TYPES: std::ops::RangeInclusive<u64>;

    /// The message that was wrapped, if any was.
    fn out_of(wrapper: Self::Wrapper) -> Option<Self>;

    fn msg_type(&self) -> u64;
}

pub(crate) fn supports<B: Body>(msg_type: u64) -> Result<(), Reject> {
    if B::MSG_TYPES.contains(&msg_type) { Ok(()) } else { Err(Reason::UnsupportedMsgType.into()) }
}

/// Reads a payload as the message type of its envelope. Fields of bytes stay where they are.
pub(crate) fn read<B: Body>(msg_type: u64, payload: Bytes) -> Result<B, Reject> {
    supports::<B>(msg_type)?;
    let wrapper = B::Wrapper::decode(payload).map_err(Reject::malformed)?;
    let body = B::out_of(wrapper).ok_or(Reason::MissingBody)?;
    if body.msg_type() != msg_type {
        return Err(Reason::BodyMismatch.into());
    }
    Ok(body)
}
