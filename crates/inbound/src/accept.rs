//! The accept loop of every listener: takes connections under their limits, secures them, hands each to its protocol and
//! waits for all of them on a stop.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::watched;
use chancery_identity::SealKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connections::{ConnectionPermit, Connections, CountedPeer};
use crate::doors_handle::DoorsHandle;
use crate::handshakes::{HandshakePermit, Handshakes};
use crate::limits::InboundLimits;
use crate::origin::ConnectionOrigin;
use crate::stall::StallGuard;
use crate::tls::{self, Tls};

/// A connection that may come in: the socket, who is at its other end, the doors, and the token of a stop.
pub(crate) struct AcceptedConnection<S> {
    pub(crate) stream: S,
    pub(crate) origin: ConnectionOrigin,
    pub(crate) doors_handle: DoorsHandle,
    pub(crate) stop: CancellationToken,
}

/// What a protocol needs of a socket.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Socket for S {}

/// The protocol that a listener speaks. Each connection is served by a clone.
pub(crate) trait ConnectionProtocol: Clone + Send + 'static {
    /// The name of a connection in the log of a panic.
    const NAME: &'static str;

    /// Adopts limits that a reload has changed, for the connections accepted from now on.
    fn adopt(&mut self, limits: &InboundLimits);

    /// Serves one connection to its end.
    fn serve(self, accepted: AcceptedConnection<impl Socket>) -> impl Future<Output = ()> + Send;

    /// Logs a TLS handshake that failed.
    fn log_failed_handshake(address: IpAddr, error: &io::Error);
}

/// Accepts connections until `stop` fires, then waits until those that are open have finished, or have had their time.
pub(crate) async fn accept_connections<P: ConnectionProtocol>(
    listener: TcpListener,
    tls: Option<Tls>,
    doors_handle: DoorsHandle,
    stop: CancellationToken,
    mut protocol: P,
) {
    let mut doors = doors_handle.doors();
    protocol.adopt(&doors.settings().limits);
    let (connections, handshakes) = (Arc::new(Connections::default()), Arc::new(Handshakes::default()));
    let tracker = TaskTracker::new();
    while let Some((stream, address)) = accept(&listener, &stop).await {
        if !doors_handle.still_has(&doors) {
            doors = doors_handle.doors();
            protocol.adopt(&doors.settings().limits);
        }
        let limits = &doors.settings().limits;
        let Some(way_in) = WayIn::of(tls.as_ref(), address, &connections, &handshakes, limits) else {
            tracing::debug!(%address, "closed a connection at once: limits.connections or limits.connections_per_address are open");
            continue;
        };
        let stream = StallGuard::new(stream, Duration::from_millis(limits.write_stall_ms));
        let accepted =
            AcceptedConnection { stream, origin: address.into(), doors_handle: doors_handle.clone(), stop: stop.clone() };
        let (protocol, connections) = (protocol.clone(), Arc::clone(&connections));
        tracker.spawn(watched(P::NAME, async move {
            match way_in {
                WayIn::Plain(place) => {
                    protocol.serve(accepted).await;
                    drop(place);
                }
                // Boxed, so that a connection without TLS has no room for one.
                WayIn::Secured(tls, handshake) => {
                    Box::pin(serve_secured(protocol, accepted, tls, handshake, connections)).await;
                }
            }
        }));
    }
    drop(listener);
    tracker.close();
    tracker.wait().await;
}

async fn serve_secured<P: ConnectionProtocol>(
    protocol: P,
    AcceptedConnection { stream, doors_handle, stop, .. }: AcceptedConnection<StallGuard<TcpStream>>,
    tls: Tls,
    handshake: HandshakePermit,
    connections: Arc<Connections>,
) {
    let address = handshake.address();
    match secure(stream, &tls, handshake, &connections, &doors_handle, &stop).await {
        Ok((stream, origin, place)) => {
            protocol.serve(AcceptedConnection { stream, origin, doors_handle, stop }).await;
            drop(place);
        }
        Err(error) => P::log_failed_handshake(address, &error),
    }
}

/// The next connection, unless `stop` fires first.
async fn accept(listener: &TcpListener, stop: &CancellationToken) -> Option<(TcpStream, IpAddr)> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return None,
        };
        match accepted {
            Ok((stream, address)) => {
                // Small writes must not wait for each other: events and frames are small writes.
                if let Err(fault) = stream.set_nodelay(true) {
                    tracing::debug!(error = %fault, "cannot set TCP_NODELAY");
                }
                return Some((stream, address.ip()));
            }
            Err(fault) => {
                // Out of file descriptors, mostly. Others will close; until then, do not spin.
                tracing::warn!(error = %fault, "cannot accept a connection and tries again; a limit of open files (ulimit -n) may be reached");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// How a new connection begins.
enum WayIn {
    Plain(ConnectionPermit),
    /// With a handshake, which is counted by itself until it is done.
    Secured(Tls, HandshakePermit),
}

impl WayIn {
    /// Nothing at the limit of connections. If callers need certificates, only a handshake shows who is at
    /// the limit.
    fn of(
        tls: Option<&Tls>,
        address: IpAddr,
        connections: &Arc<Connections>,
        handshakes: &Arc<Handshakes>,
        limits: &InboundLimits,
    ) -> Option<Self> {
        let Some(tls) = tls else { return connections.enter(CountedPeer::Address(address), limits).map(Self::Plain) };
        let may_come = connections.have_room(CountedPeer::Address(address), limits, tls.asks_for_certificates());
        may_come.then(|| Self::Secured(tls.clone(), handshakes.begin(address, limits)))
    }
}

/// Does the handshake. Answers the connection, who is at its other end, and its place among the connections.
async fn secure(
    stream: StallGuard<TcpStream>,
    tls: &Tls,
    handshake: HandshakePermit,
    connections: &Arc<Connections>,
    doors_handle: &DoorsHandle,
    stop: &CancellationToken,
) -> io::Result<(TlsStream<StallGuard<TcpStream>>, ConnectionOrigin, ConnectionPermit)> {
    let (address, limits) = (handshake.address(), doors_handle.doors().settings().limits.clone());
    let patience = Duration::from_millis(limits.tls_handshake_ms);
    let refused = |why: &str| io::Error::new(io::ErrorKind::ConnectionAborted, why.to_owned());
    let stream = tokio::select! {
        accepted = tls.accept(stream, &handshake, patience) => accepted?,
        () = stop.cancelled() => return Err(refused("the node stops")),
    };
    drop(handshake);
    let certificate: Option<Arc<[u8]>> = tls::shown(&stream).map(|certificate| Arc::from(certificate.as_ref()));
    let peer = certificate
        .as_deref()
        .map_or(CountedPeer::Address(address), |der| CountedPeer::Certificate(address, SealKey::digest(der)));
    let place = connections.enter(peer, &limits).ok_or_else(|| refused("there are too many connections"))?;
    Ok((stream, ConnectionOrigin { certificate, ..address.into() }, place))
}
