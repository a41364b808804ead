//! The one guarded way out: every address we did not choose ourselves is checked before, at and after the dial.

mod address;
mod answer;
mod bad_port;
mod client;
mod config;
mod connect;
mod dial;
mod error;
mod fault;
mod host;
mod pinned;
mod prompt;
mod proxy;
mod slim;
mod target;
mod tls;
mod way_out;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use url::{Host, Url};

pub use address::{AddressClass, canonical, is_public, standing};
pub use answer::GuardedBody;
pub use bad_port::is_bad_port;
pub(crate) use client::reason;
pub use client::{Fetch, Fetched, GuardedClient, StreamedResponse};
pub use config::GuardConfig;
pub use connect::{Connector, DialedAddress, GuardedConnection};
pub use dial::{Dial, Dialled, Resolve, Stream, SystemDialer, SystemResolver};
pub use error::{Blocked, ConnectStage, GuardError, Outer, Whole};
pub use fault::OutboundFault;
pub use ipnet::IpNet;
pub use slim::{SlimWay, as_web};
pub use target::{GuardedTarget, TargetHost, check_url};
pub use way_out::WayOut;

use host::HostPattern;
use proxy::EgressProxy;
use tls::TlsTrust;

use crate::terms::ConnectionTerms;

/// The rules of one way out. Cheap to clone; all clones share the same rules.
#[derive(Clone, Debug)]
pub struct Guard {
    rules: Arc<Rules>,
}

#[derive(Clone, Debug)]
struct Rules {
    config: GuardConfig,
    allow_hosts: Vec<HostPattern>,
    deny_hosts: Vec<HostPattern>,
    own: Vec<(Host, u16)>,
    proxy: Option<EgressProxy>,
    trust: TlsTrust,
    /// Ports that belong to other protocols may be called too.
    any_port: bool,
    resolver: Arc<dyn Resolve>,
    dialer: Arc<dyn Dial>,
}

impl Guard {
    /// `own_origins` are the addresses under which we ourselves are reached: calling them would be a loop.
    pub fn new(config: GuardConfig, own_origins: &[Url]) -> Result<Self, Vec<OutboundFault>> {
        Self::with_ports(config, own_origins, Arc::new(SystemResolver), Arc::new(SystemDialer))
    }

    /// The same with another resolver and dialer.
    pub fn with_ports(
        config: GuardConfig,
        own_origins: &[Url],
        resolver: Arc<dyn Resolve>,
        dialer: Arc<dyn Dial>,
    ) -> Result<Self, Vec<OutboundFault>> {
        let mut faults = config.faults();
        let allow_hosts = host::patterns("allow_hosts", &config.allow_hosts, &mut faults);
        let deny_hosts = host::patterns("deny_hosts", &config.deny_hosts, &mut faults);
        if let Some(literal) = allow_hosts.iter().find(|pattern| pattern.address().is_some()) {
            faults.push(OutboundFault::new("allow_hosts", format!("{literal} is an address: write it in allow_nets")));
        }
        let proxy = config.proxy.as_ref().and_then(|url| EgressProxy::new(url).map_err(|fault| faults.push(fault)).ok());
        let trust = TlsTrust::new(config.ca_file.as_deref()).map_err(|fault| faults.push(fault)).ok();
        let own = own_origins.iter().filter_map(own_origin).collect();
        match trust {
            Some(trust) if faults.is_empty() => {
                let rules = Rules { config, allow_hosts, deny_hosts, own, proxy, trust, any_port: false, resolver, dialer };
                Ok(Self { rules: Arc::new(rules) })
            }
            _ => Err(faults),
        }
    }

    /// The same rules with another patience for finding and reaching an address.
    pub fn connecting_within(&self, connect: std::time::Duration) -> Self {
        let mut rules = Rules::clone(&self.rules);
        rules.config.connect_ms = u64::try_from(connect.as_millis()).unwrap_or(u64::MAX);
        Self { rules: Arc::new(rules) }
    }

