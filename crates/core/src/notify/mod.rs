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
    AttemptAnswer, Bounds, FailClass, OriginStanding, RetryAfter, Schedule, ScheduleFault, SlotLimits, Span, SpanKind,
};
pub use config::{EngineConfig, NotifyConfig};
pub use courier::{Courier, DeliveryOutcome, Letter, Notary, Try, WebhookDelivery, WebhookPayload};
pub use engine::{Engine, EngineParts};
pub use first_attempts::{FirstAttempts, Reached};
pub use metrics::{Count, LabelledCounts, Metrics, TIME_BOUNDS_MS, Times};
pub use reseal::Resealing;
