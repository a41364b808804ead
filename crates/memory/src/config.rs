//! The `[memory]` section.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_identity::{Algorithm, PublicKey};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::Capability;

/// The version of witnesses that cards name.
const WITNESS_FORMAT: u32 = 2;

#[cfg(feature = "tier")]
const _: () = assert!(WITNESS_FORMAT == ruvector_rulake::RuLakeBundle::FORMAT_VERSION);

/// The `[memory]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Where vectors and bundles lie, a folder that the nodes of one house share. Left out, there is no memory.
    pub tier: Option<String>,
    /// What the tier is called in grants and on cards.
    pub shard: String,
    /// Other nodes whose grants count here, by their keys. Grants of this node always do.
    pub issuers: Vec<IssuerKey>,
    /// Largest collection that is taken or read.
    pub max_collection_bytes: u64,
    /// Vectors that are held ready to be searched; the least used make room.
    pub resident_bytes: u64,
    /// No grant lasts longer.
    pub max_grant_hours: u64,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            tier: None,
            shard: "default".to_owned(),
            issuers: Vec::new(),
            max_collection_bytes: 1 << 30,
            resident_bytes: 2 << 30,
            max_grant_hours: 30 * 24,
        }
    }
}

/// The `[artifacts]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArtifactsConfig {
    /// A folder of JSON Schemas. Artifacts that name one of them by its `$id` have to obey it.
    pub schemas: Option<PathBuf>,
    /// Take artifacts of a newer version for what they are in ours.
    pub accept_lower_version_artifacts: bool,
    /// Large parts are put into the memory tier.
    pub offload: bool,
    /// From how many bytes on a part is large.
    pub offload_above_bytes: u64,
    /// The most that is put back into one answer for callers that take no references. Streams get it piece by piece.
    pub restore_bytes: u64,
    /// The most bytes of offloaded parts for one task.
    pub offload_task_bytes: u64,
}

impl Default for ArtifactsConfig {
    fn default() -> Self {
        Self {
            schemas: None,
            accept_lower_version_artifacts: false,
            offload: false,
            offload_above_bytes: 1 << 18,
            restore_bytes: 8 << 20,
            offload_task_bytes: 1 << 30,
        }
    }
}

impl MemoryConfig {
    /// What cards say of the tier, for `metadata.ruvector.memory`. Where it lies is nobody's business.
    pub fn advertised(&self) -> Option<Map<String, Value>> {
        self.tier.as_ref()?;
        let facts = json!({
            "type": "rvlake",
            "shard": self.shard,
            "capabilities": Capability::ALL,
            "witness_format_version": WITNESS_FORMAT,
        });
        facts.as_object().cloned()
    }
}

/// An Ed25519 public key as `chancery memory show` prints it: 32 bytes in base64url.
#[derive(Clone, Debug, PartialEq)]
pub struct IssuerKey(pub PublicKey);

impl Serialize for IssuerKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&URL_SAFE_NO_PAD.encode(self.0.raw()))
    }
}

impl<'de> Deserialize<'de> for IssuerKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        let raw = URL_SAFE_NO_PAD.decode(text.as_bytes()).map_err(|_| de::Error::custom("a key is 32 bytes in base64url"))?;
        PublicKey::from_raw(Algorithm::EdDsa, &raw).map(Self).map_err(de::Error::custom)
    }
}
