//! A circuit breaker: a peer that fails is left alone, tried with one call, and taken back when that goes well.

use chancery_protocol::Timestamp;

use super::config::BreakerConfig;
use crate::routing::{CallOutcome, HealthWindow};

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Everything passes.
    Closed,
    /// Nothing passes before `until`; after that one probe does.
    Open {
        /// The time of the next attempt.
        until: Timestamp,
    },
    /// A probe is out and nothing else passes. Is nothing heard of it until `probe_until`, it has failed.
    HalfOpen {
        /// The time until which one call is tried.
        probe_until: Timestamp,
    },
}

/// Leave to make one call. Its result goes back to the breaker with it.
#[must_use = "a call whose result is not reported counts as a failed probe when its time is over"]
#[derive(Debug, PartialEq, Eq)]
pub struct BreakerTicket {
    era: u64,
}

/// The peer is not to be called now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When to ask again at the earliest, if no result comes in before.
    pub until: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Breaker {
    config: BreakerConfig,
    state: BreakerState,
    /// When `state` began.
    since: Timestamp,
    /// Counts the changes of state. Results of calls from an earlier era are history.
    era: u64,
    failures_in_a_row: u32,
    results: HealthWindow,
    /// Times it opened since a call last went well.
    openings: u32,
}

impl Breaker {
    pub fn new(config: BreakerConfig) -> Self {
        let results = HealthWindow::new(config.window());
        let since = Timestamp::default();
        Self { config, state: BreakerState::Closed, since, era: 0, failures_in_a_row: 0, results, openings: 0 }
    }

    pub fn state(&self) -> BreakerState {
        self.state
    }

    /// From when on a call would be let through; none if one would be at any time.
    pub fn admits_from(&self) -> Option<Timestamp> {
        match self.state {
            BreakerState::Closed => None,
            BreakerState::Open { until } => Some(until),
            BreakerState::HalfOpen { probe_until } => Some(probe_until + self.config.cooldown(self.openings)),
        }
    }

    /// Whether `admit` would let a call through. Changes nothing.
    pub fn would_admit(&self, now: Timestamp) -> bool {
        self.admits_from().is_none_or(|from| self.is_over(from, now))
    }

    pub fn admit(&mut self, now: Timestamp) -> Result<BreakerTicket, Refused> {
        self.give_up_on_a_lost_probe(now);
        match self.state {
            BreakerState::Closed => {}
            BreakerState::Open { until } if self.is_over(until, now) => {
                self.change_to(BreakerState::HalfOpen { probe_until: now + self.config.probe() }, now);
            }
            BreakerState::Open { until } => return Err(Refused { until }),
            BreakerState::HalfOpen { .. } => return Err(Refused { until: self.admits_from().unwrap_or(now) }),
        }
        Ok(BreakerTicket { era: self.era })
    }

    /// A probe has begun well, though it has not ended: that is enough to close the breaker. Gives the ticket its end is
    /// reported with. Any other call keeps its ticket, and is judged by its end.
    pub fn begun_well(&mut self, ticket: BreakerTicket, now: Timestamp) -> BreakerTicket {
        let is_the_probe = self.is_current(&ticket, now) && matches!(self.state, BreakerState::HalfOpen { .. });
        if !is_the_probe {
            return ticket;
        }
        self.report(ticket, CallOutcome::Succeeded, now);
        BreakerTicket { era: self.era }
    }

    /// How a call went.
    pub fn report(&mut self, ticket: BreakerTicket, outcome: CallOutcome, now: Timestamp) {
        if !self.is_current(&ticket, now) {
            return;
        }
        match (self.state, outcome) {
            (BreakerState::Closed, CallOutcome::Succeeded) => {
                self.failures_in_a_row = 0;
                self.openings = 0;
                self.results.add(true, now);
            }
            (BreakerState::Closed, CallOutcome::Failed) => self.fail(now),
            (BreakerState::HalfOpen { .. }, CallOutcome::Succeeded) => {
                self.openings = 0;
                self.close(now);
            }
            (BreakerState::HalfOpen { .. }, CallOutcome::Failed) => self.open(now),
            // The probe told nothing, so another may go at once.
            (BreakerState::HalfOpen { .. }, CallOutcome::Unjudged) => self.change_to(BreakerState::Open { until: now }, now),
            (BreakerState::Closed, CallOutcome::Unjudged) | (BreakerState::Open { .. }, _) => {}
        }
    }

    /// How a health check went. One that goes well closes the breaker, but it is no call: it neither makes up for failed
    /// calls nor shortens the next cooldown.
    pub fn report_check(&mut self, ticket: BreakerTicket, alive: bool, now: Timestamp) {
        if !self.is_current(&ticket, now) {
            return;
        }
        match (self.state, alive) {
            (BreakerState::Closed, true) | (BreakerState::Open { .. }, _) => {}
            (BreakerState::Closed, false) => self.fail(now),
            (BreakerState::HalfOpen { .. }, true) => self.close(now),
            (BreakerState::HalfOpen { .. }, false) => self.open(now),
        }
    }

    fn is_current(&mut self, ticket: &BreakerTicket, now: Timestamp) -> bool {
        self.give_up_on_a_lost_probe(now);
        ticket.era == self.era
    }

    fn fail(&mut self, now: Timestamp) {
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        self.results.add(false, now);
        if self.failures_in_a_row >= self.config.failures || self.config.is_too_much(self.results.results(now)) {
            self.open(now);
        }
    }

    fn open(&mut self, at: Timestamp) {
        let until = at + self.config.cooldown(self.openings);
        self.openings = self.openings.saturating_add(1);
        self.change_to(BreakerState::Open { until }, at);
    }

    fn close(&mut self, now: Timestamp) {
        self.failures_in_a_row = 0;
        self.results.clear();
        self.change_to(BreakerState::Closed, now);
    }

    fn change_to(&mut self, state: BreakerState, now: Timestamp) {
        self.state = state;
        self.since = now;
        self.era += 1;
    }

    /// The holder of the probe may be gone permanently; without this the peer would be, too.
    fn give_up_on_a_lost_probe(&mut self, now: Timestamp) {
        if let BreakerState::HalfOpen { probe_until } = self.state
            && self.is_over(probe_until, now)
        {
            self.open(probe_until.min(now));
        }
    }

    /// A clock that was put back must not make a short wait a long one.
    fn is_over(&self, end: Timestamp, now: Timestamp) -> bool {
        now >= end || now < self.since
    }
}
