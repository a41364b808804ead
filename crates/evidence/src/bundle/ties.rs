//! The shapes of what ties a bundle to its record, and of what is found when that is checked.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// What a bundle was found to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BundleReport {
    /// Entries of a record.
    pub entries: usize,
    /// Events that the frozen adapter made of them.
    pub packets: usize,
    pub checkpoints: usize,
    /// The first and the last entry, by their indexes.
    pub first: Option<u64>,
    pub last: Option<u64>,
    /// The keys that signed. Whose they are is not in the bundle.
    pub keys: BTreeSet<String>,
    /// The request that the bundle claims to answer. No signature covers it: a party that shortens a bundle
    /// can also shorten the request.
    #[serde(flatten)]
    pub scope: BundleScope,
    /// Tasks whose beginning is not there.
    pub cut: BTreeSet<String>,
    /// Tasks whose end is not there: they went on, or what came later was taken out. A stretch of time names none.
    pub open: BTreeSet<String>,
}

/// `data` of an event with links: for each entry of the bundle where it is, and what it follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Links {
    pub(crate) scope: BundleScope,
    pub(crate) links: Vec<ChainLink>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChainLink {
    pub(crate) seq: u64,
    pub(crate) index: u64,
    pub(crate) prev: String,
}

/// What was asked for. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleScope {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// The first entry that the record still had. What came before had been forgotten.
    pub kept_from: u64,
}

impl BundleScope {
    /// All entries of a stretch of time, not only some.
    pub(crate) fn is_range(&self) -> bool {
        self.task.is_none() && self.trace.is_none()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignedCheckpoint {
    /// What is signed, as it was signed.
    pub(crate) body: String,
    /// In base64url.
    pub(crate) signature: String,
}

/// The way from an entry to the root of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InclusionProof {
    pub(crate) index: u64,
    pub(crate) checkpoint: u64,
    pub(crate) path: Vec<String>,
}
