//! What a bundle says about itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::container::EVENTS;
use super::fault::{BundleFault, BundleFaultCode, unreadable};

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

fn algorithms() -> Value {
    // The backslash and the n are two characters.
    json!({ "canon": "jcs-rfc8785", "hash": "sha256", "root": "sha256(concat(content_hash + \"\\n\"))" })
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
            algorithms: algorithms(),
            files: json!({ EVENTS: { "path": EVENTS, "sha256": sha256, "bytes": events.len() } }),
        }
    }

    /// Whether the format's algorithms are named, which are the only ones there are.
    pub(super) fn check_algorithms(&self) -> Result<(), BundleFault> {
        if self.algorithms == algorithms() {
            return Ok(());
        }
        Err(BundleFault::new(BundleFaultCode::ManifestAltered, format!("the manifest: algorithms is not {}", algorithms())))
    }

    /// Whether the bytes of a manifest are those that were written for these events. Only this project's
    /// bundles must match: others may have another producer and more members.
    pub(super) fn check_as_written(written: &[u8], events: &[Value], lines: &[u8]) -> Result<(), BundleFault> {
        let altered = |what: String| BundleFault::new(BundleFaultCode::ManifestAltered, format!("the manifest: {what}"));
        let found = Self::read(written)?;
        let stamp = |name: &str| events.first().and_then(|event| event[name].as_str()).unwrap_or_default().to_owned();
        let producer = Producer {
            name: stamp("assayproducer"),
            version: stamp("assayproducerversion"),
            git: Some(stamp("assaygit")).filter(|git| git != "unknown"),
        };
        let expected = Self::of(producer, &found.run_id, events.len(), found.run_root.clone(), lines);
        let members = |manifest: &Self| serde_json::to_value(manifest).map_err(|fault| altered(fault.to_string()));
        let (says, should) = (members(&found)?, members(&expected)?);
        for (name, value) in should.as_object().into_iter().flatten() {
            if says[name] != *value {
                return Err(altered(format!("{name} is {}, and its events say {value}", says[name])));
            }
        }
        if expected.bytes().map_err(|fault| altered(fault.to_string()))? != written {
            return Err(altered("it is not written as it was, or has members that are not of the format".to_owned()));
        }
        Ok(())
    }

    pub fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json_canonicalizer::to_vec(self)
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, BundleFault> {
        let bad = |code, why: String| BundleFault::new(code, format!("the manifest: {why}"));
        let text = std::str::from_utf8(bytes).map_err(|fault| bad(BundleFaultCode::ContractInvalidJson, fault.to_string()))?;
        let value = chancery_identity::strict_json::parse(text).map_err(|fault| bad(unreadable(&fault), fault.to_string()))?;
        if value["schema_version"] != SCHEMA_VERSION {
            let version = &value["schema_version"];
            return Err(BundleFault::new(
                BundleFaultCode::ContractSchemaVersion,
                format!("schema_version is {version}, we read {SCHEMA_VERSION}"),
            ));
        }
        serde_json::from_value(value).map_err(|fault| bad(BundleFaultCode::ContractInvalidJson, fault.to_string()))
    }
}
