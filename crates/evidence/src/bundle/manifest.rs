//! What a bundle says about itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::container::EVENTS;
use super::fault::{BundleFault, Code, unreadable};

pub(super) const SCHEMA_VERSION: u64 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema_version: u64,
    /// The same as `run_root`.
    pub bundle_id: String,
    pub producer: Producer,
    /// Has no colon.
    pub run_id: String,
    pub event_count: u64,
    pub run_root: String,
    pub algorithms: Value,
    pub files: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producer {
    pub name: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
}

impl Manifest {
    /// `events` is the whole file, of which `run_root` is known.
    pub fn of(producer: Producer, run_id: &str, event_count: usize, run_root: String, events: &[u8]) -> Self {
        let sha256 = format!("sha256:{}", crate::record::hex(&crate::record::sha256(events)));
        Self {
            schema_version: SCHEMA_VERSION,
            bundle_id: run_root.clone(),
            producer,
            run_id: run_id.to_owned(),
            event_count: event_count as u64,
            run_root,
            // The backslash and the n are two characters.
            algorithms: json!({ "canon": "jcs-rfc8785", "hash": "sha256", "root": "sha256(concat(content_hash + \"\\n\"))" }),
            files: json!({ EVENTS: { "path": EVENTS, "sha256": sha256, "bytes": events.len() } }),
        }
    }

    pub fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json_canonicalizer::to_vec(self)
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, BundleFault> {
        let bad = |code, why: String| BundleFault::new(code, format!("the manifest: {why}"));
        let text = std::str::from_utf8(bytes).map_err(|fault| bad(Code::ContractInvalidJson, fault.to_string()))?;
        let value = chancery_identity::strict_json::parse(text).map_err(|fault| bad(unreadable(&fault), fault.to_string()))?;
        if value["schema_version"] != SCHEMA_VERSION {
            let version = &value["schema_version"];
            return Err(BundleFault::new(
                Code::ContractSchemaVersion,
                format!("schema_version is {version}, we read {SCHEMA_VERSION}"),
            ));
        }
        serde_json::from_value(value).map_err(|fault| bad(Code::ContractInvalidJson, fault.to_string()))
    }
}
