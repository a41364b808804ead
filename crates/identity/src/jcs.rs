//! The canonical form of a JSON value (RFC 8785): equal values have equal bytes, so bytes can be signed.

use serde_json::Value;

use crate::strict_json::MAX_SAFE_INTEGER;

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalFault {
    /// It would be rounded to a double in silence, and a signature would cover the rounded number.
    #[error("{0} has no canonical form: it is beyond ±(2^53 - 1)")]
    Integer(serde_json::Number),
    /// The value cannot be written as JSON.
    #[error("no canonical form")]
    Unwritable(#[from] serde_json::Error),
}

pub fn canonical(value: &Value) -> Result<Vec<u8>, CanonicalFault> {
    refuse_rounding(value)?;
    Ok(serde_json_canonicalizer::to_vec(value)?)
}

fn refuse_rounding(value: &Value) -> Result<(), CanonicalFault> {
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| size > MAX_SAFE_INTEGER) {
                return Err(CanonicalFault::Integer(number.clone()));
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(refuse_rounding),
        Value::Object(members) => members.values().try_for_each(refuse_rounding),
        _ => Ok(()),
    }
}
