//! The listener: accepts connections under their limits, serves HTTP/1.1 and HTTP/2 on each, and drains them on a stop.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::entrance::Entrance;
use crate::limits::InboundLimits;
use crate::opening::OpeningGuard;
use crate::origin::Origin;
use crate::stall::StallGuard;
use crate::tls::{self, Tls};

/// Serves until `stop` fires and the connections have finished, or have had their time.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, entrance: Entrance, stop: CancellationToken) {
    let mut doors = entrance.doors();
    let mut http = Arc::new(builder(&doors.settings().limits));
    let connections = Arc::new(Connections::default());
    let tracker = TaskTracker::new();
    while let Some((stream, address)) = accept(&listener, &stop).await {
        if !entrance.still_has(&doors) {
            doors = entrance.doors();
            http = Arc::new(builder(&doors.settings().limits));
        }
        let Some(place) = connections.enter(address, &doors.settings().limits) else {
            tracing::debug!(%address, "too many connections; one was closed at once");
            continue;
        };
        let stream = StallGuard::new(stream, Duration::from_millis(doors.settings().limits.write_stall_ms));
        let (entrance, http, tls, stop) = (entrance.clone(), Arc::clone(&http), tls.clone(), stop.clone());
        tracker.spawn(async move {
            match tls {
                None => connection(stream, address.into(), entrance, http, stop).await,
                // Boxed, so that a connection without TLS has no room for one.
                Some(tls) => Box::pin(secured(stream, tls, address, entrance, http, stop)).await,
            }
            drop(place);
        });
    }
    drop(listener);
    tracker.close();
    tracker.wait().await;
}

/// The next connection, unless `stop` fires first.
pub(crate) async fn accept(listener: &TcpListener, stop: &CancellationToken) -> Option<(TcpStream, IpAddr)> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return None,
        };
        match accepted {
            Ok((stream, address)) => {
                // Small writes must not wait for each other: events and frames are small writes.
                if let Err(fault) = stream.set_nodelay(true) {
                    tracing::debug!(error = %fault, "TCP_NODELAY could not be set");
                }
                return Some((stream, address.ip()));
            }
            Err(fault) => {
                // Out of file descriptors, mostly. Others will close; until then, do not spin.
                tracing::warn!(error = %fault, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// As many headers hyper takes when it is told nothing, and then it fills no table with them for every request.
const HEADERS_BY_ITSELF: usize = 100;

fn builder(limits: &InboundLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.header_read_ms))
        // hyper's smallest buffer; a head that does not fit is answered with 431.
        .max_buf_size(limits.header_bytes.max(8192));
    if limits.header_count != HEADERS_BY_ITSELF {
        builder.http1().max_headers(limits.header_count);
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_streams)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(Duration::from_millis(limits.header_read_ms)))
        .keep_alive_timeout(Duration::from_millis(limits.header_read_ms));
    builder
}

/// A connection that begins with a TLS handshake.
async fn secured(
    stream: StallGuard<TcpStream>,
    tls: Tls,
    address: IpAddr,
    entrance: Entrance,
    builder: Arc<Builder<TokioExecutor>>,
    stop: CancellationToken,
) {
    let patience = Duration::from_millis(entrance.doors().settings().limits.tls_handshake_ms);
    let accepted = tokio::select! {
        accepted = tls.accept(stream, patience) => accepted,
        () = stop.cancelled() => return,
    };
    match accepted {
        Ok(stream) => {
            let certificate = tls::shown(&stream).map(|certificate| Arc::from(certificate.as_ref()));
            connection(stream, Origin { address: Some(address), certificate }, entrance, builder, stop).await;
        }
        Err(fault) => tracing::debug!(%address, error = %fault, "a TLS handshake failed"),
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    origin: Origin,
    entrance: Entrance,
    builder: Arc<Builder<TokioExecutor>>,
    stop: CancellationToken,
) {
    let address = origin.address;
    let limits = entrance.doors().settings().limits.clone();
    let drain = Duration::from_millis(limits.drain_ms);
    let stream = TokioIo::new(OpeningGuard::new(stream, Duration::from_millis(limits.header_read_ms)));
    let service = service_fn(move |request: Request<Incoming>| {
        let (doors, origin) = (entrance.doors(), origin.clone());
        // Boxed, because a connection keeps room for whatever it does for a call, also while it only streams the answer.
        Box::pin(async move { Ok::<_, std::convert::Infallible>(doors.handle(request, &origin).await) })
    });
    let mut served = std::pin::pin!(builder.serve_connection(stream, service));
    let ended = tokio::select! {
        // In this order: the connection has something to do far more often than the node stops.
        biased;
        ended = served.as_mut() => Ok(ended),
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            tokio::time::timeout(drain, served).await
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => tracing::debug!(?address, error = fault, "a connection ended badly"),
        Err(_) => tracing::warn!(?address, "a connection was still open after limits.drain_ms and was closed"),
    }
}

/// How many connections are open, from where.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<HashMap<IpAddr, usize>>);

/// A place among the open connections. Dropping it gives the place back.
pub(crate) struct Place {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Connections {
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr, limits: &InboundLimits) -> Option<Place> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let of_address = open.get(&address).copied().unwrap_or(0);
        if all >= limits.connections || of_address >= limits.connections_per_address {
            return None;
        }
        open.insert(address, of_address + 1);
        Some(Place { connections: Arc::clone(self), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
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
        let (a, b): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        let first = connections.enter(a, &limits).unwrap();
        let _second = connections.enter(a, &limits).unwrap();
        assert!(connections.enter(a, &limits).is_none(), "per address");
        let _third = connections.enter(b, &limits).unwrap();
        assert!(connections.enter(b, &limits).is_none(), "all together");
        drop(first);
        assert!(connections.enter(a, &limits).is_some());
    }
}
