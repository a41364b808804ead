//! Counts the open connections of a listener, for each peer, and holds them at their limits.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::InboundLimits;

/// The account of a connection. A client that authenticates is not counted with unknown clients at the same
/// address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CountedPeer {
    Address(IpAddr),
    /// By the digest of the certificate that the handshake has checked, and its address: many may share one certificate.
    Certificate(IpAddr, [u8; 32]),
}

/// How many connections are open, from whom.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<HashMap<CountedPeer, usize>>);

/// A place among the open connections. Dropping it gives the place back.
pub(crate) struct ConnectionPermit {
    connections: Arc<Connections>,
    peer: CountedPeer,
}

impl Connections {
    pub(crate) fn enter(self: &Arc<Self>, peer: CountedPeer, limits: &InboundLimits) -> Option<ConnectionPermit> {
        let mut open = self.lock();
        let all: usize = open.values().sum();
        let of_peer = open.get(&peer).copied().unwrap_or(0);
        if all >= limits.connections || of_peer >= most_of(peer, limits) {
            return None;
        }
        open.insert(peer, of_peer + 1);
        Some(ConnectionPermit { connections: Arc::clone(self), peer })
    }

    /// Whether another connection of a peer would fit. `as_other` also counts one that may turn out to be
    /// another caller's.
    pub(crate) fn have_room(&self, peer: CountedPeer, limits: &InboundLimits, as_other: bool) -> bool {
        let open = self.lock();
        let all: usize = open.values().sum();
        all < limits.connections && (as_other || open.get(&peer).copied().unwrap_or(0) < most_of(peer, limits))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CountedPeer, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most connections of a peer. A proxy has the connections of many clients.
fn most_of(peer: CountedPeer, limits: &InboundLimits) -> usize {
    let (CountedPeer::Address(address) | CountedPeer::Certificate(address, _)) = peer;
    if limits.trusted_proxies.contain(address) { limits.connections } else { limits.connections_per_address }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_held_at_their_limits_and_freed_on_close() {
        let limits = InboundLimits { connections: 3, connections_per_address: 2, ..InboundLimits::default() };
        let connections = Arc::new(Connections::default());
        let [a, b] = [[127, 0, 0, 1], [127, 0, 0, 2]].map(|address| CountedPeer::Address(address.into()));
        let first = connections.enter(a, &limits).unwrap();
        let _second = connections.enter(a, &limits).unwrap();
        assert!(connections.enter(a, &limits).is_none(), "per address");
        let _third = connections.enter(b, &limits).unwrap();
        assert!(connections.enter(b, &limits).is_none(), "all together");
        drop(first);
        assert!(connections.enter(a, &limits).is_some());
    }
}
