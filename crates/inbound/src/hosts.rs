//! Whether a request is meant for this node: the host it names, and the origin of the web page that makes it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use chancery_protocol::{Error, ErrorKind};
use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::{Authority, Uri};
use http::{Method, Version};

use crate::doors::DoorSettings;
use crate::own_hosts;

/// Paths that load balancers and supervisors probe under any name of the node.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/healthz"];

/// A host that a request names, without its port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RequestHost {
    /// In lower case, without a dot at its end.
    Name(String),
    Address(IpAddr),
}

impl RequestHost {
    /// Reads `HOST` or `HOST:PORT`. Anything else, a user in front of it included, is no host.
    fn parse(text: &str) -> Option<Self> {
        if let Some((host, port)) = split_plain(text) {
            return Self::of_parts(host, port);
        }
        let authority: Authority = text.parse().ok()?;
        let host = authority.host();
        Self::of_parts(host, authority.as_str().strip_prefix(host)?)
    }

    /// A host, and what follows it: nothing, or a colon and a port.
    fn of_parts(host: &str, port: &str) -> Option<Self> {
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        let host = host.strip_suffix('.').unwrap_or(host);
        if !is_port || host.split('.').any(str::is_empty) {
            return None;
        }
        let address = own_hosts::address(host).map(|address| Self::Address(address.to_canonical()));
        Some(address.unwrap_or_else(|| Self::Name(host.to_ascii_lowercase())))
    }

    /// The host that a request is sent to. HTTP/1.0 can leave it out, later versions cannot.
    fn of(head: &Parts) -> Result<Option<Self>, Error> {
        let bad = |fault: &'static str| Error::new(ErrorKind::InvalidRequest, fault);
        let mut lines = head.headers.get_all(HOST).iter();
        let line = lines.next();
        if lines.next().is_some() {
            return Err(bad("the request has more than one Host line; send one"));
        }
        let read = |text: Option<&str>| text.and_then(Self::parse).ok_or_else(|| bad("Host is no HOST or HOST:PORT"));
        let in_line = || line.map(|value| read(value.to_str().ok())).transpose();
        match head.uri.authority() {
            Some(target) => {
                let named = read(Some(target.as_str()))?;
                // HTTP/1.1 has a target outrank the line (RFC 9112, 3.2.2). In HTTP/2 they must agree (RFC 9113, 8.3.1).
                if head.version >= Version::HTTP_2 && in_line()?.is_some_and(|other| other != named) {
                    return Err(bad("Host and :authority name different hosts"));
                }
                Ok(Some(named))
            }
            None => match in_line()? {
                None if head.version >= Version::HTTP_11 => Err(bad("the request has no Host line")),
                named => Ok(named),
            },
        }
    }

    fn is_loopback(&self) -> bool {
        match self {
            // Nobody can register a name below `localhost` (RFC 6761): DNS cannot point one elsewhere.
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(address) => address.is_loopback(),
        }
    }
}

/// The hosts that a node answers to, and whose web pages may call it.
#[derive(Clone, Debug)]
pub(crate) struct HostCheck {
    /// The listen address, the public URL and the configured hosts. Loopback names and addresses count beside them.
    own: BTreeSet<RequestHost>,
    /// Whether other hosts are refused: on nodes without authentication. There only the name that a browser
    /// looked up tells a foreign web page from a caller on this machine.
    refuses_others: bool,
    listens_everywhere: bool,
    /// Whether pages of own hosts count only if they came over TLS, so that no attacker on the network can
    /// change them.
    is_https: bool,
}

impl HostCheck {
    pub(crate) fn new(settings: &DoorSettings) -> Self {
        let of_agents = settings.signposts.hosts.keys().map(|host| &**host);
        let named = settings.hosts.iter().map(String::as_str).chain(of_agents);
        let refuses_others = settings.authenticator.is_open() && !settings.every_host;
        Self::of(&settings.public_url, settings.listen, named, refuses_others)
    }

