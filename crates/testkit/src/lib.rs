//! Fakes for every port, a clock tests can move, scripted agents. For tests only.

mod clock;
mod plane;
mod seal;
mod store;

pub use clock::ManualClock;
pub use plane::{call_context, plane};
pub use seal::PlainSeal;
pub use store::{FaultPlan, HookedStore};
