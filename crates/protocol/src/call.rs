//! What is known about a call beside what it asks: who, how, under which conditions.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::{Binding, CallerStanding, Dialect, TaskId, Version};

/// The name an agent is mounted under.
pub type AgentName = Arc<str>;

/// Who is calling. Everything a caller makes belongs to (tenant, name).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The tenant that the caller belongs to.
    pub tenant: Arc<str>,
    /// The name of the caller within its tenant.
    pub name: Arc<str>,
}

impl Caller {
    /// Makes a caller of a tenant and a name.
    pub fn new(tenant: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { tenant: tenant.into(), name: name.into() }
    }
}

/// The connection that a call came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerConnection {
    /// The address of the peer; for IPv6 the network of 64 bits that one machine chooses its addresses from.
    pub network: IpAddr,
    /// Which of this process's connections it is.
    pub number: u64,
}

impl PeerConnection {
    /// Makes the connection with this number among those of an address.
    pub fn new(address: IpAddr, number: u64) -> Self {
        let network = match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
            v4 => v4,
        };
        Self { network, number }
    }
}

/// Whose limits on memory and streams a call counts against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CallAccount {
    /// A caller that proved to be one of those the operator lists.
    Caller(Caller),
    /// A connection whose calls can each name a new caller.
    Connection(PeerConnection),
}

impl CallAccount {
    /// The same for all connections of the network.
    pub fn across_connections(&self) -> Self {
        match self {
            Self::Caller(caller) => Self::Caller(caller.clone()),
            Self::Connection(peer) => Self::Connection(PeerConnection { number: 0, ..*peer }),
        }
    }
}

/// W3C trace id of a call: the caller's, or one made here. A trace that a caller made up is for telemetry only, never for
/// accounting. The trace and the marks that this node put into a call place the calls that bring them back.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub u128);

impl TraceId {
    /// The id inside a `traceparent` header: `00-<32 hex digits>-<16 hex digits>-<flags>`.
    pub fn from_traceparent(header: &str) -> Option<Self> {
        Self::with_span(header).map(|(trace, _)| trace)
    }

    /// The same with the id of the caller's span.
    pub fn with_span(header: &str) -> Option<(Self, u64)> {
        let mut fields = header.split('-');
        let (version, id, parent) = (fields.next()?, fields.next()?, fields.next()?);
        let hex = |text: &str, length| text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !hex(version, 2) || version == "ff" || !hex(id, 32) || !hex(parent, 16) {
            return None;
        }
        Some((Self::from_hex(id)?, u64::from_str_radix(parent, 16).ok()?))
    }

    /// 32 lower-case hex digits that are not all zero.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(digit) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().filter(|id| *id != 0).map(Self)
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        Self::from_hex(&text).ok_or_else(|| de::Error::custom("a trace id is 32 lower-case hex digits, not all zero"))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Everything that is known of a call beside its request.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The protocol version of the call.
    pub version: Version,
    /// A 0.3 call that is written as `Dialect::Wrapped0_3`.
    pub wrapped: bool,
    /// The binding that the call came over.
    pub binding: Binding,
    /// The caller.
    pub caller: Caller,
    /// What is known of that caller.
    pub standing: Arc<CallerStanding>,
    /// The agent that is called; `None` for the node's own or only one.
    pub agent: Option<AgentName>,
    /// Protocol extensions the caller asked for.
    pub extensions: Vec<String>,
    /// Same caller, same key: same task.
    pub idempotency_key: Option<Arc<str>>,
    /// The last event the caller has seen of the task it subscribes to.
    pub last_event_id: Option<u64>,
    /// The trace that the call belongs to.
    pub trace: TraceId,
    /// The span of the caller in that trace. None if the call brought no trace, and this one was made here.
    pub span: Option<u64>,
    /// What other systems keep beside that trace, in their own words.
    pub tracestate: Option<Arc<str>>,
    /// The hop tokens the call came with, one after the other, separated by commas.
    pub hop_token: Option<Arc<str>>,
    /// The task of this node on whose behalf an agent inside it calls. No door ever sets it.
    pub within: Option<TaskId>,
    /// The agent whose own address the call came to: it says who calls, not who may.
    pub via: Option<AgentName>,
    /// The connection of a caller that no list has: without authentication, or named by an issuer.
    pub unlisted_at: Option<PeerConnection>,
}

impl CallContext {
    /// A call of A2A 1.0 over JSON-RPC to the agent at the root, by a caller who proved nothing.
    pub fn new(caller: Caller, trace: TraceId) -> Self {
        Self {
            version: Version::V1_0,
            wrapped: false,
            binding: Binding::JsonRpc,
            caller,
            standing: Arc::default(),
            agent: None,
            extensions: Vec::new(),
            idempotency_key: None,
            last_event_id: None,
            trace,
            span: None,
            tracestate: None,
            hop_token: None,
            within: None,
            via: None,
            unlisted_at: None,
        }
    }
}

impl CallContext {
    /// Whose limits it counts against.
    pub fn account(&self) -> CallAccount {
        match self.unlisted_at {
            Some(connection) => CallAccount::Connection(connection),
            None => CallAccount::Caller(self.caller.clone()),
        }
    }

    /// The dialect its answer is written in, and that of the task it makes.
    pub fn dialect(&self) -> Dialect {
        match (self.version, self.wrapped) {
            (Version::V0_3, true) => Dialect::Wrapped0_3,
            (version, _) => version.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_network_whatever_addresses_it_chooses() {
        let network = |address: &str| PeerConnection::new(address.parse().unwrap(), 1).network.to_string();
        assert_eq!(network("192.0.2.7"), "192.0.2.7");
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("2001:db8:1:2:ffff::"), "2001:db8:1:2::");
    }

    #[test]
    fn only_a_well_formed_traceparent_gives_an_id() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(TraceId::from_traceparent(good).unwrap().to_string(), "0af7651916cd43dd8448eb211c80319c");
        for bad in ["", "00", "00-0-0-0", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", &good.replace('a', "G")] {
            assert_eq!(TraceId::from_traceparent(bad), None, "{bad}");
        }
        let id: TraceId = serde_json::from_str("\"0af7651916cd43dd8448eb211c80319c\"").unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"0af7651916cd43dd8448eb211c80319c\"");
        for bad in ["\"\"", "7", "\"0AF7651916cd43dd8448eb211c80319c\"", "\"00000000000000000000000000000000\""] {
            serde_json::from_str::<TraceId>(bad).unwrap_err();
        }
        assert_eq!(TraceId::from_traceparent(&format!("00-{}-b7ad6b7169203331-01", "0".repeat(32))), None);
    }
}
