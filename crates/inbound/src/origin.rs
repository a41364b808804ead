//! Where a request came from, as far as the connection tells.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chancery_identity::credentials::Known;
use chancery_protocol::{CallAccount, PeerConnection};

/// The number of the last connection that was accepted.
static LAST_CONNECTION: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Debug, Default)]
pub struct ConnectionOrigin {
    pub address: Option<IpAddr>,
    /// The certificate the caller showed in the TLS handshake, checked there, as DER.
    pub certificate: Option<Arc<[u8]>>,
    /// Which of the connections of that address it is: each has its own share of some limits.
    pub connection: u64,
}

/// A new connection.
impl From<IpAddr> for ConnectionOrigin {
    fn from(address: IpAddr) -> Self {
        let connection = LAST_CONNECTION.fetch_add(1, Ordering::Relaxed) + 1;
        Self { address: Some(address), certificate: None, connection }
    }
}

/// A connection of the embedding program's listener.
impl From<SocketAddr> for ConnectionOrigin {
    fn from(peer: SocketAddr) -> Self {
        Self { address: Some(peer.ip()), certificate: None, connection: u64::from(peer.port()) }
    }
}

impl ConnectionOrigin {
    pub(crate) fn peer(&self) -> Option<PeerConnection> {
        self.address.map(|address| PeerConnection::new(address, self.connection))
    }

    /// The connection of a caller that no list has.
    pub(crate) fn of_unlisted(&self, known: &Known) -> Option<PeerConnection> {
        self.peer().filter(|_| known.standing.is_unlisted())
    }

    /// Whose limits a request counts against. `None` stands for a caller that is not known yet.
    pub(crate) fn account(&self, known: Option<&Known>) -> CallAccount {
        match (known.filter(|known| !known.standing.is_unlisted()), self.peer()) {
            (Some(known), _) => CallAccount::Caller(known.caller.clone()),
            (None, peer) => CallAccount::Connection(peer.unwrap_or_else(|| PeerConnection::new([0, 0, 0, 0].into(), 0))),
        }
    }
}
