//! Agents elsewhere, behind this node: called through the guarded way out and shown under our own addresses.

mod front;
mod remote;

pub(crate) use self::remote::{Remote, keep_fresh};
