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
mod storage_backend;
mod tier;
mod witness;

pub use config::{ArtifactsConfig, IssuerKey, MemoryConfig};
pub use digest::Digest;
pub use error::{GrantRefusal, MemoryError};
pub use gate::{MemoryGate, MemoryRequest, WrittenCollection};
pub use grant::{Capability, GrantIssuer, MAX_GRANT, MemoryGrant};
pub use incoming::Incoming;
pub use offload::Offload;
pub use ruvec::{HEADER_BYTES, VectorShape};
pub use schemas::{SchemaFault, Schemas};
pub use tier::{Neighbour, PublishedCollection, Resolved, Tier};
pub use witness::Witness;
