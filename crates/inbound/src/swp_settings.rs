//! Rules and limits for SWP peers: a part of the config in every build, with or without SWP.

use chancery_wire::swp::codec;
use serde::{Deserialize, Serialize};

/// How the timestamps of envelopes are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamping {
    /// The node does not look at the time of a frame.
    #[default]
    Ignored,
    /// Timestamps that are present are checked.
    Checked,
    /// An envelope without a timestamp is rejected.
    Required,
}

/// Part of the `[swp]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwpRules {
    /// The longest silence of a connection without an open task, and the longest time for a frame to arrive.
    pub idle_ms: u64,
    /// The check of the times of frames.
    pub timestamps: Timestamping,
}

impl Default for SwpRules {
    fn default() -> Self {
        Self { idle_ms: 60_000, timestamps: Timestamping::Ignored }
    }
}

/// Rules and frame limits of the SWP listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwpSettings {
    pub rules: SwpRules,
    pub limits: codec::SwpLimits,
}