    fn of<'a>(public_url: &str, listen: IpAddr, named: impl Iterator<Item = &'a str>, refuses_others: bool) -> Self {
        let public: Option<Uri> = public_url.parse().ok();
        let public_host = public.as_ref().and_then(|url| url.host()).and_then(RequestHost::parse);
        let listens_everywhere = listen.is_unspecified();
        let listen = (!listens_everywhere).then(|| RequestHost::Address(listen.to_canonical()));
        Self {
            own: named.filter_map(RequestHost::parse).chain(public_host).chain(listen).collect(),
            refuses_others,
            listens_everywhere,
            is_https: public.is_some_and(|url| url.scheme_str() == Some("https")),
        }
    }

    /// Whether hosts that are not the node's own are refused.
    pub(crate) fn refuses_others(&self) -> bool {
        self.refuses_others
    }

    /// Refuses what is not meant for this node, before anything else is done with it.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), Error> {
        let host = RequestHost::of(head)?;
        for origin in head.headers.get_all(ORIGIN) {
            if !origin.to_str().is_ok_and(|origin| self.is_own_origin(origin, host.as_ref())) {
                let message = "web pages of this Origin may not call this node; \
                               to allow them, add their host to `hosts` in the config, or start with --host NAME";
                return Err(Error::new(ErrorKind::OriginNotAllowed, message));
            }
        }
        if !self.refuses_others || host.is_none_or(|host| self.takes(&host)) || is_probe(head) {
            return Ok(());
        }
        let message = "this node has no callers and does not answer to this Host; call it by a loopback name or address, \
                       its listen address or public_url, or add the name to `hosts` in the config (--host NAME)";
        Err(Error::new(ErrorKind::HostNotServed, message))
    }

    fn takes(&self, host: &RequestHost) -> bool {
        // A node that listens at every address cannot list them. DNS has no say in what an address means, so any will do.
        let is_any_address = self.listens_everywhere && matches!(host, RequestHost::Address(_));
        host.is_loopback() || is_any_address || self.own.contains(host)
    }

    /// Whether a page's origin is on a host of this node. The origin of a page that has none to tell is `null`.
    fn is_own_origin(&self, origin: &str, host: Option<&RequestHost>) -> bool {
        let Some((scheme, page)) = origin.split_once("://") else { return false };
        let Some(page) = RequestHost::parse(page) else { return false };
        let is_https = scheme.eq_ignore_ascii_case("https");
        if !is_https && !scheme.eq_ignore_ascii_case("http") {
            return false;
        }
        // The machine that is called by its address has the pages of that address.
        let is_same_address = self.listens_everywhere && matches!(page, RequestHost::Address(_)) && host == Some(&page);
        page.is_loopback() || ((is_https || !self.is_https) && (is_same_address || self.own.contains(&page)))
    }
}

/// Whether a port is written as URIs have it: nothing, or digits. Numbers of Rust may have a sign.
fn is_port(text: &str) -> bool {
    text.is_empty() || (text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok())
}

/// Splits a text in front of its first colon, if only letters, digits, dots and hyphens are there. Most hosts are
/// written so, and need no reader of URIs, which copies them.
fn split_plain(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    host.bytes().all(is_plain).then_some((host, port))
}

