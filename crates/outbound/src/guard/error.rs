//! The reason for which an outgoing call was refused or cut: an inner one for the log, an outer one for
//! callers.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use http::StatusCode;

/// A rule of the guard that said no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// The URL has more bytes than allowed.
    #[error("the URL is longer than {0} bytes")]
    TooLong(usize),
    /// The URL has a character that URLs cannot have.
    #[error("the URL holds a character no URL holds")]
    Character,
    /// The text is not a URL.
    #[error("not a URL: {0}")]
    Malformed(String),
    /// The scheme is neither https nor an allowed http.
    #[error("the scheme is not https")]
    Scheme,
    /// The host may be called over https only.
    #[error("plain http is not allowed to this host")]
    Plain,
    /// The URL has a user name or a password.
    #[error("the URL holds a user name or password")]
    Userinfo,
    /// The URL has a fragment.
    #[error("the URL holds a fragment")]
    Fragment,
    /// No HTTP server uses the port.
    #[error("port {0} is closed to HTTP")]
    Port(u16),
    /// The settings do not allow the host.
    #[error("the host {0} is not allowed")]
    Host(String),
    /// The URL leads to this node.
    #[error("the URL leads back to this server")]
    OwnOrigin,
    /// The settings do not allow the address.
    #[error("the address {0} is not allowed")]
    Address(IpAddr),
    /// The settings allow none of the addresses of the host.
    #[error("no address of {0} is allowed")]
    NoAddress(String),
    /// The connection reached another address than the dialled one.
    #[error("dialled {dialled} but reached {peer}")]
    PeerChanged { dialled: SocketAddr, peer: SocketAddr },
}

/// Where the time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectStage {
    /// While the connection was opened.
    Connect,
    /// During the TLS handshake.
    Tls,
    /// During the exchange.
    Exchange,
    /// Between two chunks of a stream.
    Idle,
}

/// What was too big.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// The headers of the answer.
    Headers,
    /// The body of the answer.
    Body,
    /// The interim answers before the answer.
    Informational,
}

/// Why the guard made no connection, or lost it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// A rule of the guard rejected the call.
    #[error("blocked: {0}")]
    Blocked(#[from] Blocked),
    /// The name has no address.
    #[error("no address found for {name}: {why}")]
    Unresolved { name: String, why: String },
    /// No connection was made.
    #[error("not reached: {0}")]
    Unreachable(String),
    /// The proxy of `[outbound]` made no connection.
    #[error("the egress proxy did not connect us: {0}")]
    Proxy(String),
    /// The TLS handshake failed.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The time ran out.
    #[error("out of time: {0}")]
    TimedOut(ConnectStage),
    /// The answer is not HTTP.
    #[error("not an HTTP answer: {0}")]
    Protocol(String),
    /// The answer is a redirect, which the guard does not follow.
    #[error("the answer is a redirect ({0}), which is never followed")]
    Redirect(StatusCode),
    /// The answer exceeds a size limit.
    #[error("the answer is too big: {0}")]
    TooBig(Whole),
    /// The answer has an encoding that the request did not accept.
    #[error("the answer comes in the encoding {0:?}, which was not asked for")]
    Encoded(String),
    /// The answer ended before it was complete.
    #[error("the answer broke off: {0}")]
    BrokeOff(String),
    /// The caller's own fault; nothing was sent.
    #[error("not a request: {0}")]
    Request(String),
}

/// The message for a party that chose the URL. Blocked, closed, silent and not speaking HTTP look the same,
/// so that the node reveals nothing about its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outer {
    /// No usable answer came.
    Unreachable,
    /// An answer came that the guard rejects.
    BadAnswer,
}

impl GuardError {
    /// Returns the part of the fault that a caller may see.
    pub fn outer(&self) -> Outer {
        match self {
            Self::Blocked(_)
            | Self::Unresolved { .. }
            | Self::Unreachable(_)
            | Self::Proxy(_)
            | Self::Tls(_)
            | Self::TimedOut(_)
            | Self::Protocol(_)
            | Self::BrokeOff(_)
            | Self::Request(_) => Outer::Unreachable,
            Self::Redirect(_) | Self::TooBig(_) | Self::Encoded(_) => Outer::BadAnswer,
        }
    }

    /// The text for the outside.
    pub fn public(&self) -> &'static str {
        self.outer().text()
    }
}

impl Outer {
    /// Returns the fault in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unreachable => "the address could not be reached",
            Self::BadAnswer => "the answer was not acceptable",
        }
    }
}

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for ConnectStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Tls => "the TLS handshake",
            Self::Exchange => "the whole exchange",
            Self::Idle => "the next part of the stream",
        })
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Headers => "its headers",
            Self::Body => "its body",
            Self::Informational => "the number of 1xx answers before it",
        })
    }
}
