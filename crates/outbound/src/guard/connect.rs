//! The connector: resolve once, keep what is allowed, dial that very address, look at who answered, then TLS for the name.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::Connected;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};
use tower_service::Service;

use super::address::canonical;
use super::dial::Stream;
use super::target::{GuardedTarget, TargetHost, check_url};
use super::{Blocked, ConnectStage, Guard, GuardError, confirm, tls};

/// For hyper-util's client and for tonic's `connect_with_connector`. The URI is checked here again, for every
/// caller.
#[derive(Clone, Debug)]
pub struct Connector {
    guard: Guard,
    h2_only: bool,
}

impl Connector {
    pub(super) fn new(guard: Guard, h2_only: bool) -> Self {
        Self { guard, h2_only }
    }

    async fn connect(self, uri: Uri) -> Result<GuardedConnection, GuardError> {
        let target = check_url(&uri.to_string(), &self.guard)?;
        let (stream, peer) = reach(&self.guard, &target).await?;
        if !target.is_tls() {
            return Ok(GuardedConnection { stream: TokioIo::new(stream), peer, h2: self.h2_only });
        }
        let within = self.guard.config().tls();
        let stream = tls::handshake(&self.guard.rules.trust, &target, self.h2_only, within, stream).await?;
        let h2 = tls::spoke_h2(&stream);
        Ok(GuardedConnection { stream: TokioIo::new(Box::new(stream)), peer, h2 })
    }
}

impl Service<Uri> for Connector {
    type Response = GuardedConnection;
    type Error = GuardError;
    type Future = Pin<Box<dyn Future<Output = Result<GuardedConnection, GuardError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), GuardError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// `connect_ms` covers the look-up and all tries together; a silent address only gets its share of what is left.
pub(super) async fn reach(guard: &Guard, target: &GuardedTarget) -> Result<(Box<dyn Stream>, SocketAddr), GuardError> {
    let deadline = Instant::now() + guard.config().connect();
    let addresses = timeout_at(deadline, allowed_addresses(guard, target))
        .await
        .map_err(|_| GuardError::TimedOut(ConnectStage::Connect))??;
    let mut last = GuardError::TimedOut(ConnectStage::Connect);
    for (tried, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match timeout_at(Instant::now() + share, dial(guard, SocketAddr::new(*address, target.port()))).await {
            Ok(Ok(reached)) => return Ok(reached),
            // A peer that is not whom we dialled is no reason to try the next: something is wrong with the network.
            Ok(Err(GuardError::Blocked(blocked))) => return Err(blocked.into()),
            Ok(Err(fault)) => last = fault,
            Err(_) => last = GuardError::TimedOut(ConnectStage::Connect),
        }
    }
    Err(last)
}

async fn dial(guard: &Guard, address: SocketAddr) -> Result<(Box<dyn Stream>, SocketAddr), GuardError> {
    if let Some(proxy) = &guard.rules.proxy {
        return Ok((proxy.tunnel(guard, address).await?, address));
    }
    let dialled = guard.rules.dialer.dial(address).await.map_err(|fault| GuardError::Unreachable(fault.to_string()))?;
    confirm(address, dialled.peer)?;
    Ok((dialled.stream, dialled.peer))
}

/// The only look-up for this connection. Every answer is judged by itself: a good address does not vouch for a bad one.
async fn allowed_addresses(guard: &Guard, target: &GuardedTarget) -> Result<Vec<IpAddr>, GuardError> {
    let name = match target.host() {
        // Judged a moment ago, with the URL.
        TargetHost::Address(address) => return Ok(vec![*address]),
        TargetHost::Name(name) => name,
    };
    let answers = guard.rules.resolver.resolve(name).await;
    let answers = answers.map_err(|fault| GuardError::Unresolved { name: name.clone(), why: fault.to_string() })?;
    if answers.is_empty() {
        return Err(GuardError::Unresolved { name: name.clone(), why: "the answer is empty".to_owned() });
    }
    let mut allowed: Vec<IpAddr> = Vec::new();
    for address in answers.into_iter().map(canonical) {
        if allowed.len() < guard.config().addresses && !allowed.contains(&address) && guard.permits(target, address).is_ok() {
            allowed.push(address);
        }
    }
    match allowed.is_empty() {
        true => Err(Blocked::NoAddress(name.clone()).into()),
        false => Ok(allowed),
    }
}

/// An open way to a checked address, with TLS inside where the URL asked for it.
pub struct GuardedConnection {
    stream: TokioIo<Box<dyn Stream>>,
    peer: SocketAddr,
    h2: bool,
}

/// Whom a response came from: in the extensions of every response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DialedAddress(pub SocketAddr);

impl GuardedConnection {
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub fn is_h2(&self) -> bool {
        self.h2
    }
}

impl std::fmt::Debug for GuardedConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer).field("h2", &self.h2).finish_non_exhaustive()
    }
}

impl hyper_util::client::legacy::connect::Connection for GuardedConnection {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(DialedAddress(self.peer));
        if self.h2 { connected.negotiated_h2() } else { connected }
    }
}

impl Read for GuardedConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for GuardedConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }
}
