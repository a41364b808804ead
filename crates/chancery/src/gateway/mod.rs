//! Agents elsewhere, behind this node: shown under our own addresses.

mod front;

pub(crate) use self::front::front;
