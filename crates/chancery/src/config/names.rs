//! Names that the node and its agents are called by: hosts, and tenants that lead to an agent.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The longest tenant that leads to an agent.
const LONGEST_TENANT: usize = 64;

/// What a path begins with that means something else.
const TAKEN: [&str; 8] = ["agents", "admin", "tasks", "v1", "extendedAgentCard", "healthz", "livez", "readyz"];

/// A host by its name, in lower case, with a port if cards are to say one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName {
    name: String,
    port: Option<u16>,
}

impl HostName {
    /// Returns the name without its port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why it cannot be an agent's, if it is the node's.
    pub(crate) fn is_the_nodes_own(&self) -> String {
        format!("the host {self} is the node's own, where all agents are")
    }

    /// The address of this host where the node is else reached at that URL: its own port, or that one's.
    pub(crate) fn beside(&self, public_url: &Url) -> String {
        let port = self.port.or(public_url.port()).map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", public_url.scheme(), self.name)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl TryFrom<String> for HostName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => {
                (name, Some(port.parse().map_err(|_| format!("{port:?} is no port; a host is NAME or NAME:PORT"))?))
            }
            None => (text.as_str(), None),
        };
        match Host::parse(name.trim_end_matches('.')) {
            Ok(Host::Domain(name)) if name == "localhost" => Err("localhost is every machine's own name".to_owned()),
            Ok(Host::Domain(name)) => Ok(Self { name, port }),
            Ok(_) => Err("an agent's host is a name, not an address".to_owned()),
            Err(fault) => Err(format!("{text:?} is no host: {fault}")),
        }
    }
}

impl From<HostName> for String {
    fn from(host: HostName) -> Self {
        host.to_string()
    }
}

/// A host that the node itself answers to: a name, or an address in the form that URLs have it. Every port of it counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeHost(String);

impl NodeHost {
    /// Returns the host as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for NodeHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for NodeHost {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        // An IPv6 address is also meant without the brackets that URLs put around it.
        let host =
            text.parse().map(|address| Ok(Host::Ipv6(address))).unwrap_or_else(|_| Host::parse(text.trim_end_matches('.')));
        match host {
            Ok(_) if text.contains('*') => Err(format!("{text:?}: a host is named whole, without `*`")),
            Ok(host) => Ok(Self(host.to_string())),
            Err(_) if text.contains(':') => Err(format!("{text:?} is no host; leave scheme and port out, every port counts")),
            Err(fault) => Err(format!("{text:?} is no host: {fault}")),
        }
    }
}

impl From<NodeHost> for String {
    fn from(host: NodeHost) -> Self {
        host.0
    }
}

/// A tenant as calls name it, also as a part of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TenantName(String);

impl TenantName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for TenantName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        if !(1..=LONGEST_TENANT).contains(&text.len()) || !text.bytes().all(is_plain) || text.starts_with('.') {
            return Err(format!("a tenant is 1 to {LONGEST_TENANT} of a-z, A-Z, 0-9, -, _, . and ~, and begins with no dot"));
        }
        if TAKEN.contains(&text.as_str()) {
            return Err(format!("paths that begin with {text} mean something else"));
        }
        Ok(Self(text))
    }
}

impl From<TenantName> for String {
    fn from(tenant: TenantName) -> Self {
        tenant.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_with_or_without_a_port() {
        let url = Url::parse("https://node.example:8443/x").unwrap();
        for (text, shown, address) in [
            ("Research.Example", "research.example", "https://research.example:8443"),
            ("research.example.", "research.example", "https://research.example:8443"),
            ("research.example:444", "research.example:444", "https://research.example:444"),
        ] {
            let host = HostName::try_from(text.to_owned()).unwrap();
            assert_eq!((host.to_string().as_str(), host.beside(&url).as_str()), (shown, address));
        }
        for bad in ["", "127.0.0.1", "[::1]", "localhost", "a b", "http://a", "a/b", "a:x", "a:99999", "u@a"] {
            assert!(HostName::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_of_the_node_is_a_name_or_an_address_without_a_port() {
        for (text, kept) in [
            ("Box.Internal", "box.internal"),
            ("box.", "box"),
            ("my_service", "my_service"),
            ("10.1.2.3", "10.1.2.3"),
            ("fd00::1", "[fd00::1]"),
            ("[FD00::1]", "[fd00::1]"),
            ("bücher.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(NodeHost::try_from(text.to_owned()).unwrap().as_str(), kept);
        }
        for bad in ["", "a:1", "http://a", "a/b", "a b", "u@a", "*", "*.example"] {
            assert!(NodeHost::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tenant_can_stand_in_a_path_and_means_nothing_else_there() {
        let longest = "t".repeat(LONGEST_TENANT);
        for good in ["t", "acme-1.eu_~", &longest] {
            assert!(TenantName::try_from(good.to_owned()).is_ok(), "{good}");
        }
        let too_long = "t".repeat(LONGEST_TENANT + 1);
        for bad in ["", "a/b", "a b", "a:b", ".well-known", "tasks", "v1", "agents", "ä", &too_long] {
            assert!(TenantName::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
