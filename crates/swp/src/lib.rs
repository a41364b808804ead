//! SWP without sockets or clock: frames, E1 envelopes, P1 payloads, the policy of a connection and the lifecycle of the A2A profile.
//!
//! Bytes come in through a [`Reader`], which does every check in the order the protocol gives them; what it hands out
//! goes to a [`Lifecycle`]. Each part can also be used by itself. A refusal is a [`Reject`], which knows both names of its cause.

pub mod a2a;
pub mod agdisc;
mod code;
mod envelope;
mod extensions;
mod frame;
mod limits;
pub mod obs;
mod p1;
mod payload;
mod profile;
mod reader;
mod reason;
mod reject;
mod traffic;
mod uvarint;
mod validate;

pub use a2a::{Lifecycle, MessageEffect, Party, Speakers, SwpTaskState};
pub use code::SwpCode;
pub use envelope::Envelope;
pub use extensions::{Extension, Extensions};
pub use frame::FrameDecoder;
pub use limits::SwpLimits;
pub use payload::FramePayload;
pub use profile::Profile;
pub use reader::{Reader, Received};
pub use reason::FrameReason;
pub use reject::{Measured, Reject};
pub use traffic::Traffic;
pub use validate::Timestamps;
