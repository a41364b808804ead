//! The model from outside the crate.

mod artifact_version_handshake;
mod rfc3339;
