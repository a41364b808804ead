//! The control plane: one service, its steps and its ports.

mod ports;

pub use ports::{
    Append, Appended, Clock, Creation, Idempotency, ListCursor, ListFilter, Listed, LogEntry, Names, Progress, Seal, Store,
    StoreError, Stored, SweepPlan, TaskRecord,
};
