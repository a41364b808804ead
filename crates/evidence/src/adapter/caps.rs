//! How large, how deep and how long a packet may be; none of it is capped unless the caller says so.

use serde_json::Value;

use super::error::AdapterError;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdapterCaps {
    pub max_payload_bytes: Option<u64>,
    /// The outermost value has depth 1, and scalars count.
    pub max_json_depth: Option<u64>,
    /// For every array of the packet, also in members that are not read.
    pub max_array_length: Option<u64>,
}

impl AdapterCaps {
    pub(super) fn size(&self, bytes: &[u8]) -> Result<(), AdapterError> {
        within(self.max_payload_bytes, bytes.len() as u64, "max_payload_bytes")
    }

    /// Depth first, members by key. At each value the depth is looked at before the length.
    pub(super) fn shape(&self, packet: &Value) -> Result<(), AdapterError> {
        if self.max_json_depth.is_none() && self.max_array_length.is_none() {
            return Ok(());
        }
        self.shape_at(packet, 1)
    }

    fn shape_at(&self, value: &Value, depth: u64) -> Result<(), AdapterError> {
        within(self.max_json_depth, depth, "max_json_depth")?;
        match value {
            Value::Array(items) => {
                within(self.max_array_length, items.len() as u64, "max_array_length")?;
                items.iter().try_for_each(|item| self.shape_at(item, depth + 1))
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(key, _)| *key);
                members.into_iter().try_for_each(|(_, member)| self.shape_at(member, depth + 1))
            }
            _ => Ok(()),
        }
    }
}

fn within(cap: Option<u64>, size: u64, name: &str) -> Result<(), AdapterError> {
    match cap {
        Some(cap) if size > cap => Err(AdapterError::measurement(format!("payload exceeds {name} ({cap})"))),
        _ => Ok(()),
    }
}
