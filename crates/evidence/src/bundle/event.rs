//! An event of a bundle, and the digest of its content.

use chancery_protocol::Timestamp;
use serde_json::{Map, Value, json};

use crate::record::{hex, sha256, types};

/// An event that has no place in a bundle yet.
#[derive(Clone, Debug, PartialEq)]
pub struct BundleEvent {
    pub kind: String,
    pub time: String,
    pub subject: Option<String>,
    pub data: Value,
}

/// What all events of a bundle have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Has a colon, and not at its beginning.
    pub source: String,
    /// Has no colon.
    pub run: String,
    pub producer: String,
    pub producer_version: String,
    pub git: String,
}

impl BundleEvent {
    /// The event at its place, with the digest of its content.
    pub fn stamped(&self, stamp: &Stamp, seq: usize) -> Result<(Value, String), serde_json::Error> {
        let mut event = json!({
            "specversion": "1.0",
            "type": self.kind,
            "source": stamp.source,
            "id": format!("{}:{seq}", stamp.run),
            "time": self.time,
            "datacontenttype": "application/json",
            "assayrunid": stamp.run,
            "assayseq": seq,
            "assayproducer": stamp.producer,
            "assayproducerversion": stamp.producer_version,
            "assaygit": stamp.git,
            "assaypii": false,
            "assaysecrets": false,
            "data": self.data,
        });
        if let Some(subject) = &self.subject {
            event["subject"] = json!(subject);
        }
        let hash = content_hash(&event)?;
        event["assaycontenthash"] = json!(hash);
        Ok((event, hash))
    }
}

/// `sha256:` and the digest over the canonical form (RFC 8785) of what the event says. Neither its place nor its time nor who produced it is in it.
pub fn content_hash(event: &Value) -> Result<String, serde_json::Error> {
    let covered = ["specversion", "type", "datacontenttype", "subject", "data"];
    let content: Map<String, Value> =
        covered.iter().filter_map(|name| Some(((*name).to_owned(), event.get(*name)?.clone()))).collect();
    let bytes = serde_json_canonicalizer::to_vec(&Value::Object(content))?;
    Ok(format!("sha256:{}", hex(&sha256(&bytes))))
}

/// To the microsecond, so that nothing of the time is lost.
pub fn rfc3339(at: Timestamp) -> String {
    at.to_micros_text()
}

/// What an entry is about.
pub fn subject_of(kind: &str, data: &Value) -> Option<String> {
    let member = match kind {
        types::CARD => "agent",
        types::FROZEN | types::THAWED => "scope",
        types::REFUSED | types::LOOKED if data["task"].is_null() => "decision",
        types::ARTIFACT => "artifact",
        _ => "task",
    };
    data[member].as_str().map(str::to_owned)
}
