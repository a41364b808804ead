//! Outliers: a peer that does far worse than its siblings is left out for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use chancery_protocol::Timestamp;

use super::config::OutlierConfig;
use crate::routing::{PeerId, PeerSnapshot, Share};

/// What a peer was left out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EjectionReason {
    Latency { took: Duration, siblings: Duration },
    Failures { failed: Share, siblings: Share },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ejection {
    pub peer: PeerId,
    pub reason: EjectionReason,
    pub until: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Out {
    since: Timestamp,
    until: Timestamp,
    times: u32,
}

/// Who of a pool of replicas is out. Only replicas of one agent can be compared like this: two different agents differ by nature.
#[derive(Clone, Debug)]
pub struct Ejections {
    config: OutlierConfig,
    out: BTreeMap<PeerId, Out>,
}

impl Ejections {
    pub fn new(config: OutlierConfig) -> Self {
        Self { config, out: BTreeMap::new() }
    }

    /// When a peer comes back; none if it is not out.
    pub fn out_until(&self, peer: &PeerId, now: Timestamp) -> Option<Timestamp> {
        self.out.get(peer).filter(|out| out.lasts(now)).map(|out| out.until)
    }

    /// Removes ejected peers from a pool, but never more than may be out: the peer that is due back first
    /// stays. `pool` holds the peers that can be called otherwise, so that one is left whenever it has any.
    pub fn leave_out(&self, pool: &mut Vec<PeerSnapshot>, now: Timestamp) {
        let most = self.config.most(pool.len());
        let mut out: Vec<_> = pool.iter().filter_map(|peer| Some((self.out_until(&peer.id, now)?, peer.id.clone()))).collect();
        out.sort_by(|one, other| other.cmp(one));
        out.truncate(most);
        pool.retain(|peer| !out.iter().any(|(_, id)| *id == peer.id));
    }

    /// Looks for outliers and puts them out, the worst first. Forget what was measured of those: they come back as if new,
    /// or the old numbers would put them out again.
    pub fn eject(&mut self, pool: &[PeerSnapshot], now: Timestamp) -> Vec<Ejection> {
        self.out.retain(|_, out| out.is_remembered(&self.config, now));
        let (gone, present): (Vec<_>, Vec<_>) = pool.iter().partition(|peer| self.out_until(&peer.id, now).is_some());
        let free = self.config.most(pool.len()).saturating_sub(gone.len());
        let mut found: Vec<_> = present.iter().filter_map(|peer| Some((self.fault(peer, &present)?, *peer))).collect();
        found.sort_by_key(|(reason, peer)| (std::cmp::Reverse(badness(*reason)), peer.id.clone()));
        found.into_iter().take(free).map(|(reason, peer)| self.put_out(peer.id.clone(), reason, now)).collect()
    }

    fn put_out(&mut self, peer: PeerId, reason: EjectionReason, now: Timestamp) -> Ejection {
        let times = self.out.get(&peer).map_or(0, |before| before.times.saturating_add(1));
        let until = now + self.config.ejection(times);
        self.out.insert(peer.clone(), Out { since: now, until, times });
        Ejection { peer, reason, until }
    }

    fn fault(&self, peer: &PeerSnapshot, present: &[&PeerSnapshot]) -> Option<EjectionReason> {
        let is_judged = |peer: &PeerSnapshot| peer.recent_results >= self.config.eject_results;
        let siblings: Vec<_> = present.iter().filter(|sibling| sibling.id != peer.id && is_judged(sibling)).collect();
        if !is_judged(peer) {
            return None;
        }
        let usual = median(siblings.iter().map(|sibling| sibling.failure_rate))?;
        // A setting of 0 can only come from code; it must not put out who is no worse at all.
        let points = Share::percent(self.config.eject_failure_points.max(1));
        if peer.failure_rate.above(usual) >= points {
            return Some(EjectionReason::Failures { failed: peer.failure_rate, siblings: usual });
        }
        let usual = median(siblings.iter().filter_map(|sibling| sibling.ewma_latency))?;
        let took = peer.ewma_latency?;
        let too_slow = took > Duration::from_millis(self.config.eject_latency_above_ms)
            && took >= usual.saturating_mul(self.config.eject_latency_multiple);
        (too_slow && took > usual).then_some(EjectionReason::Latency { took, siblings: usual })
    }
}

impl Out {
    /// A clock that was put back ends it.
    fn lasts(&self, now: Timestamp) -> bool {
        (self.since..self.until).contains(&now)
    }

    fn is_remembered(&self, config: &OutlierConfig, now: Timestamp) -> bool {
        now >= self.since && now < self.until + config.remembered()
    }
}

/// Failing is worse than being slow, and within each the distance counts.
fn badness(reason: EjectionReason) -> (bool, Share, Duration) {
    match reason {
        EjectionReason::Failures { failed, .. } => (true, failed, Duration::ZERO),
        EjectionReason::Latency { took, .. } => (false, Share::NONE, took),
    }
}

/// Of an even number the smaller of the two in the middle.
fn median<N: Ord>(numbers: impl Iterator<Item = N>) -> Option<N> {
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort();
    let middle = numbers.len().checked_sub(1)? / 2;
    numbers.into_iter().nth(middle)
}
