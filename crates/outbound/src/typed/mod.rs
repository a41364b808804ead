//! An address that an operator typed on the command line, and the guards that calls from there go through.

mod agent;
mod card;

use std::net::IpAddr;

use url::{Host, Url};

use crate::error::CallError;
use crate::guard::{Guard, GuardConfig, as_web};
use crate::terms::ConnectionTerms;

pub use self::agent::{TypedAgent, WantedInterface};
pub use self::card::FetchedCard;

const EXPECTED: &str = "an http, https, swp or swps URL with a host";
const CONNECT_MS: u64 = 5_000;
const TLS_MS: u64 = 10_000;

/// A typed address is allowed, whichever address it resolves to. Other hosts, which a card may name, have to
/// be public and are called with TLS.
#[derive(Clone, Debug)]
pub struct TypedUrl {
    url: Url,
    terms: ConnectionTerms,
    /// For the host that was typed.
    own: Guard,
    /// For every other one.
    others: Guard,
    /// Calls go to this host alone, regardless of the card.
    stays_here: bool,
}

impl TypedUrl {
    /// With and without a slash at the end.
    pub fn new(text: &str, terms: ConnectionTerms) -> Result<Self, CallError> {
        let bad = || CallError::BadUrl { url: text.to_owned(), expected: EXPECTED };
        let mut url = Url::parse(text.trim_end_matches('/')).map_err(|_| bad())?;
        url.set_fragment(None);
        let web = match url.scheme() {
            "http" | "https" => Some(url.clone()),
            _ => as_web(url.as_str()),
        };
        let web = web.filter(Url::has_host).ok_or_else(bad)?;
        if !url.username().is_empty() || url.password().is_some() {
            let reason = "the URL holds a user name or password; show a key with --key-env or --key-file instead";
            return Err(CallError::Credentials { reason: reason.to_owned() });
        }
        let allow_hosts = web.host().and_then(|host| if let Host::Domain(name) = host { Some(name.to_owned()) } else { None });
        let others = GuardConfig { connect_ms: CONNECT_MS, tls_ms: TLS_MS, ..GuardConfig::default() };
        let own = GuardConfig {
            allow_nets: ["0.0.0.0/0", "::/0"].iter().filter_map(|net| net.parse().ok()).collect(),
            allow_hosts: allow_hosts.into_iter().collect(),
            allow_http: web.scheme() == "http",
            ..others.clone()
        };
        let (own, others) = (guard(own, &terms)?, guard(others, &terms)?);
        Ok(Self { url, terms, own, others, stays_here: false })
    }

    /// The same for a server that is known already, such as the node on this machine: its card leads to no other host.
    #[must_use]
    pub fn staying_here(self) -> Self {
        Self { stays_here: true, ..self }
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    pub fn terms(&self) -> &ConnectionTerms {
        &self.terms
    }

    /// Whether this is a server on the same machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.url)
    }

    /// Whether what goes there can be read on the way.
    pub fn is_plain(&self) -> bool {
        matches!(self.url.scheme(), "http" | "swp")
    }

    /// Whether an address is at the host that was typed, by any spelling of the loopback and at any port.
    pub fn is_at_same_host(&self, address: &str) -> bool {
        let text = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        Url::parse(&text).is_ok_and(|url| host_of(&url) == host_of(&self.url) || (is_loopback(&url) && self.is_loopback()))
    }

    /// The guard for an address.
    pub fn guard_for(&self, address: &str) -> &Guard {
        if self.is_at_same_host(address) { &self.own } else { &self.others }
    }

    /// The guard for the host that was typed.
    pub(crate) fn guard(&self) -> &Guard {
        &self.own
    }

    /// The URL with a path added to it; segments may hold any characters.
    pub(crate) fn at<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }
}

fn guard(config: GuardConfig, terms: &ConnectionTerms) -> Result<Guard, CallError> {
    let unusable = |fault: String| CallError::Credentials { reason: format!("the connection cannot be set up: {fault}") };
    let joined = |faults: Vec<crate::guard::OutboundFault>| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let guard = Guard::new(config, &[]).map_err(|faults| unusable(joined(faults)))?;
    guard.on_terms(terms).map_err(|fault| unusable(fault.to_string()))
}

/// In lower case; schemes that the URL parser does not know keep what was typed.
fn host_of(url: &Url) -> Option<String> {
    url.host_str().map(str::to_ascii_lowercase)
}

fn is_loopback(url: &Url) -> bool {
    let host = host_of(url).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(url: &str) -> Result<TypedUrl, CallError> {
        TypedUrl::new(url, ConnectionTerms::default())
    }

    #[test]
    fn segments_are_added_whatever_they_hold() {
        for url in ["http://h/a", "http://h/a/"] {
            assert_eq!(typed(url).unwrap().at(["b", "c/d ?"]).as_str(), "http://h/a/b/c%2Fd%20%3F");
        }
        assert_eq!(typed("http://h").unwrap().at(["x"]).as_str(), "http://h/x");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in ["", "h:1", "ftp://h", "127.0.0.1:7420", "swp:h"] {
            assert!(matches!(typed(url), Err(CallError::BadUrl { .. })), "{url}");
        }
        assert!(matches!(typed("https://me:secret@h"), Err(CallError::Credentials { .. })));
        assert!(typed("swps://h:1/a").is_ok());
    }

    #[test]
    fn the_loopback_is_known_by_all_its_names() {
        for (url, loopback) in [
            ("http://localhost:1", true),
            ("swp://127.0.0.9", true),
            ("http://[::1]:1", true),
            ("http://example.org", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(typed(url).unwrap().is_loopback(), loopback, "{url}");
        }
    }

    #[test]
    fn the_host_that_was_typed_is_allowed_at_every_port_and_no_other_private_one_is() {
        let allowed = |typed_url: &str, url: &str| typed(typed_url).unwrap().guard_for(url).check(url).is_ok();
        for (typed, url) in [
            ("http://127.0.0.1:9001", "http://127.0.0.1:9002/"),
            ("http://127.0.0.1:9001", "http://localhost:1/"),
            ("http://10.0.0.1", "http://10.0.0.1:6000/"),
            ("http://build.internal", "http://build.internal:8080/"),
            ("https://agent.example.org", "https://calls.example.org/"),
            ("swp://10.0.0.1:7777", "http://10.0.0.1:7777/"),
        ] {
            assert!(allowed(typed, url), "{typed} {url}");
        }
        for (typed, url) in [
            ("http://127.0.0.1:9001", "http://10.0.0.1:9001/"),
            ("https://agent.example.org", "http://127.0.0.1:9001/"),
            ("https://agent.example.org", "http://agent.example.org/"),
            ("https://agent.example.org", "http://169.254.169.254/"),
            ("https://agent.example.org", "http://calls.example.org/"),
        ] {
            assert!(!allowed(typed, url), "{typed} {url}");
        }
    }
}
