//! Which lane may send now: slots of the node, of its tenant and of its origin, the origin's breaker, and the host's ration.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Timestamp;

use super::bucket::TokenBucket;
use super::config::SlotLimits;
use super::origin::{FEW, WebhookOrigin, Width};
use super::outcome::{Judged, Pressure};
use super::turns::{Turns, WaitingLane};
use crate::health::{Breaker, BreakerConfig, BreakerState, BreakerTicket};
use crate::routing::CallOutcome;

/// An origin without a delivery for so long starts again.
const FORGET_AFTER: Duration = Duration::from_secs(30 * 60);

/// Plain data: the owner brings the lock.
#[derive(Debug)]
pub struct Dispatch {
    limits: SlotLimits,
    breaker: BreakerConfig,
    in_flight: u32,
    tenants: HashMap<Arc<str>, u32>,
    origins: HashMap<WebhookOrigin, Known>,
    hosts: HashMap<Arc<str>, TokenBucket>,
    turns: Turns,
}

#[derive(Debug)]
struct Known {
    breaker: Breaker,
    width: Width,
    in_flight: u32,
    last_used: Timestamp,
}

/// A slot, held. It must be handed back.
#[must_use = "a slot that is not handed back is lost"]
#[derive(Debug)]
pub struct DeliverySlot {
    pub lane: u64,
    origin: WebhookOrigin,
    host: Arc<str>,
    ticket: BreakerTicket,
}

impl DeliverySlot {
    pub fn origin(&self) -> &WebhookOrigin {
        &self.origin
    }
}

#[derive(Debug)]
pub enum DispatchStep {
    /// Send.
    Go(DeliverySlot),
    /// The origin is left alone until then; the lane is no longer waiting here, and has lost no attempt.
    Park { lane: u64, until: Timestamp },
    /// Nothing can go now: ask again when something was offered or handed back, or at that time.
    Wait { until: Option<Timestamp> },
}

/// How an attempt went, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptReport {
    pub health: CallOutcome,
    pub pressure: Pressure,
}

impl From<Judged> for AttemptReport {
    fn from(judged: Judged) -> Self {
        Self { health: judged.health, pressure: judged.pressure }
    }
}

impl AttemptReport {
    /// Nothing was sent after all.
    pub const NOTHING: Self = Self { health: CallOutcome::Unjudged, pressure: Pressure::Neither };
}

/// How an origin stands, for operators.
#[derive(Clone, Debug)]
pub struct OriginStanding {
    /// The origin of the receivers.
    pub origin: WebhookOrigin,
    /// The state of the circuit breaker.
    pub breaker: BreakerState,
    /// The number of open deliveries.
    pub in_flight: u32,
    /// The largest number of deliveries at once.
    pub width: u32,
    /// The number of webhooks that wait.
    pub waiting: usize,
}

impl Dispatch {
    pub fn new(limits: SlotLimits, breaker: BreakerConfig) -> Self {
        Self {
            limits,
            breaker,
            in_flight: 0,
            tenants: HashMap::new(),
            origins: HashMap::new(),
            hosts: HashMap::new(),
            turns: Turns::default(),
        }
    }

    /// A lane has something to send. `host` is what requests a second are counted by, for all tenants.
    pub fn offer(&mut self, lane: u64, origin: &WebhookOrigin, host: &Arc<str>) {
        self.turns.push(origin, WaitingLane { lane, host: host.clone() });
    }

    pub fn next(&mut self, now: Timestamp) -> DispatchStep {
        let mut earliest: Option<Timestamp> = None;
        let (mut passed, mut spent) = (0, false);
        while self.in_flight < self.limits.in_flight {
            if passed >= self.turns.ring() {
                if !spent {
                    break;
                }
                self.turns.begin_round();
                (passed, spent) = (0, false);
            }
            let Some((origin, waiting)) = self.turns.front() else { break };
            let known = known(&mut self.origins, origin, &self.limits, &self.breaker, now);
            if !known.breaker.would_admit(now) {
                let until = known.breaker.admits_from().unwrap_or(now);
                if let Some((_, parked)) = self.turns.drop_front() {
                    return DispatchStep::Park { lane: parked.lane, until };
                }
                break;
            }
            let held = self.tenants.get(&origin.tenant).copied().unwrap_or(0);
            // The second half of the slots is for those who hold few, so that some that hang leave room for the rest.
            let scarce = 2 * held >= self.limits.in_flight_per_tenant || 2 * self.in_flight >= self.limits.in_flight;
            let most = if scarce { known.width.calls().min(FEW) } else { known.width.calls() };
            if known.in_flight >= most {
                self.turns.stall();
                continue;
            }
            if held >= self.limits.in_flight_per_tenant {
                self.turns.rotate();
                passed += 1;
                continue;
            }
            // Asked before the token is taken, so that no token is lost to an origin that has to wait for its turn.
            let host = waiting.host.clone();
            if !self.turns.front_can_pay() {
                self.turns.rotate();
                (passed, spent) = (passed + 1, true);
                continue;
            }
            if let Err(until) = self.token(&host, now) {
                earliest = Some(earliest.map_or(until, |earliest| earliest.min(until)));
                self.turns.rotate();
                passed += 1;
                continue;
            }
            if let Some(grant) = self.grant(now) {
                return DispatchStep::Go(grant);
            }
            break;
        }
        DispatchStep::Wait { until: earliest }
    }

