//! When a webhook is called, what its answer means, and how far a registration has got.
//!
//! A registration is a *lane*: a cursor over the log of its task ([`Cursor`]). A worker claims it, sends the entry at its head, judges
//! the answer ([`judge`]), and settles the step that follows from it ([`after`]). Which lane goes next, and which has to wait because
//! its origin is slow, failing or rationed, is decided by [`Dispatch`].

mod after;
mod bucket;
mod clock_set;
mod compact;
mod config;
mod dispatch;
mod lane;
mod origin;
mod outcome;
mod schedule;
mod span;
mod turns;

pub use self::after::{MOST_FAILING, MOST_REFUSALS, RetryPatience, TriedAttempt, after, park};
pub use self::bucket::TokenBucket;
pub use self::clock_set::ClockSet;
pub use self::compact::{Bounds, Pending, merge, next_span};
pub use self::config::{SlotLimits, push_breaker};
pub use self::dispatch::{AttemptReport, DeliverySlot, Dispatch, DispatchStep, OriginStanding};
pub use self::lane::{Cursor, DeadSpan, FREE, Fenced, LaneAction, LaneChange, LaneClaim, LaneState};
pub use self::origin::{WebhookOrigin, Width};
pub use self::outcome::{
    AttemptAnswer, DeadReason, DeliveryVerdict, DisableReason, FailClass, Judged, Latitude, Pressure, judge,
};
pub use self::schedule::{MOST_RETRY_AFTER, RetryAfter, Schedule, ScheduleFault};
pub use self::span::{Span, SpanKind};
