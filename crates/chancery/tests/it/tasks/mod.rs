//! Tasks: what they do, and what survives crashes and full or damaged disks.

pub(crate) mod crash;
pub(crate) mod disk;
pub(crate) mod scenarios;
