//! Host names as the operator writes them in the allow and deny lists.

use std::fmt;
use std::net::IpAddr;

use url::Host;

use super::address::canonical;
use super::fault::OutboundFault;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostPattern {
    Name(String),
    /// Every name below this one, not the name itself.
    Below(String),
    Address(IpAddr),
}

impl HostPattern {
    fn parse(text: &str) -> Result<Self, String> {
        let (below, name) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        if let Ok(address) = name.parse::<IpAddr>() {
            return if below {
                Err(format!("{text:?} puts a star before an address"))
            } else {
                Ok(Self::Address(canonical(address)))
            };
        }
        match Host::parse(name) {
            Ok(Host::Domain(name)) if name.split('.').all(|label| !label.is_empty() && label != "*") => {
                Ok(if below { Self::Below(name) } else { Self::Name(name) })
            }
            Ok(Host::Ipv4(address)) if !below => Ok(Self::Address(address.into())),
            Ok(Host::Ipv6(address)) if !below => Ok(Self::Address(canonical(address.into()))),
            _ => Err(format!("{text:?} is not a host name")),
        }
    }

    /// `name` is in the form the URL parser gives: lower case, punycode, no trailing dot.
    pub(super) fn covers(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Below(parent) => name.strip_suffix(parent.as_str()).is_some_and(|head| head.len() > 1 && head.ends_with('.')),
            Self::Address(_) => false,
        }
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(*address),
            _ => None,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Below(parent) => write!(f, "*.{parent}"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

pub(super) fn patterns(setting: &'static str, texts: &[String], faults: &mut Vec<OutboundFault>) -> Vec<HostPattern> {
    let mut patterns = Vec::with_capacity(texts.len());
    for text in texts {
        match HostPattern::parse(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(fault) => faults.push(OutboundFault::new(setting, fault)),
        }
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_covers_itself_and_a_star_covers_what_is_below() {
        let name = HostPattern::parse("Hooks.Example.com.").unwrap();
        assert!(name.covers("hooks.example.com"));
        assert!(!name.covers("a.hooks.example.com"));
        assert!(!name.covers("xhooks.example.com"));
        let below = HostPattern::parse("*.example.com").unwrap();
        assert!(below.covers("a.example.com") && below.covers("a.b.example.com"));
        assert!(!below.covers("example.com") && !below.covers("badexample.com") && !below.covers(".example.com"));
    }

    #[test]
    fn what_is_no_host_name_is_refused() {
        for text in ["", "*", "*.", "a b", "https://a", "a/b", "a..b", "a.*.b", "*.10.0.0.1", "a:80"] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }
}
