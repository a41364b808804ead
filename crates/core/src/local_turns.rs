//! Measures the turns of agents in this process, so that selectors can compare them with remote agents.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chancery_protocol::{AgentName, Timestamp};
use chancery_rules::health::BreakerConfig;
use chancery_rules::routing::{CallOutcome, PeerId, PeerRecord, PeerSnapshot};

use crate::Clock;
use crate::agents::Agent;

#[derive(Debug, Default)]
pub(crate) struct LocalTurns(Mutex<BTreeMap<AgentName, PeerRecord>>);

/// A turn that is measured. Dropped without an outcome it says nothing about its agent.
#[derive(Debug)]
pub(crate) struct MeasuredTurn {
    turns: Arc<LocalTurns>,
    clock: Arc<dyn Clock>,
    agent: AgentName,
    since: Timestamp,
    outcome: CallOutcome,
}

impl LocalTurns {
    pub(crate) fn begin(self: &Arc<Self>, agent: &Agent, clock: &Arc<dyn Clock>, forget_after: Duration) -> MeasuredTurn {
        let now = clock.now();
        let new = || PeerRecord::new(BreakerConfig::default().window(), forget_after);
        self.lock().entry(agent.name.clone()).or_insert_with(new).started(now);
        let (turns, clock, agent) = (Arc::clone(self), Arc::clone(clock), agent.name.clone());
        MeasuredTurn { turns, clock, agent, since: now, outcome: CallOutcome::Unjudged }
    }

    /// The agent as selectors see it.
    pub(crate) fn snapshot(&self, agent: &Agent, now: Timestamp) -> PeerSnapshot {
        let id = PeerId::new(Arc::clone(&agent.name));
        match self.lock().get(&agent.name) {
            Some(record) => record.snapshot(&id, &agent.card, now),
            None => PeerSnapshot::cold(id, Arc::clone(&agent.card)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentName, PeerRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MeasuredTurn {
    pub(crate) fn end(mut self, outcome: CallOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for MeasuredTurn {
    fn drop(&mut self) {
        let now = self.clock.now();
        let latency = Duration::from_micros(u64::try_from(now.micros().saturating_sub(self.since.micros())).unwrap_or(0));
        if let Some(record) = self.turns.lock().get_mut(&self.agent) {
            record.finished(self.outcome, latency, None, now);
        }
    }
}
