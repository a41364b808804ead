//! Fakes for every port, a clock tests can move, scripted agents, and a real PostgreSQL server. For tests only.

mod clock;
mod plane;
mod postgres;
mod seal;
mod store;

pub use clock::ManualClock;
pub use plane::{call_context, plane};
pub use postgres::{PostgresServer, postgres_url};
pub use seal::PlainSeal;
pub use store::{FaultPlan, HookedStore, StoreOutage};
