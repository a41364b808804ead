//! Tells webhooks what happens: takes what the log holds for each registration and sees to it that it arrives.

mod barrier;
mod config;
mod courier;
mod engine;
mod first_attempts;
mod log;
mod metrics;
mod operate;
mod replay;
mod reseal;
mod run;
mod settle;
mod sweep;
mod timeline;

pub use chancery_rules::push::{
    Answer, Bounds, FailClass, RetryAfter, Schedule, SlotLimits, Span, SpanKind, Standing as OriginStanding,
};
pub use config::{EngineConfig, NotifyConfig};
pub use courier::{Courier, Delivery, Letter, Notary, Outcome, Payload, Try};
pub use engine::{Engine, EngineParts};
pub use first_attempts::{FirstAttempts, Reached};
pub use metrics::{Count, Counts, Metrics, TIME_BOUNDS_MS, Times};
pub use reseal::Resealing;
