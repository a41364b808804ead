//! Warns of a server certificate that is not for the names callers reach the node by.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chancery_identity::credentials::server_names;
use chancery_inbound::Tls;
use url::{Host, Url};

/// Warns once for `listen` and once for `public_url`, if the certificate does not cover their hosts: callers that verify
/// certificates do not connect then, and see only that a handshake failed.
pub(crate) fn warn_of_uncovered_hosts(tls: &Tls, listen: IpAddr, public_url: &Url) {
    let names = server_names(&tls.certificate()).join(", ");
    let names = if names.is_empty() { "no name" } else { &names };
    for (key, host) in uncovered(tls, listen, public_url) {
        tracing::warn!(
            key,
            host,
            certificate = names,
            "the certificate of tls.cert_file does not cover the host that callers use; name the host in the certificate"
        );
    }
}

/// The keys whose hosts the certificate does not cover, with the host.
fn uncovered(tls: &Tls, listen: IpAddr, public_url: &Url) -> Vec<(&'static str, String)> {
    let mut uncovered = Vec::new();
    // An address that stands for all of the machine's is nobody's name for it.
    if !listen.is_unspecified() && !spellings(listen).iter().any(|host| tls.covers(host)) {
        uncovered.push(("listen", listen.to_string()));
    }
    let host = match public_url.host() {
        Some(Host::Domain(name)) => Some((name.to_owned(), None)),
        Some(Host::Ipv4(address)) => Some((address.to_string(), Some(IpAddr::from(address)))),
        Some(Host::Ipv6(address)) => Some((address.to_string(), Some(IpAddr::from(address)))),
        None => None,
    };
    if let Some((host, address)) = host.filter(|_| public_url.scheme() == "https")
        && address != Some(listen)
        && !tls.covers(&host)
    {
        uncovered.push(("public_url", host));
    }
    uncovered
}

/// On the loopback any of the usual names will do: cards name the one their client used.
fn spellings(listen: IpAddr) -> Vec<String> {
    if !listen.is_loopback() {
        return vec![listen.to_string()];
    }
    let usual = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    [listen].into_iter().chain(usual).map(|address| address.to_string()).chain(["localhost".to_owned()]).collect()
}
