//! Agents elsewhere, behind this node: called through the guarded way out and shown under our own addresses.

mod fleet;
mod front;
mod gather;
mod in_code;
mod looks;
mod naming;
mod observed;
mod remote;
mod report;

pub(crate) use self::fleet::{Fleet, FleetError, Site};
pub(crate) use self::gather::gather;
pub(crate) use self::in_code::InCode;
pub use self::naming::agent_slug;
pub(crate) use self::remote::{Remote, Shown, Workplace};
pub use self::report::show_added;
