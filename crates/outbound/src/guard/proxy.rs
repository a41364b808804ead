//! The operator's egress proxy: it gets an address we resolved and checked, never a name it could resolve for itself.

use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::{Host, Url};

use super::dial::{Dialled, Stream};
use super::fault::OutboundFault;
use super::{Guard, GuardError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EgressProxy {
    host: Host,
    port: u16,
}

/// A tunnel's answer is a status line and a few headers.
const ANSWER_BYTES: usize = 8 * 1024;

impl EgressProxy {
    pub(super) fn new(url: &str) -> Result<Self, OutboundFault> {
        let fault = |text: &str| Err(OutboundFault::new("proxy", text));
        let Ok(url) = Url::parse(url) else { return fault("is not a URL") };
        if !url.username().is_empty() || url.password().is_some() {
            return fault("a user name or password in it is not supported");
        }
        if url.scheme() != "http" || url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return fault("must be http://host:port and nothing more");
        }
        match (url.host(), url.port_or_known_default()) {
            (Some(host), Some(port)) => Ok(Self { host: host.to_owned(), port }),
            _ => fault("must be http://host:port and nothing more"),
        }
    }

    /// The operator chose the proxy, so its own address is not judged.
    pub(super) async fn tunnel(&self, guard: &Guard, to: SocketAddr) -> Result<Box<dyn Stream>, GuardError> {
        let mut stream = self.reach(guard).await?.stream;
        // The address is written canonically, so an IPv6 one gets its brackets.
        let request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
        let broken = |fault: std::io::Error| GuardError::Proxy(fault.to_string());
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the blank line belongs to the tunnel.
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() >= ANSWER_BYTES {
                return Err(GuardError::Proxy("its answer does not end".to_owned()));
            }
            answer.push(stream.read_u8().await.map_err(broken)?);
        }
        let status = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let is_http_1 = status.starts_with(b"HTTP/1.1 ") || status.starts_with(b"HTTP/1.0 ");
        match status.get(9..12) {
            Some([b'2', b'0'..=b'9', b'0'..=b'9']) if is_http_1 => Ok(stream),
            _ => Err(GuardError::Proxy(format!("it answered {}", status.escape_ascii()))),
        }
    }

    async fn reach(&self, guard: &Guard) -> Result<Dialled, GuardError> {
        let addresses: Vec<IpAddr> = match &self.host {
            Host::Ipv4(address) => vec![(*address).into()],
            Host::Ipv6(address) => vec![(*address).into()],
            Host::Domain(name) => {
                guard.rules.resolver.resolve(name).await.map_err(|fault| GuardError::Proxy(fault.to_string()))?
            }
        };
        let mut last = GuardError::Proxy("it has no address".to_owned());
        for address in addresses.into_iter().take(guard.config().addresses) {
            match guard.rules.dialer.dial(SocketAddr::new(address, self.port)).await {
                Ok(dialled) => return Ok(dialled),
                Err(fault) => last = GuardError::Proxy(fault.to_string()),
            }
        }
        Err(last)
    }
}
