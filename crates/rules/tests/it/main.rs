//! Every rule from outside the crate, a file per rule.

mod common;

mod budget_actual;
mod budget_hints;
mod budget_ledger;
mod budget_lending;
mod budget_properties;
mod budget_queue;
mod budget_threads;
mod circuit_breaker;
mod outliers;
mod peer_pool;
mod peer_record;
mod policy_guard;
mod push_compact;
mod push_dispatch;
mod push_lane;
mod recursion_guard;
mod routing;
mod task_state;
mod trace_lineage;
