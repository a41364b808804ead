//! The version gate: 0.2 and later, below 1.0.

use super::error::{AdapterError, AdapterErrorKind};

/// What the gate lets through, as the capabilities say it.
pub(super) const SUPPORTED: &str = ">=0.2 <1.0";

/// Only the first two numbers are looked at, so `0.2.0-rc1` passes and `0.2-beta` does not. Nothing is trimmed.
pub(super) fn gate(version: &str) -> Result<(), AdapterError> {
    let mut numbers = version.split('.').map(|number| number.parse::<u64>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(0), Some(2..)) => Ok(()),
        _ => Err(AdapterError::new(AdapterErrorKind::UnsupportedProtocolVersion, format!("unsupported A2A version: {version}"))),
    }
}
