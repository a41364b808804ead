//! The HTTP listener: serves HTTP/1.1 and HTTP/2 on each connection, and drains them on a stop.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::accept::{AcceptedConnection, ConnectionProtocol, Socket, accept_connections};
use crate::doors_handle::DoorsHandle;
use crate::limits::InboundLimits;
use crate::opening::OpeningGuard;
use crate::stalled_streams::StreamExecutor;
use crate::tls::Tls;

/// Serves until `stop` fires and the connections have finished, or have had their time.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, doors_handle: DoorsHandle, stop: CancellationToken) {
    let http = HttpConnections { builder: Arc::new(builder(&doors_handle.doors().settings().limits)) };
    accept_connections(listener, tls, doors_handle, stop, http).await;
}

/// HTTP on a connection, with hyper set up for the limits of now.
#[derive(Clone)]
struct HttpConnections {
    builder: Arc<Builder<StreamExecutor>>,
}

impl ConnectionProtocol for HttpConnections {
    const NAME: &'static str = "connection";

    fn adopt(&mut self, limits: &InboundLimits) {
        self.builder = Arc::new(builder(limits));
    }

    async fn serve(self, AcceptedConnection { stream, origin, doors_handle, stop }: AcceptedConnection<impl Socket>) {
        let address = origin.address;
        let limits = doors_handle.doors().settings().limits.clone();
        let drain = Duration::from_millis(limits.drain_ms);
        let stream = TokioIo::new(OpeningGuard::new(stream, Duration::from_millis(limits.header_read_ms)));
        let service = service_fn(move |request: Request<Incoming>| {
            let (doors, origin) = (doors_handle.doors(), origin.clone());
            // Boxed, because a connection keeps room for whatever it does for a call, also while it only streams the answer.
            Box::pin(async move { Ok::<_, std::convert::Infallible>(doors.handle(request, &origin).await) })
        });
        let mut served = std::pin::pin!(self.builder.serve_connection(stream, service));
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
            Ok(Err(fault)) => tracing::debug!(?address, error = fault, "a connection ended with an error"),
            Err(_) => tracing::warn!(?address, "closed a connection that was still open after limits.drain_ms"),
        }
    }

    fn log_failed_handshake(address: IpAddr, error: &io::Error) {
        tracing::debug!(%address, %error, "a TLS handshake failed");
    }
}

/// The number of headers that hyper accepts by default. With the default it fills no table with them for
/// every request.
const HEADERS_BY_ITSELF: usize = 100;

fn builder(limits: &InboundLimits) -> Builder<StreamExecutor> {
    let mut builder = Builder::new(StreamExecutor::new(Duration::from_millis(limits.write_stall_ms)));
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
