//! Durable state: SQLite by default, memory for tests and throw-away runs.
//!
//! Both are adapters of `chancery_core::Store` and keep one contract, which `tests/it/contract` runs on each of them.

mod lanes;
mod memory;
mod numbering;
mod past;
mod plain_ids;
mod rows;
mod sqlite;

pub use memory::MemoryStore;
pub use sqlite::{Examined, SqliteOptions, SqliteStore, Synchronous};
