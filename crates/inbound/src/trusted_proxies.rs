//! The load balancers and proxies whose `X-Forwarded-For` the node believes, and the client address that they report.

use std::net::IpAddr;
use std::str::FromStr;

use http::HeaderMap;
use http::header::HeaderName;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Each proxy appends the address of its peer. Several lines of the header are one list.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Part of the `[limits]` section: the addresses and networks of proxies, as in `["10.0.0.7", "10.1.0.0/16"]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrustedProxies(pub Vec<ProxyNet>);

/// One address, or one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProxyNet(IpNet);

impl FromStr for ProxyNet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = text.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
        let net = address.or_else(|_| text.parse::<IpNet>());
        net.map(Self).map_err(|_| format!("expected an address or a network such as 10.1.0.0/16, got {text:?}"))
    }
}

impl TryFrom<String> for ProxyNet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ProxyNet> for String {
    fn from(ProxyNet(net): ProxyNet) -> Self {
        if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
    }
}

impl TrustedProxies {
    /// Returns whether the address belongs to a proxy.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|ProxyNet(net)| net.contains(&address))
    }

    /// Returns the client of a request whose peer is a proxy, or `None` if the peer is not one.
    ///
    /// The client is the last address in `X-Forwarded-For` that is not a proxy. Clients can write the part of the list
    /// before it, so that part counts for nothing. An entry that is not an address ends the search at the proxy behind it.
    pub(crate) fn client(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        if self.0.is_empty() {
            return None;
        }
        let mut nearest = peer.filter(|peer| self.contain(*peer))?;
        let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let entries = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(',').map(address));
        for entry in entries {
            let Some(address) = entry else { break };
            nearest = address;
            if !self.contain(address) {
                break;
            }
        }
        Some(nearest)
    }
}

/// Reads an entry: an address, with or without a port. An IPv6 address with a port is in brackets.
fn address(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let bare = || entry.parse::<IpAddr>().ok();
    let with_port = || entry.parse::<std::net::SocketAddr>().ok().map(|socket| socket.ip());
    let bracketed = || entry.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    bare().or_else(with_port).or_else(bracketed).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn proxies(nets: &[&str]) -> TrustedProxies {
        TrustedProxies(nets.iter().map(|net| net.parse().unwrap()).collect())
    }

    fn forwarded(lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (X_FORWARDED_FOR, HeaderValue::from_str(line).unwrap())).collect()
    }

    fn client(nets: &[&str], peer: &str, lines: &[&str]) -> Option<String> {
        proxies(nets).client(Some(peer.parse().unwrap()), &forwarded(lines)).map(|address| address.to_string())
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_proxy() {
        let nets = &["10.0.0.0/8", "::1"];
        let cases: &[(&[&str], &str)] = &[
            (&["192.0.2.1"], "192.0.2.1"),
            (&["192.0.2.1, 10.0.0.9"], "192.0.2.1"),
            (&["198.51.100.7, 192.0.2.1, 10.0.0.9"], "192.0.2.1"),
            (&["192.0.2.1", "10.0.0.9"], "192.0.2.1"),
            (&["192.0.2.1, 10.0.0.9", "203.0.113.5"], "203.0.113.5"),
            (&[" 192.0.2.1:4711 ,10.0.0.9:80"], "192.0.2.1"),
            (&["[2001:db8::1]:443"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["::ffff:192.0.2.1"], "192.0.2.1"),
        ];
        for (lines, expected) in cases {
            assert_eq!(client(nets, "10.0.0.1", lines).as_deref(), Some(*expected), "{lines:?}");
        }
        assert_eq!(client(nets, "::ffff:10.0.0.1", &["192.0.2.1"]).as_deref(), Some("192.0.2.1"), "a mapped peer");
    }

    #[test]
    fn a_list_without_a_client_gives_the_proxy_that_is_farthest_away() {
        let nets = &["10.0.0.0/8"];
        assert_eq!(client(nets, "10.0.0.1", &[]).as_deref(), Some("10.0.0.1"));
        assert_eq!(client(nets, "10.0.0.1", &["10.0.0.3, 10.0.0.2"]).as_deref(), Some("10.0.0.3"));
        for unreadable in ["unknown", "", "192.0.2.1, unknown", "192.0.2.1,", "_hidden", "192.0.2.1, 1.2.3"] {
            assert_eq!(client(nets, "10.0.0.1", &[unreadable]).as_deref(), Some("10.0.0.1"), "{unreadable:?}");
        }
        assert_eq!(client(nets, "10.0.0.1", &["192.0.2.1, unknown, 10.0.0.2"]).as_deref(), Some("10.0.0.2"));
    }

    #[test]
    fn a_peer_that_is_not_a_proxy_is_not_believed() {
        assert_eq!(client(&["10.0.0.0/8"], "192.0.2.9", &["198.51.100.7"]), None);
        assert_eq!(client(&[], "127.0.0.1", &["198.51.100.7"]), None);
        assert_eq!(proxies(&["10.0.0.0/8"]).client(None, &forwarded(&["198.51.100.7"])), None);
    }

    #[test]
    fn an_address_and_a_network_are_read_and_written_in_one_spelling() {
        for text in ["10.0.0.7", "10.1.0.0/16", "2001:db8::/32", "::1"] {
            assert_eq!(String::from(text.parse::<ProxyNet>().unwrap()), text);
        }
        for wrong in ["10.0.0.0/33", "balancer.example", "", "10.0.0"] {
            assert!(wrong.parse::<ProxyNet>().unwrap_err().contains("an address or a network"), "{wrong}");
        }
    }
}
