//! The control plane: one service, its steps and its ports.

mod addresses;
mod admit;
mod agent_identities;
mod agents;
mod alarm;
mod answering;
mod artifacts;
mod bill;
mod byte_ledger;
mod cancel;
mod carry_on;
mod check;
mod clock;
mod cluster;
mod contexts;
mod decide;
mod delegate;
mod dispatch;
mod evidence;
mod execute;
mod find;
mod follow_up;
mod freeze;
mod get;
mod govern;
mod governed;
mod governed_call;
mod grant;
mod ids;
mod key_quota;
mod late_reply;
mod limits;
mod list;
mod listing;
mod live;
mod local_turns;
mod memory_looks;
pub mod notify;
mod open_tasks;
mod operate;
mod outage;
mod permit;
mod ports;
mod publish;
pub mod push;
mod recall;
mod record;
mod recording;
mod recover;
mod references;
mod restore;
mod restored_parts;
mod retention;
mod retire;
mod retry;
mod route;
mod runner;
mod send;
mod service;
mod shutdown;
mod sink;
mod skill_route;
mod snapshots;
mod store_error;
mod streams;
mod subscribe;
mod sweep_plan;
mod take;
mod token_task;
mod trace;
mod tracker;
mod tree;

pub use addresses::AddressRotation;
pub use agent_identities::AgentIdentities;
pub use agents::{Agent, Agents};
pub use alarm::{Alarm, Unless};
pub use answering::{AnswerPermit, COUNTED_FROM};
pub use artifacts::{OffloadedPart, PartStore, REFERENCES_EXTENSION};
pub use bill::{Bill, BillBy, BillLine};
pub use byte_ledger::{ByteLedger, ByteLimits, BytePermit};
pub use chancery_rules::{MicroUsd, budget, health, lineage, policy, recursion, routing, task_state};
pub use clock::SystemClock;
pub use cluster::{
    CallAnswer, Cluster, ForwardedCall, ForwardedCallNumber, ForwardedCallState, LeaseNews, LeaseRenewal, NodeNumber,
    ReceivedCall, TaskHolder, Wakeup,
};
pub use delegate::Delegation;
pub use evidence::{
    Block, CardObserved, Chain, Checkpoint, Delegated, Delivered, Record, RecordEnd, RecordLines, RecordNote, RecordedWrite,
    Scribe, UnwrittenRecord,
};
pub use govern::{
    GOVERNANCE_EXTENSION, LineageHeaders, PlacedCalls, Rulebook, SentLineage, SubtreeCost, node_tag, token_header_bytes,
};
pub use governed::{
    BudgetScopes, Decision, Fact, Freeze, FreezeScope, Governed, LedgerRow, LedgerSnapshot, LineageRecord, PastSpend, Rule,
    Spend, TreeCost, Verdict,
};
pub use ids::{new_trace_id, random_seed};
pub use key_quota::{EXPIRY_STEP, Idempotency, KeptKeys, Keyed};
pub use late_reply::LateReply;
pub use limits::TaskLimits;
pub use list::{PageEnd, PageReader};
pub use listing::{ListCursor, ListFilter, TaskListing};
pub use ports::{
    Append, Appended, Clock, Creation, ForeignToken, Hop, HopTokenService, Link, LogEntry, Names, NonceVerdict, Progress, Seal,
    SpentNonce, Store, Stored, TaskRecord, fitting,
};
pub use publish::{NextEvents, Subscription};
pub use recall::{Collection, MEMORY_EXTENSION, MemoryRecall, Nearest, RecallRequest, SharedMemory, WrittenGeneration};
pub use recover::Recovered;
pub use retention::RetentionConfig;
pub use runner::{AfterRestart, ReplyMode, RunError, SelectorQuery, TaskRunner, Turn};
pub use service::{Answer, Chancery, ChanceryParts, Dedupe};
pub use sink::{Finished, Passed, SinkClosed, TaskUpdateSink, WaitingTask};
pub use skill_route::SkillRouting;
pub use snapshots::TaskSnapshot;
pub use store_error::{StoreError, StoreTrouble};
pub use sweep_plan::{ExpiryPlan, SweepPlan};
pub use token_task::TokenTask;
pub use tracker::{LoopNeed, LoopTracker, spawn_watched, watched};
pub use tree::{CallTree, CascadeOutcome, Cascaded, TreePage, TreeTask};
