//! Memory by reference: a tier of vector collections on ruLake, the witnesses that name them, and the grants that open them.
//!
//! Everything here blocks: it reads files and computes. Callers with an event loop put it on a thread of its own.

mod backend;
mod bucket;
mod config;
mod digest;
mod error;
mod folder;
mod gate;
mod generation;
mod grant;
mod incoming;
mod offload;
mod ruvec;
mod schemas;
mod shelf;
mod tier;
mod witness;

pub use config::{ArtifactsConfig, IssuerKey, MemoryConfig};
pub use digest::Digest;
pub use error::{MemoryError, Refusal};
pub use gate::{Ask, Gate, Written};
pub use grant::{Capability, Grant, GrantBook, MAX_GRANT};
pub use incoming::Incoming;
pub use offload::Offload;
pub use ruvec::{HEADER_BYTES, Shape};
pub use schemas::{SchemaFault, Schemas};
pub use tier::{Neighbour, Published, Resolved, Tier};
pub use witness::Witness;
