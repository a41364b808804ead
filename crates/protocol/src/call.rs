//! What is known about a call beside what it asks: who, how, under which conditions.

use std::sync::Arc;

use crate::{Binding, Version};

/// The name an agent is mounted under.
pub type AgentName = Arc<str>;

/// Who is calling. Everything a caller makes belongs to (tenant, name).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    pub tenant: Arc<str>,
    pub name: Arc<str>,
}

impl Caller {
    pub fn new(tenant: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { tenant: tenant.into(), name: name.into() }
    }
}

#[derive(Clone, Debug)]
pub struct CallContext {
    pub version: Version,
    pub binding: Binding,
    pub caller: Caller,
    /// The agent that is called; `None` for the node's own or only one.
    pub agent: Option<AgentName>,
    /// Protocol extensions the caller asked for.
    pub extensions: Vec<String>,
    /// Same caller, same key: same task.
    pub idempotency_key: Option<Arc<str>>,
    /// The last event the caller has seen of the task it subscribes to.
    pub last_event_id: Option<u64>,
    /// W3C trace id of the call, or one made here.
    pub trace_id: Arc<str>,
}
