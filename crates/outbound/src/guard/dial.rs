//! The two ports of the guard: finding the addresses of a name, and opening a stream to one address.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::prompt::Prompt;

/// Name to addresses. Whatever it answers is filtered afterwards: an implementation need not judge.
#[async_trait]
pub trait Resolve: Send + Sync + Debug {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Address to stream.
#[async_trait]
pub trait Dial: Send + Sync + Debug {
    async fn dial(&self, address: SocketAddr) -> io::Result<Dialled>;
}

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open stream and who is at its other end.
pub struct Dialled {
    pub stream: Box<dyn Stream>,
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
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
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
