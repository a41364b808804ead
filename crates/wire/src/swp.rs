//! SWP's A2A profile onto the model and back: a task is a message that is sent, its events and its result are the answer's stream.
//!
//! A task declares the form of its input: text, JSON, opaque octets, or a whole A2A message in protobuf,
//! which loses nothing. A task in the last form gets its answer in the same form.

#[cfg(feature = "swp")]
mod content;
#[cfg(feature = "swp")]
mod report;
#[cfg(feature = "swp")]
mod report_reader;
#[cfg(feature = "swp")]
mod task;
#[cfg(all(test, feature = "swp"))]
mod tests;

pub use chancery_swp as codec;

#[cfg(feature = "swp")]
pub use self::content::{Content, Convention, Given};
#[cfg(feature = "swp")]
pub use self::report::{Report, Reporter, refusal, too_large};
#[cfg(feature = "swp")]
pub use self::report_reader::{ReportFault, ReportReader};
#[cfg(feature = "swp")]
pub use self::task::{read_task, write_task};

/// How cards name this binding.
pub const BINDING: &str = "https://chancery.dev/a2a/bindings/swp/v1";
/// The port that an address without one means.
pub const PORT: u16 = 7777;

/// Extensions of an envelope, with numbers that are reserved for profiles. Readers ignore unknown ones.
pub mod extension {
    /// One octet: how the opaque octets of this message are to be read.
    pub const CONVENTION: u64 = 16;
    /// The media type of octets of somebody's own.
    pub const MEDIA_TYPE: u64 = 17;
    /// On a task: names the task that it is given for, readable by the issuer of the token.
    pub const HOP_TOKEN: u64 = 18;
}
