//! The two ports of the guard: finding the addresses of a name, and opening a stream to one address.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::prompt::Prompt;

/// Name to addresses. Every answer is filtered afterwards: an implementation need not judge.
#[async_trait]
pub trait Resolve: Send + Sync + Debug {
    /// Returns the addresses of a name.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Address to stream.
#[async_trait]
pub trait Dial: Send + Sync + Debug {
    /// Opens a connection to the address.
    async fn dial(&self, address: SocketAddr) -> io::Result<Dialled>;
}

/// A connection: bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open stream and who is at its other end.
pub struct Dialled {
    /// The connection.
    pub stream: Box<dyn Stream>,
    /// The address at its other side.
    pub peer: SocketAddr,
}

impl Debug for Dialled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialled").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// The system's own name resolution.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut found: Vec<IpAddr> = tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect();
        // Hosts files often have one of the two, and an agent may listen on the other alone.
        if name.eq_ignore_ascii_case("localhost") {
            let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            let missing: Vec<IpAddr> = both.into_iter().filter(|address| !found.contains(address)).collect();
            found.extend(missing);
        }
        Ok(found)
    }
}

/// TCP, without delay for small writes or for confirming those of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDialer;

#[async_trait]
impl Dial for SystemDialer {
    async fn dial(&self, address: SocketAddr) -> io::Result<Dialled> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let peer = stream.peer_addr()?;
        Ok(Dialled { stream: Box::new(Prompt::new(stream)), peer })
    }
}