fn is_probe(head: &Parts) -> bool {
    (head.method == Method::GET || head.method == Method::HEAD) && PROBES.contains(&head.uri.path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn open(listen: &str) -> HostCheck {
        HostCheck::of("https://agents.example", listen.parse().unwrap(), ["box.internal", "10.1.2.3"].into_iter(), true)
    }

    /// A request for a target, of a version, with these headers.
    fn head(target: &str, version: Version, headers: &[(&str, &str)]) -> Parts {
        let request = Request::get(target).version(version);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(()).unwrap().into_parts().0
    }

    fn judged(check: &HostCheck, head: &Parts) -> Option<ErrorKind> {
        check.check(head).err().map(|error| error.kind)
    }

    #[test]
    fn an_open_node_takes_its_own_hosts_in_every_spelling_and_refuses_the_others() {
        let check = open("127.0.0.1");
        let asked = |host: &str| judged(&check, &head("/", Version::HTTP_11, &[("host", host)]));
        for own in [
            "localhost",
            "LocalHost:1",
            "localhost.:7420",
            "a.localhost",
            "127.0.0.1:7420",
            "127.9.9.9",
            "[::1]:7420",
            "[::1]",
            "[0:0:0:0:0:0:0:1]:7420",
            "[::ffff:127.0.0.1]",
            "localhost:",
            "agents.example",
            "AGENTS.example.:443",
            "box.internal:1",
            "10.1.2.3:7420",
        ] {
            assert_eq!(asked(own), None, "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example:7420",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evillocalhost",
            "0.0.0.0:7420",
            "192.168.1.5",
            "[::]",
            "[fd00::1]:7420",
            "2130706433",
            "127.1",
            "x.agents.example",
            "box.internal.evil",
        ] {
            assert_eq!(asked(foreign), Some(ErrorKind::HostNotServed), "{foreign}");
        }
        for bad in [
            "",
            ":7420",
            "a b",
            "u@localhost",
            "u:p@localhost:1",
            "localhost:x",
            "localhost:99999",
            "localhost:+80",
            "localhost/x",
            "[::1",
            ".localhost",
            "localhost..",
            "a..localhost",
            ".",
        ] {
            assert_eq!(asked(bad), Some(ErrorKind::InvalidRequest), "{bad}");
        }
    }

    #[test]
    fn a_node_at_every_address_takes_any_address_and_no_other_name() {
        for listen in ["0.0.0.0", "::"] {
            let asked = |host: &str| judged(&open(listen), &head("/", Version::HTTP_11, &[("host", host)]));
            for own in ["192.168.1.5:7420", "[fd00::1]", "0.0.0.0:7420", "localhost", "box.internal"] {
                assert_eq!(asked(own), None, "{own}");
            }
            assert_eq!(asked("evil.example"), Some(ErrorKind::HostNotServed));
        }
    }

    #[test]
    fn the_host_is_that_of_the_target_or_of_the_one_line_and_is_there() {
        use ErrorKind::{HostNotServed, InvalidRequest};
        let check = open("127.0.0.1");
        let (own, foreign) = (("host", "localhost:7420"), ("host", "evil.example"));
        for (target, version, headers, expected) in [
            ("/", Version::HTTP_11, &[own, own][..], Some(InvalidRequest)),
            ("/", Version::HTTP_10, &[own, foreign], Some(InvalidRequest)),
            ("/healthz", Version::HTTP_11, &[own, own], Some(InvalidRequest)),
            ("/", Version::HTTP_11, &[], Some(InvalidRequest)),
            ("/", Version::HTTP_2, &[], Some(InvalidRequest)),
            ("/", Version::HTTP_10, &[], None),
            ("/", Version::HTTP_10, &[foreign], Some(HostNotServed)),
            ("http://localhost:7420/", Version::HTTP_11, &[foreign], None),
            ("http://evil.example/", Version::HTTP_11, &[own], Some(HostNotServed)),
            ("http://evil.example/", Version::HTTP_2, &[], Some(HostNotServed)),
            ("http://localhost:7420/", Version::HTTP_2, &[], None),
            ("http://localhost:7420/", Version::HTTP_2, &[("host", "LOCALHOST.")], None),
            ("http://localhost:7420/", Version::HTTP_2, &[foreign], Some(InvalidRequest)),
            ("http://u@localhost:7420/", Version::HTTP_11, &[own], Some(InvalidRequest)),
            ("/readyz", Version::HTTP_11, &[foreign], None),
            ("/readyz/x", Version::HTTP_11, &[foreign], Some(HostNotServed)),
        ] {
            assert_eq!(judged(&check, &head(target, version, headers)), expected, "{version:?} {target} {headers:?}");
        }
        let closed = HostCheck { refuses_others: false, ..check };
        assert_eq!(judged(&closed, &head("/", Version::HTTP_11, &[foreign])), None, "credentials tell callers apart");
        assert_eq!(judged(&closed, &head("/", Version::HTTP_11, &[own, own])), Some(InvalidRequest));
    }

    #[test]
    fn pages_of_own_hosts_may_call_and_others_may_not_on_any_node() {
        let asked = |check: &HostCheck, host: &str, origins: &[&str]| {
            let mut headers = vec![("host", host)];
            headers.extend(origins.iter().map(|origin| ("origin", *origin)));
            judged(check, &head("/healthz", Version::HTTP_11, &headers))
        };
        for refuses_others in [true, false] {
            let check = HostCheck { refuses_others, ..open("127.0.0.1") };
            for own in [
                "http://localhost:3000",
                "https://ui.localhost",
                "http://[::1]:1",
                "HTTPS://Agents.example:8443",
                "https://box.internal",
            ] {
                assert_eq!(asked(&check, "localhost", &[own]), None, "{own}");
            }
            for foreign in [
                "null",
                "",
                "https://evil.example",
                "http://agents.example",
                "https://agents.example.evil",
                "file://",
                "localhost",
                "chrome-extension://localhost",
                "https://u@agents.example",
                "https://agents.example/x",
                "http://192.168.1.5",
            ] {
                assert_eq!(asked(&check, "localhost", &[foreign]), Some(ErrorKind::OriginNotAllowed), "{foreign}");
            }
            let both = ["https://agents.example", "https://evil.example"];
            assert_eq!(asked(&check, "localhost", &both), Some(ErrorKind::OriginNotAllowed));
        }
        let everywhere = HostCheck::of("http://10.0.0.1:7420", "0.0.0.0".parse().unwrap(), [].into_iter(), true);
        assert_eq!(asked(&everywhere, "192.168.1.5:7420", &["http://192.168.1.5:3000"]), None, "a page of the same machine");
        let elsewhere = asked(&everywhere, "192.168.1.5:7420", &["http://192.168.1.6:3000"]);
        assert_eq!(elsewhere, Some(ErrorKind::OriginNotAllowed), "a page of another machine");
    }
}
