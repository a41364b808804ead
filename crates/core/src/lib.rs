//! The control plane: one service, its steps and its ports.

mod agents;
mod cancel;
mod carry_on;
mod check;
mod clock;
mod contexts;
mod execute;
mod find;
mod get;
mod governed;
mod grant;
mod ids;
mod limits;
mod list;
mod live;
mod open_tasks;
mod operate;
mod ports;
mod publish;
mod record;
mod recover;
mod retention;
mod route;
mod runner;
mod send;
mod service;
mod sink;
mod streams;
mod subscribe;

pub use agents::{Agent, Agents};
pub use chancery_rules::{MicroUsd, budget, health, lineage, policy, recursion, routing, task_state};
pub use clock::SystemClock;
pub use governed::{
    ActualSource, Decision, EstimateSource, Fact, Freeze, FreezeScope, Governed, Ledger, LedgerRow, PastSpend, Rule, Spend,
    Standing, Verdict,
};
pub use limits::TaskLimits;
pub use ports::{
    Append, Appended, Clock, Creation, Idempotency, Link, ListCursor, ListFilter, Listed, LogEntry, Names, Progress, Seal, Store,
    StoreError, Stored, SweepPlan, TaskRecord,
};
pub use publish::{Next, Subscription};
pub use recover::Recovered;
pub use retention::RetentionConfig;
pub use runner::{AfterRestart, RunError, TaskRunner, Turn};
pub use service::{Answer, Chancery, Dedupe, Parts};
pub use sink::{Closed, Finished, Passed, TaskUpdateSink, Waiting};
