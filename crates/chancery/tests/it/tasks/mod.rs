//! Tasks: what they do, and what survives crashes full or damaged disks, and a database that is away.

pub(crate) mod crash;
pub(crate) mod disk;
mod postgres;
pub(crate) mod scenarios;
