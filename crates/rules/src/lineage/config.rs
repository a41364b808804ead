//! The `[lineage]` section.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LineageConfig {
    pub unattributed: Unattributed,
}

/// What becomes of a call that proves no parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unattributed {
    /// It is put under the task it can only come from, or bound by all it could come from.
    #[default]
    Infer,
    /// It is refused if an agent made it.
    Deny,
    /// It starts a tree of its own.
    Root,
}
