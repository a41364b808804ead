//! SWP without sockets or clock: frames, E1 envelopes, P1 payloads, the policy of a connection and the lifecycle of the A2A profile.
//!
//! Bytes come in through a [`Reader`], which does every check in the order the protocol gives them; what it hands out
//! goes to a [`Lifecycle`]. Each part can also be used by itself. A refusal is a [`Reject`], which knows both names of its cause.

#[cfg(feature = "frames")]
pub mod a2a;
#[cfg(feature = "frames")]
pub mod agdisc;
#[cfg(feature = "frames")]
mod code;
#[cfg(feature = "frames")]
mod envelope;
#[cfg(feature = "frames")]
mod extensions;
#[cfg(feature = "frames")]
mod frame;
mod limits;
#[cfg(feature = "frames")]
pub mod obs;
#[cfg(feature = "frames")]
mod p1;
#[cfg(feature = "frames")]
mod payload;
#[cfg(feature = "frames")]
mod profile;
#[cfg(feature = "frames")]
mod reader;
#[cfg(feature = "frames")]
mod reason;
#[cfg(feature = "frames")]
mod reject;
#[cfg(feature = "frames")]
mod traffic;
#[cfg(feature = "frames")]
mod uvarint;
#[cfg(feature = "frames")]
mod validate;

#[cfg(feature = "frames")]
pub use a2a::{Lifecycle, MessageEffect, Party, Speakers, SwpTaskState};
#[cfg(feature = "frames")]
pub use code::SwpCode;
#[cfg(feature = "frames")]
pub use envelope::Envelope;
#[cfg(feature = "frames")]
pub use extensions::{Extension, Extensions};
#[cfg(feature = "frames")]
pub use frame::FrameDecoder;
pub use limits::SwpLimits;
#[cfg(feature = "frames")]
pub use payload::FramePayload;
#[cfg(feature = "frames")]
pub use profile::Profile;
#[cfg(feature = "frames")]
pub use reader::{Reader, Received};
#[cfg(feature = "frames")]
pub use reason::FrameReason;
#[cfg(feature = "frames")]
pub use reject::{Measured, Reject};
#[cfg(feature = "frames")]
pub use traffic::Traffic;
#[cfg(feature = "frames")]
pub use validate::Timestamps;
