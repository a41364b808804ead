//! The port of a store, with the types of its methods, and the stores that are built in.

pub use chancery_core::push::{self, Outbox};
pub use chancery_core::{
    Append, Appended, Block, BudgetScopes, CallAnswer, CardObserved, Chain, Checkpoint, Clock, Cluster, Creation, Decision,
    Delegated, Delivered, ExpiryPlan, Fact, ForwardedCall, ForwardedCallNumber, ForwardedCallState, Freeze, FreezeScope,
    Governed, Idempotency, KeptKeys, Keyed, LeaseNews, LeaseRenewal, LedgerRow, LedgerSnapshot, LineageRecord, Link, ListCursor,
    ListFilter, LogEntry, Names, NodeNumber, NonceVerdict, PastSpend, Progress, ReceivedCall, Record, RecordEnd, RecordLines,
    RecordNote, RecordedWrite, Rule, Scribe, Spend, SpentNonce, Store, StoreError, StoreTrouble, Stored, SweepPlan, SystemClock,
    TaskHolder, TaskListing, TaskRecord, TaskSnapshot, TreeCost, UnwrittenRecord, Verdict, Wakeup,
};
#[cfg(feature = "postgres")]
pub use chancery_store::PostgresStore;
pub use chancery_store::{Examined, MemoryStore, PostgresOptions, SqliteOptions, SqliteStore, SslMode, Synchronous};
