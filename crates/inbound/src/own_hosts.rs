//! Which hosts are the node's own, so that a card can name the host its client used and never a made-up one.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use http::Version;
use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, Scheme, Uri};

/// Where a card says that its agent is: an origin, and the path in front of all paths there. Without a slash at its end.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CardBase {
    url: Arc<str>,
    /// It is below the address of an agent, which is a secret of that agent.
    secret: bool,
}

impl fmt::Debug for CardBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl CardBase {
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').into(), secret: false }
    }

    /// The same below the address of an agent.
    pub(crate) fn via(&self, secret: &str) -> Self {
        Self { url: format!("{}/via/{secret}", self.url).into(), secret: true }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.url
    }

    pub(crate) fn is_secret(&self) -> bool {
        self.secret
    }

    /// For logs.
    pub(crate) fn shown(&self) -> &str {
        if self.secret { "/via/…" } else { &self.url }
    }

    pub(crate) fn jwks_url(&self) -> String {
        format!("{}/.well-known/jwks.json", self.url)
    }

    /// The same address below another base. An address that is not below this one stays as it is.
    pub(crate) fn moved(&self, url: &str, to: &Self) -> String {
        match url.strip_prefix(&*self.url) {
            Some(path) if path.is_empty() || path.starts_with('/') => format!("{}{path}", to.url),
            // Targets of gRPC libraries are host and port, without a scheme.
            _ if self.target().is_some_and(|target| target == url) => to.target().unwrap_or_else(|| url.to_owned()),
            _ => url.to_owned(),
        }
    }

    /// `host:port`, as gRPC libraries dial it.
    fn target(&self) -> Option<String> {
        let uri: Uri = self.url.parse().ok()?;
        Some(format!("{}:{}", uri.host()?, port_of(&uri)?))
    }
}

fn port_of(uri: &Uri) -> Option<u16> {
    let by_scheme = || match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => Some(80),
        Some(scheme) if *scheme == Scheme::HTTPS => Some(443),
        _ => None,
    };
    uri.port_u16().or_else(by_scheme)
}

/// How the node can be addressed beside its public URL.
#[derive(Clone, Debug)]
pub(crate) struct OwnHosts {
    public: CardBase,
    /// Whether the public URL is for this machine alone.
    public_is_local: bool,
    listen: IpAddr,
    scheme: &'static str,
}

/// What proxies add to the requests they forward.
const ADDED_BY_PROXIES: [&str; 6] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

impl OwnHosts {
    pub(crate) fn new(public_url: &str, listen: IpAddr, tls: bool) -> Self {
        let public: Option<Uri> = public_url.parse().ok();
        // A proxy on this machine may add TLS: then its public URL says so, and the listener does not.
        let local = public.filter(|uri| uri.host().is_some_and(is_loopback));
        let https = local.as_ref().map_or(tls, |uri| uri.scheme() == Some(&Scheme::HTTPS));
        let scheme = if https { "https" } else { "http" };
        Self { public: CardBase::new(public_url), public_is_local: local.is_some(), listen, scheme }
    }

    pub(crate) fn public(&self) -> &CardBase {
        &self.public
    }

    /// The base of cards for a request that came to one of the node's own addresses. `None` means the public
    /// URL: the request came there, or its host is unknown.
    pub(crate) fn base_of(&self, head: &Parts) -> Option<CardBase> {
        // Many proxies put the address they dial in the place of the host their client used: nothing local is said to that client.
        if !self.public_is_local && is_forwarded(head) {
            return None;
        }
        let in_header = || head.headers.get(HOST).and_then(|value| value.to_str().ok());
        let named: Authority = head.uri.authority().map(Authority::as_str).or_else(in_header)?.parse().ok()?;
        if named.as_str().contains('@') || !self.is_own(named.host()) {
            return None;
        }
        let base = CardBase::new(&format!("{}://{}", self.scheme, named.as_str().to_ascii_lowercase()));
        let is_public = self.public.target().is_some() && self.public.target() == base.target();
        (!is_public).then_some(base)
    }

    fn is_own(&self, host: &str) -> bool {
        if is_loopback(host) {
            return self.listen.is_loopback() || self.listen.is_unspecified();
        }
        !self.listen.is_unspecified() && address(host) == Some(self.listen)
    }
}

fn is_forwarded(head: &Parts) -> bool {
    // nginx forwards with HTTP/1.0 and adds nothing, if it is not told otherwise.
    head.version == Version::HTTP_10 || ADDED_BY_PROXIES.iter().any(|name| head.headers.contains_key(*name))
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || address(host).is_some_and(|address| address.is_loopback())
}

