//! A control plane of one agent over a given store, and a call to it, with nothing set that a test does not set.

use std::sync::Arc;

use chancery_core::{Agent, Agents, Chancery, ChanceryParts, Dedupe, RetentionConfig, Rulebook, Store, TaskLimits, TaskRunner};
use chancery_protocol::{AgentCard, CallContext, Caller, Timestamp, TraceId};

use crate::{ManualClock, PlainSeal};

pub fn plane(store: Arc<dyn Store>, runner: impl TaskRunner, limits: TaskLimits) -> Chancery {
    let card = AgentCard { default_input_modes: vec!["*/*".into()], ..AgentCard::default() };
    Chancery::new(ChanceryParts {
        agents: Agents::new(Agent {
            name: "agent".into(),
            card: Arc::new(card),
            extended: None,
            runner: Arc::new(runner),
            exposed: true,
            enforces_input_modes: true,
        }),
        store,
        clock: Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000))),
        seal: Arc::new(PlainSeal),
        limits,
        retention: RetentionConfig::default(),
        dedupe: Dedupe::Off,
        rules: Rulebook::default(),
        hops: None,
        push: None,
    })
}

/// A 1.0 call over JSON-RPC.
pub fn call_context() -> CallContext {
    CallContext::new(Caller::new("tenant", "caller"), TraceId(1))
}
