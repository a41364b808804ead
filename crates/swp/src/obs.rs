//! The OBS profile: the W3C trace context of a message, a task or a call.

use bytes::Bytes;

use crate::Reject;
use crate::p1;

pub use crate::agdisc::Failure;

/// A trace context and what it belongs to. The code that continues the trace checks `traceparent`.
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
pub struct GetTraceContext {
    #[prost(bool, tag = "1")]
    pub include_current: bool,
}

/// What the profile can say.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum ObsMessage {
    #[prost(message, tag = "1")]
    Set(TraceContext),
    #[prost(message, tag = "2")]
    Get(GetTraceContext),
    #[prost(message, tag = "3")]
    Doc(TraceContext),
    #[prost(message, tag = "4")]
    Failure(Failure),
}

p1::wrapped!(ObsMessage "ObsMessage": Set = 1, Get = 2, Doc = 3, Failure = 4);

impl ObsMessage {
    pub fn read(msg_type: u64, payload: Bytes) -> Result<Self, Reject> {
        p1::read(msg_type, payload)
    }
}
