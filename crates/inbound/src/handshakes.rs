//! TLS handshakes that are under way, bounded apart from connections: when there are too many, the slowest makes room.
//!
//! A client that floods an address with unfinished handshakes takes no slot from callers that finish theirs,
//! even at the same address.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::limits::InboundLimits;

#[derive(Debug, Default)]
pub(crate) struct Handshakes(Mutex<Underway>);

#[derive(Debug, Default)]
struct Underway {
    begun: u64,
    total: usize,
    /// Oldest first. No list is empty.
    by_address: HashMap<IpAddr, VecDeque<Unfinished>>,
}

#[derive(Debug)]
struct Unfinished {
    number: u64,
    /// The peer has sent its whole first message.
    has_spoken: Arc<AtomicBool>,
    evicted: CancellationToken,
}

/// One handshake that is under way. Dropping it gives its place back.
#[derive(Debug)]
pub(crate) struct HandshakePermit {
    all: Arc<Handshakes>,
    address: IpAddr,
    number: u64,
    has_spoken: Arc<AtomicBool>,
    evicted: CancellationToken,
}

impl Handshakes {
    /// Begins a handshake. Where its address or the node has as many as it may, another one is evicted: of this address, or else of
    /// the address that has most.
    pub(crate) fn begin(self: &Arc<Self>, address: IpAddr, limits: &InboundLimits) -> HandshakePermit {
        let mut underway = self.lock();
        let of_address = underway.by_address.get(&address).map_or(0, VecDeque::len);
        if of_address >= limits.tls_handshakes_per_address.max(1) && !limits.trusted_proxies.contain(address) {
            underway.evict(address);
        } else if underway.total >= limits.tls_handshakes.max(1)
            && let Some(crowded) = underway.by_address.iter().max_by_key(|(_, list)| list.len()).map(|(address, _)| *address)
        {
            underway.evict(crowded);
        }
        let number = underway.begun;
        underway.begun += 1;
        underway.total += 1;
        let (has_spoken, evicted) = (Arc::<AtomicBool>::default(), CancellationToken::new());
        let unfinished = Unfinished { number, has_spoken: Arc::clone(&has_spoken), evicted: evicted.clone() };
        underway.by_address.entry(address).or_default().push_back(unfinished);
        HandshakePermit { all: Arc::clone(self), address, number, has_spoken, evicted }
    }

    fn lock(&self) -> MutexGuard<'_, Underway> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Underway {
    /// Evicts the oldest handshake of an address whose peer has not spoken, or the oldest of all. So idle
    /// sockets never evict active peers.
    fn evict(&mut self, address: IpAddr) {
        let Some(list) = self.by_address.get(&address) else { return };
        let silent = list.iter().position(|one| !one.has_spoken.load(Ordering::Relaxed)).unwrap_or(0);
        if let Some(evicted) = self.take(address, silent) {
            evicted.evicted.cancel();
        }
    }

    fn take(&mut self, address: IpAddr, place: usize) -> Option<Unfinished> {
        let list = self.by_address.get_mut(&address)?;
        let taken = list.remove(place)?;
        self.total -= 1;
        if list.is_empty() {
            self.by_address.remove(&address);
        }
        Some(taken)
    }
}

impl HandshakePermit {
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Notes that the peer has sent its first message.
    pub(crate) fn spoke(&self) {
        self.has_spoken.store(true, Ordering::Relaxed);
    }

    /// Ends when another handshake has taken the place of this one.
    pub(crate) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        let mut underway = self.all.lock();
        let place = underway.by_address.get(&self.address).and_then(|list| list.iter().position(|one| one.number == self.number));
        if let Some(place) = place {
            underway.take(self.address, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(handshake: &HandshakePermit) -> bool {
        handshake.evicted.is_cancelled()
    }

    #[test]
    fn the_oldest_that_has_not_spoken_makes_room_at_its_own_address() {
        let limits = InboundLimits { tls_handshakes_per_address: 3, tls_handshakes: 100, ..InboundLimits::default() };
        let all = Arc::new(Handshakes::default());
        let (here, there): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        let other = all.begin(there, &limits);
        let first = all.begin(here, &limits);
        first.spoke();
        let (second, third) = (all.begin(here, &limits), all.begin(here, &limits));
        let fourth = all.begin(here, &limits);
        assert_eq!([&other, &first, &second, &third, &fourth].map(is_evicted), [false, false, true, false, false]);
        third.spoke();
        fourth.spoke();
        let _fifth = all.begin(here, &limits);
        assert!(is_evicted(&first), "all have spoken: then the oldest goes");
        drop(third);
        let sixth = all.begin(here, &limits);
        assert!(!is_evicted(&fourth) && !is_evicted(&sixth), "one that is done has left its place");
    }

    #[test]
    fn where_the_node_has_too_many_the_address_with_most_makes_room() {
        let limits = InboundLimits { tls_handshakes_per_address: 100, tls_handshakes: 4, ..InboundLimits::default() };
        let all = Arc::new(Handshakes::default());
        let (here, there): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        let alone = all.begin(there, &limits);
        let flood: Vec<_> = (0..3).map(|_| all.begin(here, &limits)).collect();
        let next = all.begin(there, &limits);
        assert_eq!(flood.iter().map(is_evicted).collect::<Vec<_>>(), [true, false, false]);
        assert!(!is_evicted(&alone) && !is_evicted(&next));
        drop((flood, alone, next));
        let underway = all.lock();
        assert_eq!((underway.total, underway.by_address.len()), (0, 0), "nothing is left of them");
    }
}
