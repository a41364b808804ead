//! Durable state: SQLite by default, PostgreSQL for a database on another host, memory for tests and throw-away runs.
//!
//! All are adapters of `chancery_core::Store` and keep one contract, which `tests/it/contract` runs on each of them.

// Files that unit tests share with the tests of the contract name this crate from outside.
#[cfg(all(test, feature = "postgres"))]
extern crate self as chancery_store;

mod lanes;
mod memory;
mod numbering;
mod past;
mod plain_ids;
#[cfg(feature = "postgres")]
mod postgres;
mod postgres_options;
mod rows;
mod sqlite;

pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use postgres_options::{PostgresOptions, SslMode};
pub use sqlite::{Examined, SqliteOptions, SqliteStore, Synchronous};
