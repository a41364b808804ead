//! From text to a target: parsed once, normalised, and refused where the text itself already says no.

use std::net::IpAddr;

use url::{Host, Url};

use super::address::canonical;
use super::bad_port::is_bad_port;
use super::{Blocked, Guard};

/// A URL that may be called, as far as its text tells. The addresses of a name are judged when it is dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedTarget {
    url: Url,
    host: TargetHost,
    port: u16,
    allowed_host: bool,
}

/// The host of a URL: a name or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetHost {
    /// A name, which is resolved.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl GuardedTarget {
    /// The normalised URL: no trailing dot, no default port.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the host.
    pub fn host(&self) -> &TargetHost {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether the operator named the host in `allow_hosts`.
    pub fn is_allowed_host(&self) -> bool {
        self.allowed_host
    }
}

/// Names that never mean a host somewhere else. The address rules would stop them too, but only after a look-up.
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "localhost.localdomain",
    "localhost6",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
    "broadcasthost",
    "metadata",
    "metadata.goog",
    "metadata.google.internal",
    "instance-data",
    "instance-data.ec2.internal",
];

const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

/// Checks everything that needs no network: this is also what a registration runs.
pub fn check_url(text: &str, guard: &Guard) -> Result<GuardedTarget, Blocked> {
    let config = guard.config();
    if text.len() > config.url_bytes {
        return Err(Blocked::TooLong(config.url_bytes));
    }
    // The parser drops tabs and line ends, trims spaces and turns backslashes round. Two readers of such a URL may see two hosts.
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(Blocked::Character);
    }
    check_authority(text)?;
    let mut url = Url::parse(text).map_err(|fault| Blocked::Malformed(fault.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Blocked::Userinfo);
    }
    if url.fragment().is_some() {
        return Err(Blocked::Fragment);
    }
    if url.as_str().len() > config.url_bytes {
        return Err(Blocked::TooLong(config.url_bytes));
    }
    let host = normalised_host(&mut url)?;
    let port = url.port_or_known_default().ok_or(Blocked::Scheme)?;
    if is_bad_port(port) && !guard.rules.any_port {
        return Err(Blocked::Port(port));
    }
    judge(guard, url, host, port)
}

/// The raw text must be `scheme://authority…` with nothing clever in the authority: the parser would forgive more than we want.
fn check_authority(text: &str) -> Result<(), Blocked> {
    let (scheme, rest) = text.split_once(':').ok_or_else(|| Blocked::Malformed("it has no scheme".to_owned()))?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return Err(Blocked::Scheme);
    }
    let rest = rest.strip_prefix("//").ok_or_else(|| Blocked::Malformed("no // after the scheme".to_owned()))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(Blocked::Malformed("it has no host".to_owned()));
    }
    if authority.contains('@') {
        return Err(Blocked::Userinfo);
    }
    if authority.contains('%') {
        return Err(Blocked::Malformed("the host is percent-encoded".to_owned()));
    }
    Ok(())
}

fn normalised_host(url: &mut Url) -> Result<TargetHost, Blocked> {
    let dotted = match url.host() {
        Some(Host::Domain(name)) => name.strip_suffix('.').map(str::to_owned),
        _ => None,
    };
    if let Some(name) = dotted {
        url.set_host(Some(&name)).map_err(|fault| Blocked::Malformed(fault.to_string()))?;
    }
    match url.host() {
        Some(Host::Ipv4(address)) => Ok(TargetHost::Address(address.into())),
        Some(Host::Ipv6(address)) => Ok(TargetHost::Address(canonical(address.into()))),
        Some(Host::Domain(name)) => {
            let well_formed =
                name.len() <= NAME_BYTES && name.split('.').all(|label| !label.is_empty() && label.len() <= LABEL_BYTES);
            match well_formed {
                true => Ok(TargetHost::Name(name.to_owned())),
                false => Err(Blocked::Malformed("the host is not a name".to_owned())),
            }
        }
        None => Err(Blocked::Malformed("it has no host".to_owned())),
    }
}

fn judge(guard: &Guard, url: Url, host: TargetHost, port: u16) -> Result<GuardedTarget, Blocked> {
    let config = guard.config();
    let plain = url.scheme() == "http";
    match host {
        TargetHost::Address(address) => {
            let target = GuardedTarget { url, host, port, allowed_host: false };
            if plain && !config.allow_http {
                return Err(Blocked::Plain);
            }
            guard.permits(&target, address)?;
            Ok(target)
        }
        TargetHost::Name(ref name) => {
            if guard.denies_host(name) {
                return Err(Blocked::Host(name.clone()));
            }
            if guard.is_own(&Host::Domain(name.as_str()), port) {
                return Err(Blocked::OwnOrigin);
            }
            let allowed_host = guard.allows_host(name);
            let local = LOCAL_NAMES.contains(&name.as_str()) || name.ends_with(".localhost");
            if local && !allowed_host && config.allow_nets.is_empty() {
                return Err(Blocked::Host(name.clone()));
            }
            // A name that is not allowed itself may still resolve into an allowed net.
            if plain && !(config.allow_http && (allowed_host || !config.allow_nets.is_empty())) {
                return Err(Blocked::Plain);
            }
            Ok(GuardedTarget { url, host, port, allowed_host })
        }
    }
}
