//! Durable state: SQLite by default, memory for tests and throw-away runs.
