//! The `[lineage]` section.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

/// The range of `max_bytes`. The least has room for `traceparent` and this node's own member of `tracestate`.
pub const LINEAGE_BYTES: std::ops::RangeInclusive<usize> = 256..=16_384;

/// The longest time a task that has ended may still place calls, in seconds.
pub const LONGEST_LINGER_S: u64 = 3_600;

/// The range of `max_ended`.
pub const ENDED_TASKS: std::ops::RangeInclusive<usize> = 100..=1_000_000;

/// The `[lineage]` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LineageConfig {
    /// What happens to a call that cannot be placed in a tree.
    pub unattributed: Unattributed,
    /// Whether the marks that this node puts into `tracestate` and `traceparent` place the calls that bring them back.
    pub traces: bool,
    /// Whether a context that a call claims, or its agent's own name for an open task, makes it deeper or charges it to that tree.
    pub claims: bool,
    /// How long a task that has ended still places the calls of its agent.
    #[serde(deserialize_with = "linger")]
    pub linger_s: u64,
    /// The most ended tasks that the node remembers for that.
    #[serde(deserialize_with = "max_ended")]
    pub max_ended: usize,
    /// The most bytes that lineage adds to one call of a remote agent, headers and metadata together.
    #[serde(deserialize_with = "max_bytes")]
    pub max_bytes: usize,
}

impl Default for LineageConfig {
    fn default() -> Self {
        Self {
            unattributed: Unattributed::default(),
            traces: true,
            claims: true,
            linger_s: 60,
            max_ended: 10_000,
            max_bytes: 4_096,
        }
    }
}

impl LineageConfig {
    /// Returns the time for which an ended task can be a parent.
    pub fn linger(&self) -> Duration {
        Duration::from_secs(self.linger_s)
    }
}

fn linger<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let seconds = u64::deserialize(from)?;
    if seconds > LONGEST_LINGER_S {
        return Err(serde::de::Error::custom(format_args!("must be from 0 to {LONGEST_LINGER_S}")));
    }
    Ok(seconds)
}

fn max_ended<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let tasks = usize::deserialize(from)?;
    if !ENDED_TASKS.contains(&tasks) {
        let (least, most) = (ENDED_TASKS.start(), ENDED_TASKS.end());
        return Err(serde::de::Error::custom(format_args!("must be from {least} to {most}")));
    }
    Ok(tasks)
}

fn max_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let bytes = usize::deserialize(from)?;
    if !LINEAGE_BYTES.contains(&bytes) {
        let (least, most) = (LINEAGE_BYTES.start(), LINEAGE_BYTES.end());
        return Err(serde::de::Error::custom(format_args!("must be from {least} to {most}")));
    }
    Ok(bytes)
}

/// What happens to a call that proves no parent.
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
