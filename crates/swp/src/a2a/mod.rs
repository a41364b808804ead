//! The A2A profile: what agents say to each other about tasks, and the lifecycle it has to follow.

mod fingerprint;
mod lifecycle;
mod message;
mod result;

pub use lifecycle::{Lifecycle, MessageEffect, Party, Speakers, SwpTaskState};
pub use message::{A2aMessage, SwpEventMessage, SwpHandshake, SwpTaskMessage};
pub use result::{ResultCondition, TaskResult};
