//! Bundles: evidence in one file that third parties can check without this node.
//!
//! A bundle is a gzipped tar of exactly two files, `manifest.json` and `events.ndjson`. Events are CloudEvents, one in a line,
//! each with the digest of its content; the manifest names their number, their common run and the digest over all of theirs. A bundle of
//! ours also holds what ties its entries to the record they are from: links, checkpoints and proofs, as events of types of our own.

mod complete;
#[cfg(feature = "bundles")]
mod container;
#[cfg(not(feature = "bundles"))]
#[path = "container_absent.rs"]
mod container;
mod event;
mod fault;
mod links;
mod manifest;
mod ties;
mod verify;
mod write;

pub use container::{EVENTS, MANIFEST, pack, unpack};
pub use event::{BundleEvent, Stamp, content_hash, rfc3339, subject_of};
pub use fault::{BundleFault, BundleFaultCode};
pub use manifest::{Manifest, Producer};
pub use ties::{BundleReport, BundleScope};
pub use verify::{CheckedBundle, check, verify};
pub use write::{SealFault, seal};

/// What a reader takes at most.
pub mod limits {
    pub const BUNDLE_BYTES: u64 = 100 << 20;
    pub const DECODED_BYTES: u64 = 1 << 30;
    pub const MANIFEST_BYTES: u64 = 10 << 20;
    pub const EVENTS_BYTES: u64 = 500 << 20;
    pub const EVENTS: usize = 100_000;
    pub const LINE_BYTES: usize = 1 << 20;
    pub const PATH_BYTES: usize = 256;
}
