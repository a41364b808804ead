//! The protobuf forms of the protocol: the official gRPC service of 1.0 (`v1`) and that of 0.3 (`v0_3`).
//!
//! Both have the same parts, so a door says one line per method over one generic helper. What is the same in both schemas but
//! for names is written once, as the macros of `objects` and `calls`:
//!
//! - `request::send_message(message) -> Result<Request, Error>`, one function per method: what a caller asks. Faults name
//!   the field by the schema's own names.
//! - `reply::sent(reply) -> Result<message, Error>`, one function per kind of answer. A reply of another kind is an internal
//!   error, because only a defect of ours can pair the two wrongly.
//! - `event::write(face, event) -> Option<StreamResponse>`: what a stream shows of an event; nothing for what it does not.
//! - `card::write(card)` and `card::read(message)`.
//! - `peer` is the other way round, for a client: requests we send and replies we read. `event::read` reads a peer's stream.
//!
//! The generated stubs are `generated::lf_a2a_v1::a2a_service_server` and `generated::a2a_v1::a2a_service_server`, with
//! `_client` beside them; `v1::proto` and `v0_3::proto` are short names for the two modules.

mod calls;
#[cfg(feature = "grpc")]
mod codec;
mod decode_error;
mod fields;
mod objects;
mod structs;
pub mod v0_3;
pub mod v1;

pub mod generated {
    //! What `cargo xtask codegen` makes of the schemas, one module per package.
    pub mod a2a_v1;
    pub mod lf_a2a_v1;
}

#[cfg(feature = "grpc")]
pub use codec::{Codec, Reader};
pub use decode_error::decode_error;
pub use structs::MAX_DEPTH;

#[cfg(all(test, feature = "grpc"))]
mod tests;
