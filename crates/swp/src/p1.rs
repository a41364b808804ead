//! P1: the protobuf wrapper that every profile but MCP puts around its messages.

use bytes::Bytes;
use prost::Message;

use crate::{FrameReason, Reject};

/// The messages of one profile. The number of each in the wrapper is its message type.
pub(crate) trait Body: Sized {
    type Wrapper: Message + Default;

    const MSG_TYPES: std::ops::RangeInclusive<u64>;

    /// The message that was wrapped, if any was.
    fn out_of(wrapper: Self::Wrapper) -> Option<Self>;

    fn msg_type(&self) -> u64;
}

pub(crate) fn supports<B: Body>(msg_type: u64) -> Result<(), Reject> {
    if B::MSG_TYPES.contains(&msg_type) { Ok(()) } else { Err(FrameReason::UnsupportedMsgType.into()) }
}

/// Reads a payload as the message type of its envelope. Fields of bytes stay where they are.
pub(crate) fn read<B: Body>(msg_type: u64, payload: Bytes) -> Result<B, Reject> {
    supports::<B>(msg_type)?;
    let wrapper = B::Wrapper::decode(payload).map_err(Reject::malformed)?;
    let body = B::out_of(wrapper).ok_or(FrameReason::MissingBody)?;
    if body.msg_type() != msg_type {
        return Err(FrameReason::BodyMismatch.into());
    }
    Ok(body)
}

/// What the messages of a profile share: the wrapper around them, and reading and writing through it.
macro_rules! wrapped {
    ($message:ident $oneof:tt: $($variant:ident = $number:literal),+) => {
        #[derive(Clone, PartialEq, prost::Message)]
        pub(crate) struct Wrapper {
            #[prost(oneof = $oneof, tags = "1, 2, 3, 4")]
            body: Option<$message>,
        }

        impl $crate::p1::Body for $message {
            type Wrapper = Wrapper;

            const MSG_TYPES: std::ops::RangeInclusive<u64> = 1..=4;

            fn out_of(wrapper: Wrapper) -> Option<Self> {
                wrapper.body
            }

            fn msg_type(&self) -> u64 {
                match self {
                    $(Self::$variant(_) => $number),+
                }
            }
        }

        impl $message {
            pub fn msg_type(&self) -> u64 {
                $crate::p1::Body::msg_type(self)
            }

            pub fn to_payload(&self) -> bytes::Bytes {
                let mut payload = Vec::with_capacity(self.encoded_len());
                self.encode(&mut payload);
                payload.into()
            }
        }
    };
}

pub(crate) use wrapped;
