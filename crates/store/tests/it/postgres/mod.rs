//! What only the PostgreSQL store promises: the fence, lost answers, a database that is away, several nodes, and what is said at
//! the start.

mod cluster;
mod cut;
mod faults;
mod fence;
mod load;
mod outage;
pub(crate) mod proxy;
mod restart;
mod start;
mod tls;
