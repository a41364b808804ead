//! The control plane: one service, its steps and its ports.

mod admit;
mod agents;
mod alarm;
mod artifacts;
mod cancel;
mod carry_on;
mod check;
mod clock;
mod contexts;
mod decide;
mod delegate;
mod dispatch;
mod evidence;
mod execute;
mod find;
mod freeze;
mod get;
mod govern;
mod governed;
mod grant;
mod ids;
mod late_reply;
mod limits;
mod list;
mod live;
pub mod notify;
mod open_tasks;
mod operate;
mod permit;
mod ports;
mod publish;
pub mod push;
mod recall;
mod record;
mod recover;
mod restore;
mod retention;
mod retry;
mod route;
mod runner;
mod send;
mod service;
mod sink;
mod streams;
mod subscribe;
mod take;
mod trace;
mod tree;
mod whole;

pub use agents::{Agent, Agents};
pub use alarm::{Alarm, Unless};
pub use artifacts::{ArtifactDesk, PutAway, REFERENCES_EXTENSION};
pub use chancery_rules::{MicroUsd, budget, health, lineage, policy, recursion, routing, task_state};
pub use clock::SystemClock;
pub use delegate::Delegation;
pub use evidence::{
    Block, CardObserved, Chain, Checkpoint, Delivered, Happening, Lines, Note, Record, RecordEnd, Scribe, Unwritten,
};
pub use govern::{GOVERNANCE_EXTENSION, Rulebook, SubtreeCost};
pub use governed::{
    Decision, Fact, Freeze, FreezeScope, Governed, Kinship, Ledger, LedgerRow, PastSpend, Rule, Scopes, Spend, Verdict,
};
pub use late_reply::LateReply;
pub use limits::TaskLimits;
pub use ports::{
    Append, Appended, Clock, Creation, Hop, HopTokens, Idempotency, Keyed, Link, ListCursor, ListFilter, Listed, LogEntry, Names,
    Progress, Seal, Store, StoreError, Stored, SweepPlan, TaskRecord,
};
pub use publish::{Next, Subscription};
pub use recall::{Collection, MEMORY_EXTENSION, Nearest, Recall, SharedMemory, Wanted, Written};
pub use recover::Recovered;
pub use retention::RetentionConfig;
pub use runner::{AfterRestart, Asked, ReplyMode, RunError, TaskRunner, Turn};
pub use service::{Answer, Chancery, Dedupe, Parts};
pub use sink::{Closed, Finished, Passed, TaskUpdateSink, Waiting};
pub use tree::{CascadeOutcome, Cascaded, Tree, TreeTask};
