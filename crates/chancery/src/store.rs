//! The port of a store, with the types of its methods, and the stores that are built in.

pub use chancery_core::push::{self, Outbox};
pub use chancery_core::{
    Append, Appended, Block, BudgetScopes, CardObserved, Chain, Checkpoint, Clock, Creation, Decision, Delegated, Delivered,
    ExpiryPlan, Fact, Freeze, FreezeScope, Governed, Idempotency, KeptKeys, Keyed, LedgerRow, LedgerSnapshot, LineageRecord,
    Link, ListCursor, ListFilter, LogEntry, Names, NonceVerdict, PastSpend, Progress, Record, RecordEnd, RecordLines, RecordNote,
    RecordedWrite, Rule, Scribe, Spend, SpentNonce, Store, StoreError, StoreTrouble, Stored, SweepPlan, SystemClock, TaskListing,
    TaskRecord, TaskSnapshot, TreeCost, UnwrittenRecord, Verdict,
};
#[cfg(feature = "postgres")]
pub use chancery_store::PostgresStore;
pub use chancery_store::{Examined, MemoryStore, PostgresOptions, SqliteOptions, SqliteStore, SslMode, Synchronous};
