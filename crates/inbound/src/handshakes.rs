//! TLS handshakes that are under way, bounded apart from connections: when there are too many, the slowest makes room.
//!
//! A client that floods an address with unfinished handshakes takes no slot from callers that finish theirs,
//! even at the same address. Peers that have sent their first message are counted apart from silent sockets: each costs
//! the flood a message, and a caller needs one round trip more to show its certificate.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::limits::InboundLimits;

#[derive(Debug, Default)]
pub(crate) struct Handshakes(Mutex<Underway>);

#[derive(Debug, Default)]
struct Underway {
    begun: u64,
    total: usize,
    /// None has both lists empty.
    by_address: HashMap<IpAddr, OfAddress>,
}

/// The handshakes of one address, oldest first.
#[derive(Debug, Default)]
struct OfAddress {
    silent: VecDeque<Unfinished>,
    /// The peer has sent its whole first message.
    spoken: VecDeque<Unfinished>,
}

#[derive(Debug)]
struct Unfinished {
    number: u64,
    evicted: CancellationToken,
}

/// One handshake that is under way. Dropping it gives its place back.
#[derive(Debug)]
pub(crate) struct HandshakePermit {
    all: Arc<Handshakes>,
    address: IpAddr,
    number: u64,
    /// So many of its address may have spoken.
    hellos: usize,
    evicted: CancellationToken,
}

impl Handshakes {
    /// Begins a handshake. Where its address has as many silent ones as it may, or the node as many of all, another one is
    /// evicted: of this address, or else of the address that has most.
    pub(crate) fn begin(self: &Arc<Self>, address: IpAddr, limits: &InboundLimits) -> HandshakePermit {
        let mut underway = self.lock();
        let silent = underway.by_address.get(&address).map_or(0, |own| own.silent.len());
        let is_proxy = limits.trusted_proxies.contain(address);
        if silent >= limits.tls_handshakes_per_address.max(1) && !is_proxy {
            underway.evict(address);
        } else if underway.total >= limits.tls_handshakes.max(1)
            && let Some(crowded) = underway.by_address.iter().max_by_key(|(_, own)| own.len()).map(|(address, _)| *address)
        {
            underway.evict(crowded);
        }
        let number = underway.begun;
        underway.begun += 1;
        underway.total += 1;
        let evicted = CancellationToken::new();
        let unfinished = Unfinished { number, evicted: evicted.clone() };
        underway.by_address.entry(address).or_default().silent.push_back(unfinished);
        let hellos = if is_proxy { usize::MAX } else { limits.tls_hellos_per_address.max(1) };
        HandshakePermit { all: Arc::clone(self), address, number, hellos, evicted }
    }

    fn lock(&self) -> MutexGuard<'_, Underway> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OfAddress {
    fn len(&self) -> usize {
        self.silent.len() + self.spoken.len()
    }

    fn take(&mut self, number: u64) -> Option<Unfinished> {
        let take = |list: &mut VecDeque<Unfinished>| {
            let place = list.iter().position(|one| one.number == number)?;
            list.remove(place)
        };
        take(&mut self.silent).or_else(|| take(&mut self.spoken))
    }
}

impl Underway {
    /// Evicts the oldest handshake of an address whose peer has not spoken, or the oldest of all. So idle
    /// sockets never evict active peers.
    fn evict(&mut self, address: IpAddr) {
        self.remove(address, |own| own.silent.pop_front().or_else(|| own.spoken.pop_front()));
    }

    /// Takes one handshake of an address off the list, and tells it.
    fn remove(&mut self, address: IpAddr, take: impl FnOnce(&mut OfAddress) -> Option<Unfinished>) {
        let Some(own) = self.by_address.get_mut(&address) else { return };
        if let Some(taken) = take(own) {
            self.total -= 1;
            taken.evicted.cancel();
        }
        if own.len() == 0 {
            self.by_address.remove(&address);
        }
    }
}

impl HandshakePermit {
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Notes that the peer has sent its first message. Where more of its address have than may, the oldest of those is evicted.
    pub(crate) fn spoke(&self) {
        let mut underway = self.all.lock();
        let Some(own) = underway.by_address.get_mut(&self.address) else { return };
        let Some(place) = own.silent.iter().position(|one| one.number == self.number) else { return };
        let is_full = own.spoken.len() >= self.hellos;
        own.spoken.extend(own.silent.remove(place));
        if is_full {
            underway.remove(self.address, |own| own.spoken.pop_front());
        }
    }

    /// Ends when another handshake has taken the place of this one.
    pub(crate) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        self.all.lock().remove(self.address, |own| own.take(self.number));
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
        let limits = InboundLimits {
            tls_handshakes_per_address: 2,
            tls_hellos_per_address: 2,
            tls_handshakes: 100,
            ..InboundLimits::default()
        };
        let all = Arc::new(Handshakes::default());
        let (here, there): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        let other = all.begin(there, &limits);
        let first = all.begin(here, &limits);
        first.spoke();
        let (second, third) = (all.begin(here, &limits), all.begin(here, &limits));
        let fourth = all.begin(here, &limits);
        assert_eq!([&other, &first, &second, &third, &fourth].map(is_evicted), [false, false, true, false, false]);
        third.spoke();
        let _fifth = all.begin(here, &limits);
        assert!(!is_evicted(&first) && !is_evicted(&third), "silent ones take no place of those that have spoken");
        fourth.spoke();
        assert_eq!([&first, &third, &fourth].map(is_evicted), [true, false, false], "three have spoken: then the oldest goes");
        drop(third);
        let sixth = all.begin(here, &limits);
        sixth.spoke();
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