/// An IP address as hosts are written: an IPv6 one in brackets.
pub(crate) fn address(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(v6) => v6.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn base(own: &OwnHosts, host: &str) -> Option<String> {
        let head = Request::get("/").header("host", host).body(()).unwrap().into_parts().0;
        own.base_of(&head).map(|base| base.as_str().to_owned())
    }

    #[test]
    fn loopback_spellings_are_own_hosts_as_they_were_typed() {
        let own = OwnHosts::new("http://127.0.0.1:7420", [127, 0, 0, 1].into(), false);
        for (typed, said) in [
            ("localhost:7420", "http://localhost:7420"),
            ("LocalHost:8080", "http://localhost:8080"),
            ("localhost", "http://localhost"),
            ("[::1]:7420", "http://[::1]:7420"),
            ("127.9.9.9:7420", "http://127.9.9.9:7420"),
        ] {
            assert_eq!(base(&own, typed).as_deref(), Some(said), "{typed}");
        }
        assert_eq!(base(&own, "127.0.0.1:7420"), None, "the public URL itself");
    }

    #[test]
    fn hosts_that_are_not_ours_are_never_repeated() {
        let own = OwnHosts::new("http://127.0.0.1:7420", [127, 0, 0, 1].into(), false);
        let elsewhere = OwnHosts::new("https://agents.example", [10, 0, 0, 5].into(), true);
        for foreign in
            ["evil.example", "localhost.evil.example", "u@localhost:1", "10.0.0.5", "", "a b", "127.0.0.1.evil:1", "0.0.0.0"]
        {
            assert_eq!(base(&own, foreign), None, "{foreign}");
        }
        assert_eq!(base(&elsewhere, "localhost:7420"), None, "not reachable over the loopback");
        assert_eq!(base(&elsewhere, "agents.example"), None, "the public URL itself");
        assert_eq!(base(&elsewhere, "10.0.0.5:7420").as_deref(), Some("https://10.0.0.5:7420"));
    }

    #[test]
    fn a_listener_on_every_address_is_reached_over_the_loopback_in_its_own_scheme() {
        let behind_proxy = OwnHosts::new("https://agents.example", [0, 0, 0, 0].into(), false);
        assert_eq!(base(&behind_proxy, "localhost:7420").as_deref(), Some("http://localhost:7420"));
        let with_tls = OwnHosts::new("https://agents.example", Ipv6Addr::UNSPECIFIED.into(), true);
        assert_eq!(base(&with_tls, "localhost:7420").as_deref(), Some("https://localhost:7420"));
        let local_proxy = OwnHosts::new("https://localhost:8443", [127, 0, 0, 1].into(), false);
        assert_eq!(base(&local_proxy, "127.0.0.1:8443").as_deref(), Some("https://127.0.0.1:8443"));
    }

    #[test]
    fn what_a_proxy_forwards_gets_the_public_card() {
        let public = OwnHosts::new("https://agents.example", [127, 0, 0, 1].into(), false);
        let head = |name: &str, version| {
            let request = Request::get("/").version(version).header("host", "127.0.0.1:7420").header(name, "x");
            request.body(()).unwrap().into_parts().0
        };
        assert!(public.base_of(&head("accept", Version::HTTP_11)).is_some());
        assert!(public.base_of(&head("accept", Version::HTTP_10)).is_none());
        for name in ADDED_BY_PROXIES {
            assert!(public.base_of(&head(name, Version::HTTP_11)).is_none(), "{name}");
        }
        let local = OwnHosts::new("http://localhost:7420", [127, 0, 0, 1].into(), false);
        assert!(local.base_of(&head("via", Version::HTTP_11)).is_some(), "nothing public is there to be said");
    }

    #[test]
    fn addresses_move_with_their_base_and_others_stay() {
        let (from, to) = (CardBase::new("https://h/deep/"), CardBase::new("http://localhost:1/via/x"));
        for (url, moved) in [
            ("https://h/deep", "http://localhost:1/via/x"),
            ("https://h/deep/agents/a", "http://localhost:1/via/x/agents/a"),
            ("https://h/deeper", "https://h/deeper"),
            ("https://other/deep", "https://other/deep"),
            ("h:443", "localhost:1"),
            ("h:444", "h:444"),
            ("swp://h:1", "swp://h:1"),
        ] {
            assert_eq!(from.moved(url, &to), moved);
        }
    }
}
