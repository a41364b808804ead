//! The adapter's own canonical JSON and its digests. It is not RFC 8785: keys are ordered by code point, and
//! numbers keep their kind.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Error, Value};

/// No white space, keys sorted by their UTF-8 bytes, only the escapes JSON requires, integers in full and floats marked as such.
pub fn canonical_json_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    write(&serde_json::to_value(value)?, &mut bytes)?;
    Ok(bytes)
}

/// SHA-256 of the canonical form in lower-case hex, without a prefix.
pub fn digest_canonical_json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    canonical_json_bytes(value).map(|bytes| sha256_hex(&bytes))
}

pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(item, out)?;
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (place, (key, member)) in members.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, key)?;
                out.push(b':');
                write(member, out)?;
            }
            out.push(b'}');
        }
        scalar => serde_json::to_writer(out, scalar)?,
    }
    Ok(())
}
