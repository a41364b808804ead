//! Agents elsewhere, behind this node: called through the guarded way out and shown under our own addresses.

mod fleet;
mod front;
mod gather;
mod remote;
mod report;

pub(crate) use self::fleet::{Fleet, FleetError, Site};
pub(crate) use self::gather::gather;
pub(crate) use self::remote::{Remote, Workplace};
pub use self::report::show_added;
