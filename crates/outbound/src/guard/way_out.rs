//! The guard for calls to one configured agent. The config entry allows the agent's own address, and no
//! other.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

use super::{Guard, GuardConfig, as_web};

/// Two guards: one for the addresses an operator wrote down, one for everything a card may say.
#[derive(Clone, Debug)]
pub struct WayOut {
    written_down: Vec<Url>,
    trusted: Guard,
    strict: Guard,
}

impl WayOut {
    pub fn new(config: &GuardConfig, urls: &[Url], own_origins: &[Url]) -> Result<Self, String> {
        let mut widened = config.clone();
        let urls: Vec<Url> = urls.iter().map(|url| as_web(url.as_str()).unwrap_or_else(|| url.clone())).collect();
        for url in &urls {
            match url.host() {
                Some(Host::Ipv4(address)) => widened.allow_nets.push(IpNet::from(IpAddr::from(address))),
                Some(Host::Ipv6(address)) => widened.allow_nets.push(IpNet::from(IpAddr::from(address))),
                Some(Host::Domain(name)) => widened.allow_hosts.push(name.to_owned()),
                None => return Err(format!("{url} has no host")),
            }
            widened.allow_http |= url.scheme() == "http";
        }
        let guard = |config: GuardConfig| {
            Guard::new(config, own_origins)
                .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        };
        Ok(Self { written_down: urls, trusted: guard(widened)?, strict: guard(config.clone())? })
    }

    /// The guard for an address: wide for exactly the origins that were written down.
    pub fn guard_for(&self, url: &str) -> &Guard {
        let origin = as_web(url).or_else(|| Url::parse(url).ok()).map(|url| url.origin());
        let known = origin.is_some_and(|origin| self.written_down.iter().any(|written| written.origin() == origin));
        if known { &self.trusted } else { &self.strict }
    }

    pub fn trusted(&self) -> &Guard {
        &self.trusted
    }

    /// The guard for addresses that are not in the config.
    pub fn strict(&self) -> &Guard {
        &self.strict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_down_is_allowed_for_itself_alone() {
        let url = |text: &str| Url::parse(text).unwrap();
        let way_out =
            WayOut::new(&GuardConfig::default(), &[url("http://127.0.0.1:9001")], &[url("http://127.0.0.1:7420")]).unwrap();
        let allowed = |text: &str| way_out.guard_for(text).check(text).is_ok();
        assert!(allowed("http://127.0.0.1:9001/x"));
        for other in [
            "http://127.0.0.1:9002/",
            "http://127.0.0.2:9001/",
            "http://[::1]:9001/",
            "http://10.0.0.1/",
            "http://127.0.0.1:7420/",
        ] {
            assert!(!allowed(other), "{other}");
        }
        assert!(allowed("https://agent.example.org/"));
    }
}
