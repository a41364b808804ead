//! The OBS profile: the W3C trace context of a message, a task or a call.

use bytes::Bytes;

use crate::Reject;
use crate::p1::{self, Body};

pub use crate::agdisc::Failure;

/// A trace context and what it belongs to. Whether `traceparent` is one is for whoever continues the trace.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TraceContext {
    #[prost(string, tag = "1")]
    pub traceparent: String,
    #[prost(string, tag = "2")]
    pub tracestate: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub msg_id: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub task_id: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub rpc_id: Bytes,
}

/// Asks for the trace context.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Get {
    #[prost(bool, tag = "1")]
    pub include_current: bool,
}

/// What the profile can say.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum Message {
    #[prost(message, tag = "1")]
    Set(TraceContext),
    #[prost(message, tag = "2")]
    Get(Get),
    #[prost(message, tag = "3")]
    Doc(TraceContext),
    #[prost(message, tag = "4")]
    Failure(Failure),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Wrapper {
    #[prost(oneof = "Message", tags = "1, 2, 3, 4")]
    body: Option<Message>,
}

impl Body for Message {
    type Wrapper = Wrapper;

    const MSG_TYPES: std::ops::RangeInclusive<u64> = 1..=4;

    fn out_of(wrapper: Wrapper) -> Option<Self> {
        wrapper.body
    }

    fn msg_type(&self) -> u64 {
        match self {
            Self::Set(_) => 1,
            Self::Get(_) => 2,
            Self::Doc(_) => 3,
            Self::Failure(_) => 4,
        }
    }
}

impl Message {
    pub fn read(msg_type: u64, payload: Bytes) -> Result<Self, Reject> {
        p1::read(msg_type, payload)
    }

    pub fn msg_type(&self) -> u64 {
        Body::msg_type(self)
    }

    pub fn to_payload(&self) -> Bytes {
        let mut payload = Vec::with_capacity(self.encoded_len());
        self.encode(&mut payload);
        payload.into()
    }
}
