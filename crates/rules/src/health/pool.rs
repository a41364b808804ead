//! A pool: the replicas of one agent, what is known of each, and which of them can be called now.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{AgentCard, Timestamp};

use super::breaker::{Breaker, BreakerState, BreakerTicket, Refused};
use super::check::{CheckFacts, next_check};
use super::config::HealthConfig;
use super::outlier::{Ejection, Ejections};
use crate::MicroUsd;
use crate::routing::{CallOutcome, PeerId, PeerRecord, PeerSnapshot, TaskSpec, number_of};

/// Plain data: the owner brings the lock.
#[derive(Clone, Debug)]
pub struct PeerPool {
    config: HealthConfig,
    forget_after: Duration,
    /// In the order they were added.
    peers: Vec<Member>,
    ejections: Ejections,
    /// Tells a peer from an earlier one of the same name.
    added: u64,
}

#[derive(Clone, Debug)]
struct Member {
    id: PeerId,
    number: u64,
    card: Arc<AgentCard>,
    record: PeerRecord,
    breaker: Breaker,
    first_seen: Timestamp,
    last_heard: Option<Timestamp>,
}

/// A call, or a check, that is under way. It must be handed back.
#[must_use = "a call that was begun must be finished, or the pool counts it as open without end"]
#[derive(Debug)]
pub struct OpenCall {
    peer: PeerId,
    number: u64,
    ticket: BreakerTicket,
}

impl OpenCall {
    pub fn peer(&self) -> &PeerId {
        &self.peer
    }
}

/// How a peer stands, for operators.
#[derive(Clone, Debug)]
pub struct PeerStanding {
    pub snapshot: PeerSnapshot,
    pub breaker: BreakerState,
    /// Set while it is out for being far worse than the others.
    pub ejected_until: Option<Timestamp>,
    pub last_heard: Option<Timestamp>,
    pub next_check: Option<Timestamp>,
}

impl PeerPool {
    pub fn new(config: HealthConfig, forget_after: Duration) -> Self {
        let ejections = Ejections::new(config.outliers.clone());
        Self { config, forget_after, peers: Vec::new(), ejections, added: 0 }
    }

    /// Adds a peer, or gives one that is there its new card.
    pub fn add(&mut self, id: PeerId, card: Arc<AgentCard>, now: Timestamp) {
        if let Some(member) = self.peers.iter_mut().find(|member| member.id == id) {
            member.card = card;
            return;
        }
        self.added += 1;
        let record = PeerRecord::new(self.config.breaker.window(), self.forget_after);
        let breaker = Breaker::new(self.config.breaker.clone());
        self.peers.push(Member { id, number: self.added, card, record, breaker, first_seen: now, last_heard: None });
    }

    /// What is still under way to it is finished without effect.
    pub fn remove(&mut self, id: &PeerId) {
        self.peers.retain(|member| member.id != *id);
    }

    /// Whom a selector may choose from: peers whose cards offer what the task needs, whose breakers let a call through, and
    /// that are not out as outliers.
    pub fn candidates(&self, task: &TaskSpec<'_>, now: Timestamp) -> Vec<PeerSnapshot> {
        let offering = self.callable(now).filter(|member| task.is_offered_by(&member.card));
        let mut pool = offering.map(|member| member.snapshot(now)).collect();
        self.ejections.leave_out(&mut pool, now);
        pool
    }

    /// Begins a call. Refused when the peer is gone, or its breaker has let another call go first: choose
    /// again without it.
    pub fn start(&mut self, id: &PeerId, now: Timestamp) -> Result<OpenCall, Refused> {
        let member = self.peers.iter_mut().find(|member| member.id == *id).ok_or(Refused { until: now })?;
        let ticket = member.breaker.admit(now)?;
        member.record.started(now);
        Ok(OpenCall { peer: id.clone(), number: member.number, ticket })
    }

    /// The peer has begun to answer. Worth telling of every call that goes on for long: a probe's good news need not wait
    /// for its end.
    pub fn answered(&mut self, call: OpenCall, now: Timestamp) -> OpenCall {
        match member(&mut self.peers, &call) {
            None => call,
            Some(member) => {
                member.last_heard = Some(now);
                OpenCall { ticket: member.breaker.begun_well(call.ticket, now), ..call }
            }
        }
    }

    /// Ends a call, and says who is put out as an outlier because of what is known now. What `latency` measures is the
    /// caller's choice, as long as it is the same for every call.
    pub fn finish(
        &mut self,
        call: OpenCall,
        outcome: CallOutcome,
        latency: Duration,
        cost: Option<MicroUsd>,
        now: Timestamp,
    ) -> Vec<Ejection> {
        let Some(member) = member(&mut self.peers, &call) else { return Vec::new() };
        member.record.finished(outcome, latency, cost, now);
        if outcome != CallOutcome::Unjudged {
            member.last_heard = Some(now);
        }
        member.breaker.report(call.ticket, outcome, now);
        let pool: Vec<_> = self.callable(now).map(|member| member.snapshot(now)).collect();
        let ejected = self.ejections.eject(&pool, now);
        for ejection in &ejected {
            self.peers.iter_mut().filter(|member| member.id == ejection.peer).for_each(|member| member.record.forget());
        }
        ejected
    }

    /// Begins every check that is due. Each must be handed back with what came of it.
    pub fn start_checks(&mut self, now: Timestamp) -> Vec<OpenCall> {
        let config = &self.config.checks;
        let mut begun = Vec::new();
        for member in &mut self.peers {
            if member.next_check(config).is_none_or(|due| due > now) {
                continue;
            }
            if let Ok(ticket) = member.breaker.admit(now) {
                // Counted from the asking on, so that a slow answer is not asked for again.
                member.last_heard = Some(now);
                begun.push(OpenCall { peer: member.id.clone(), number: member.number, ticket });
            }
        }
        begun
    }

    pub fn finish_check(&mut self, check: OpenCall, alive: bool, now: Timestamp) {
        if let Some(member) = member(&mut self.peers, &check) {
            member.last_heard = Some(now);
            member.breaker.report_check(check.ticket, alive, now);
        }
    }

    /// When `start_checks` has something to do next.
    pub fn next_check(&self) -> Option<Timestamp> {
        self.peers.iter().filter_map(|member| member.next_check(&self.config.checks)).min()
    }

    pub fn standings(&self, now: Timestamp) -> Vec<PeerStanding> {
        let standing = |member: &Member| PeerStanding {
            snapshot: member.snapshot(now),
            breaker: member.breaker.state(),
            ejected_until: self.ejections.out_until(&member.id, now),
            last_heard: member.last_heard,
            next_check: member.next_check(&self.config.checks),
        };
        self.peers.iter().map(standing).collect()
    }

    fn callable(&self, now: Timestamp) -> impl Iterator<Item = &Member> {
        self.peers.iter().filter(move |member| member.breaker.would_admit(now))
    }
}

/// A free function, so that the rest of the pool stays free to be used beside it.
fn member<'a>(peers: &'a mut [Member], call: &OpenCall) -> Option<&'a mut Member> {
    peers.iter_mut().find(|member| member.number == call.number)
}

impl Member {
    fn snapshot(&self, now: Timestamp) -> PeerSnapshot {
        self.record.snapshot(&self.id, &self.card, now)
    }

    fn next_check(&self, config: &super::CheckConfig) -> Option<Timestamp> {
        let facts = CheckFacts {
            first_seen: self.first_seen,
            last_heard: self.last_heard,
            blocked_until: self.breaker.admits_from(),
            spread: number_of(self.id.as_str(), 0),
        };
        next_check(config, &facts)
    }
}
