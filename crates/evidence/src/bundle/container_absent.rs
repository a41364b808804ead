//! Stands in for the container in a build without the feature `bundles`: nothing is packed or unpacked.

use super::fault::{BundleFault, BundleFaultCode};

pub const MANIFEST: &str = "manifest.json";
pub const EVENTS: &str = "events.ndjson";

const ABSENT: &str = "this build does not have the feature `evidence-bundles`";

/// Fails: this build cannot write gzip.
pub fn pack(_: &[u8], _: &[u8]) -> std::io::Result<Vec<u8>> {
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, ABSENT))
}

/// Fails: this build cannot read gzip.
pub fn unpack(_: &[u8]) -> Result<(Vec<u8>, Vec<u8>), BundleFault> {
    Err(BundleFault::new(BundleFaultCode::IntegrityGzip, ABSENT))
}
