//! Memory by reference: a tier of vector collections on ruLake, the witnesses that name them, and the grants that open them.
//!
//! Everything here blocks: it reads files and computes. Callers with an event loop put it on a thread of its own.
//! The feature `tier` is the memory, `schemas` the check of artifacts. Without both, the crate is their config sections.

#[cfg(feature = "tier")]
mod backend;
#[cfg(feature = "tier")]
mod bucket;
mod capability;
mod config;
#[cfg(feature = "tier")]
mod digest;
#[cfg(feature = "tier")]
mod error;
#[cfg(feature = "tier")]
mod folder;
#[cfg(feature = "tier")]
mod gate;
#[cfg(feature = "tier")]
mod generation;
#[cfg(feature = "tier")]
mod grant;
#[cfg(feature = "tier")]
mod incoming;
#[cfg(feature = "tier")]
mod offload;
#[cfg(feature = "tier")]
mod ruvec;
mod schema_fault;
#[cfg(feature = "schemas")]
mod schemas;
#[cfg(not(feature = "schemas"))]
mod schemas_absent;
#[cfg(feature = "tier")]
mod storage_backend;
#[cfg(feature = "tier")]
mod tier;
#[cfg(not(feature = "tier"))]
mod tier_absent;
#[cfg(feature = "tier")]
mod witness;

pub use capability::Capability;
pub use config::{ArtifactsConfig, IssuerKey, MemoryConfig};
#[cfg(feature = "tier")]
pub use digest::Digest;
#[cfg(feature = "tier")]
pub use error::{GrantRefusal, MemoryError};
#[cfg(feature = "tier")]
pub use gate::{MemoryGate, MemoryRequest, WrittenCollection};
#[cfg(feature = "tier")]
pub use grant::{GrantIssuer, MAX_GRANT, MemoryGrant};
#[cfg(feature = "tier")]
pub use incoming::Incoming;
#[cfg(feature = "tier")]
pub use offload::Offload;
#[cfg(feature = "tier")]
pub use ruvec::{HEADER_BYTES, VectorShape};
pub use schema_fault::SchemaFault;
#[cfg(feature = "schemas")]
pub use schemas::Schemas;
#[cfg(not(feature = "schemas"))]
pub use schemas_absent::Schemas;
#[cfg(feature = "tier")]
pub use tier::{Neighbour, PublishedCollection, Resolved, Tier};
#[cfg(not(feature = "tier"))]
pub use tier_absent::{MemoryError, Offload, Tier};
#[cfg(feature = "tier")]
pub use witness::Witness;
