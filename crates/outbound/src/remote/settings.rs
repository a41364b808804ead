//! How an operator wants one agent to be called, where its card or its habits are not to decide.

use std::time::Duration;

use chancery_protocol::{Binding, Version};
use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

/// Whether the node requests a stream from an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamMode {
    /// As the caller asks, unless the agent is known to be worse at it.
    #[default]
    Auto,
    /// Every call is unary; the caller's stream is made from polls.
    Never,
    /// Every call is a stream, so that caps act while a task runs.
    Always,
}

/// Where an agent receives the lineage of its task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineageSetting {
    /// As its card and its version say.
    #[default]
    Auto,
    /// In headers alone.
    Header,
    /// In the metadata beside the message.
    Metadata,
}

/// The overrides of one agent, from its `[agents.NAME]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSettings {
    /// The URL that calls go to, instead of those on the card.
    pub address: Option<String>,
    /// The only binding that is used.
    pub binding: Option<Binding>,
    /// The only version that is used.
    pub version: Option<Version>,
    /// Whether calls are streams.
    pub stream: StreamMode,
    /// Where lineage is sent.
    pub lineage: LineageSetting,
    /// Sent with every call.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long a call may take to be answered, in place of `[peers] read_ms`.
    pub timeout: Option<Duration>,
    /// Answers that deviate from their version are rejected.
    pub strict: bool,
}
