//! Which peers can be called at all: circuit breakers, outliers, and when to ask a peer how it is.

mod breaker;
mod check;
mod config;
mod outlier;
mod pool;

pub use self::breaker::{Breaker, BreakerState, BreakerTicket, Refused};
pub use self::check::{CheckFacts, next_check};
pub use self::config::{BreakerConfig, CheckConfig, HealthConfig, OutlierConfig};
pub use self::outlier::{Ejection, EjectionReason, Ejections};
pub use self::pool::{OpenCall, PeerPool, PeerStanding};