    /// One delivery has ended and the same lane has another: with the slot it has, if nothing speaks against it.
    pub fn carry_on(&mut self, grant: DeliverySlot, report: AttemptReport, now: Timestamp) -> Option<DeliverySlot> {
        let DeliverySlot { lane, origin, host, ticket } = grant;
        self.report(&origin, ticket, report, now);
        let may = self.origins.get(&origin).is_some_and(|known| known.in_flight <= known.width.calls());
        let admitted = may && self.token(&host, now).is_ok();
        let ticket = self.origins.get_mut(&origin).filter(|_| admitted).and_then(|known| known.breaker.admit(now).ok());
        let Some(ticket) = ticket else {
            self.free(&origin, now);
            return None;
        };
        self.turns.charge(&origin);
        Some(DeliverySlot { lane, origin, host, ticket })
    }

    pub fn finish(&mut self, grant: DeliverySlot, report: AttemptReport, now: Timestamp) {
        self.report(&grant.origin, grant.ticket, report, now);
        self.free(&grant.origin, now);
    }

    /// Slots without a holder and without a waiter.
    pub fn room(&self) -> usize {
        (self.limits.in_flight as usize).saturating_sub(self.in_flight as usize + self.turns.len())
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Origins of which no more lanes are wanted for now: left alone, or with as many waiting as they bear.
    pub fn closed(&self, now: Timestamp) -> Vec<WebhookOrigin> {
        let closed = |(origin, known): &(&WebhookOrigin, &Known)| {
            let held = known.in_flight as usize + self.turns.waiting(origin);
            !known.breaker.would_admit(now) || held >= 2 * known.width.calls() as usize
        };
        self.origins.iter().filter(closed).map(|(origin, _)| origin.clone()).collect()
    }

    /// When the first of the origins that are left alone may be tried again.
    pub fn reopens(&self, now: Timestamp) -> Option<Timestamp> {
        let left_alone = self.origins.values().filter(|known| !known.breaker.would_admit(now));
        left_alone.filter_map(|known| known.breaker.admits_from()).min()
    }

    /// Takes back all waiting deliveries, to give them to another owner.
    pub fn drain(&mut self) -> Vec<u64> {
        self.turns.drain()
    }

    /// Forgets origins and hosts nothing was sent to for long. Call it now and then.
    pub fn sweep(&mut self, now: Timestamp) {
        let idle = |known: &Known| {
            known.in_flight == 0 && known.breaker.state() == BreakerState::Closed && known.last_used + FORGET_AFTER <= now
        };
        let turns = &mut self.turns;
        self.origins.retain(|origin, known| {
            let keep = !idle(known) || turns.waiting(origin) > 0;
            if !keep {
                turns.forget(origin);
            }
            keep
        });
        self.hosts.retain(|_, bucket| !bucket.is_full(now));
    }

    pub fn standings(&self) -> Vec<OriginStanding> {
        let standing = |(origin, known): (&WebhookOrigin, &Known)| OriginStanding {
            origin: origin.clone(),
            breaker: known.breaker.state(),
            in_flight: known.in_flight,
            width: known.width.calls(),
            waiting: self.turns.waiting(origin),
        };
        self.origins.iter().map(standing).collect()
    }

    /// Takes one of the host's requests of this second, or says when there is one.
    pub fn token(&mut self, host: &Arc<str>, now: Timestamp) -> Result<(), Timestamp> {
        let rate = self.limits.host_requests_per_second;
        if rate == 0 {
            return Ok(());
        }
        self.hosts.entry(host.clone()).or_insert_with(|| TokenBucket::new(rate, now)).take(now)
    }

    fn grant(&mut self, now: Timestamp) -> Option<DeliverySlot> {
        let (origin, waiting) = self.turns.take()?;
        let known = self.origins.get_mut(&origin)?;
        let ticket = known.breaker.admit(now).ok()?;
        known.in_flight += 1;
        known.last_used = now;
        self.in_flight += 1;
        *self.tenants.entry(origin.tenant.clone()).or_default() += 1;
        Some(DeliverySlot { lane: waiting.lane, origin, host: waiting.host, ticket })
    }

    fn report(&mut self, origin: &WebhookOrigin, ticket: BreakerTicket, report: AttemptReport, now: Timestamp) {
        if let Some(known) = self.origins.get_mut(origin) {
            known.breaker.report(ticket, report.health, now);
            known.width.report(report.pressure, known.in_flight >= known.width.calls());
            known.last_used = now;
        }
    }

    fn free(&mut self, origin: &WebhookOrigin, now: Timestamp) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(held) = self.tenants.get_mut(&origin.tenant) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                self.tenants.remove(&origin.tenant);
            }
        }
        if let Some(known) = self.origins.get_mut(origin) {
            known.in_flight = known.in_flight.saturating_sub(1);
            known.last_used = now;
        }
        self.turns.wake(origin);
    }
}

/// A free function, so that the rest of the dispatch stays free to be used beside it.
fn known<'a>(
    origins: &'a mut HashMap<WebhookOrigin, Known>,
    origin: &WebhookOrigin,
    limits: &SlotLimits,
    breaker: &BreakerConfig,
    now: Timestamp,
) -> &'a mut Known {
    let anew = || {
        let width = Width::new(limits.in_flight_per_origin, limits.max_in_flight_per_origin);
        Known { breaker: Breaker::new(breaker.clone()), width, in_flight: 0, last_used: now }
    };
    origins.entry(origin.clone()).or_insert_with(anew)
}