    /// The same rules for an operator who typed the address and may mean any port, shows a certificate, or believes other servers
    /// than the system does.
    pub(crate) fn on_terms(&self, terms: &ConnectionTerms) -> Result<Self, rustls::Error> {
        let mut rules = Rules::clone(&self.rules);
        (rules.trust, rules.any_port) = (TlsTrust::of(terms)?, true);
        Ok(Self { rules: Arc::new(rules) })
    }

    /// Whether a server asked for a certificate while there was none to show.
    pub(crate) fn was_asked_for_certificate(&self) -> bool {
        self.rules.trust.was_asked_in_vain()
    }

    /// Returns the settings.
    pub fn config(&self) -> &GuardConfig {
        &self.rules.config
    }

    /// What may be called and what was normalised on the way; see [`check_url`].
    pub fn check(&self, url: &str) -> Result<GuardedTarget, Blocked> {
        check_url(url, self)
    }

    /// For HTTP/1.1 and HTTP/2, whichever the other side picks.
    pub fn connector(&self) -> Connector {
        Connector::new(self.clone(), false)
    }

    /// For gRPC: HTTP/2 and nothing else.
    pub fn h2_connector(&self) -> Connector {
        Connector::new(self.clone(), true)
    }

    /// Makes an HTTP client whose calls pass this guard.
    pub fn client(&self) -> GuardedClient {
        GuardedClient::new(self.clone())
    }

    fn allows_host(&self, name: &str) -> bool {
        self.rules.allow_hosts.iter().any(|pattern| pattern.covers(name))
    }

    fn denies_host(&self, name: &str) -> bool {
        self.rules.deny_hosts.iter().any(|pattern| pattern.covers(name))
    }

    fn is_own(&self, host: &Host<&str>, port: u16) -> bool {
        self.rules.own.iter().any(|(own, own_port)| *own_port == port && own == host)
    }

    /// Whether `address` may be dialled for `target`. Denials win over allowances.
    fn permits(&self, target: &GuardedTarget, address: IpAddr) -> Result<(), Blocked> {
        let address = canonical(address);
        let refused = Blocked::Address(address);
        if self.rules.deny_hosts.iter().any(|pattern| pattern.address() == Some(address)) {
            return Err(refused);
        }
        let literal = match address {
            IpAddr::V4(v4) => Host::Ipv4(v4),
            IpAddr::V6(v6) => Host::Ipv6(v6),
        };
        if self.is_own(&literal, target.port()) {
            return Err(Blocked::OwnOrigin);
        }
        if self.rules.config.allow_nets.iter().any(|net| net.contains(&address)) {
            return Ok(());
        }
        match (standing(address), target.is_allowed_host()) {
            (AddressClass::Public, true) | (AddressClass::Private, true) => Ok(()),
            (AddressClass::Public, false) if target.is_tls() => Ok(()),
            _ => Err(refused),
        }
    }
}

/// The peer address that the dialer reports: it must be the very address that was checked, so no second
/// judgement is needed.
fn confirm(dialled: SocketAddr, peer: SocketAddr) -> Result<(), Blocked> {
    match (canonical(peer.ip()), peer.port()) == (canonical(dialled.ip()), dialled.port()) {
        true => Ok(()),
        false => Err(Blocked::PeerChanged { dialled, peer }),
    }
}

fn own_origin(url: &Url) -> Option<(Host, u16)> {
    let host = match url.host()? {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(name).to_owned()),
        Host::Ipv4(address) => Host::Ipv4(address),
        Host::Ipv6(address) => match canonical(IpAddr::V6(address)) {
            IpAddr::V4(v4) => Host::Ipv4(v4),
            IpAddr::V6(v6) => Host::Ipv6(v6),
        },
    };
    Some((host, url.port_or_known_default()?))
}
