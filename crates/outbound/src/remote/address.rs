//! Decides at which URLs an agent is called: from the configured URL, its card and what `[outbound]` allows. No I/O.

use std::net::IpAddr;

use chancery_protocol::{AgentCard, AgentInterface, Binding, Version};
use url::{Host, Url};

use super::settings::AgentSettings;
use crate::client::Interface;
use crate::guard::{as_web, canonical};

/// What the guard says of a URL before anything is dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlPermission {
    Denied,
    /// A public host that is allowed, but not named in the config.
    Public,
    /// The operator named it: as the agent's URL, or in `[outbound] allow_nets` or `allow_hosts`.
    Named,
}

/// Why an agent is called at another URL than its card lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressChange {
    /// The card names the loopback or no particular host, and the configured host stands for it.
    Respelled,
    /// The card's host or port is neither configured nor allowed.
    NotAllowed,
    /// The card's URL is relative to the card.
    Relative,
    /// The card's URL is empty or a placeholder.
    Unusable,
    /// `[agents.NAME] address` or `binding` says so.
    Setting,
}

impl AddressChange {
    pub fn reason(self) -> &'static str {
        match self {
            Self::Respelled => "the card names the loopback or no particular host",
            Self::NotAllowed => "[outbound] does not allow the card's host or port",
            Self::Relative => "the card's URL is relative",
            Self::Unusable => "the card's URL cannot be called",
            Self::Setting => "the agent's settings override it",
        }
    }
}

/// An address at which an agent can be called, with the versions to try there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallableInterface {
    pub url: String,
    pub binding: Binding,
    /// The likeliest first. Never empty.
    pub versions: Vec<Version>,
    pub tenant: Option<String>,
    /// The URL in the card; empty if the card has none.
    pub listed: String,
    pub change: Option<AddressChange>,
}

/// The facts for the choice of an address, beside the card.
#[derive(Clone, Copy, Debug)]
pub struct AddressRules<'a> {
    pub configured: &'a Url,
    /// Where the card was found.
    pub card_url: &'a str,
    /// The version of the card's own shape, which says the version of entries without one.
    pub shape: Version,
    pub settings: &'a AgentSettings,
}

/// Candidates of one agent that are tried at most.
const MOST_CANDIDATES: usize = 8;

/// Returns the addresses to call, the best first: those that the card lists and that may be called, then those at the
/// configured origin. Empty if none may be called.
pub fn callable(rules: AddressRules<'_>, card: &AgentCard, permits: impl Fn(&str) -> UrlPermission) -> Vec<CallableInterface> {
    let settings = rules.settings;
    let wanted = |binding: Binding| settings.binding.is_none_or(|only| only == binding);
    if let Some(address) = &settings.address {
        return overridden(rules, card, address).into_iter().collect();
    }
    // An operator who configures an SWP address means SWP, which cards list last.
    let slim_only = as_web(rules.configured.as_str()).is_some()
        && card.supported_interfaces.iter().any(|listed| Interface::binding_of(listed) == Some(Binding::Swp));
    let mut found: Vec<CallableInterface> = Vec::new();
    for listed in &card.supported_interfaces {
        let Some(binding) = Interface::binding_of(listed) else { continue };
        let Some(versions) = versions(rules, &listed.protocol_version, binding) else { continue };
        if !wanted(binding) || (slim_only && binding != Binding::Swp) {
            continue;
        }
        let placed = match binding {
            Binding::JsonRpc | Binding::Rest => web(rules, &listed.url, &permits),
            Binding::Grpc => grpc(rules, &listed.url, &permits),
            Binding::Swp => slim(rules, &listed.url, &permits),
        };
        let Some((url, change)) = placed else { continue };
        // Strict agents are called as their cards say, or not at all.
        if settings.strict && change.is_some() {
            continue;
        }
        let one = CallableInterface { url, binding, versions, tenant: listed.tenant.clone(), listed: listed.url.clone(), change };
        if !found.iter().any(|other| (&other.url, other.binding, &other.versions) == (&one.url, binding, &one.versions)) {
            found.push(one);
        }
    }
    if found.is_empty() && settings.binding.is_some() {
        found.extend(overridden(rules, card, &own_address(rules.configured)));
    }
    // A URL that had to be moved is a guess; one that can be called as listed is not.
    found.sort_by_key(|one| matches!(one.change, Some(AddressChange::NotAllowed | AddressChange::Unusable)));
    found
}

/// Returns every (address, version) to try in order: the likeliest version of each address, then the next ones. What the agent
/// is known to speak goes first.
pub(crate) fn candidates(callable: &[CallableInterface], speaks: Option<Version>) -> Vec<(usize, Interface)> {
    let most = callable.iter().map(|one| one.versions.len()).max().unwrap_or(0);
    let mut all: Vec<(usize, Interface)> = Vec::new();
    for rank in 0..most {
        for (index, one) in callable.iter().enumerate() {
            let Some(version) = one.versions.get(rank).copied() else { continue };
            let interface = Interface { url: one.url.clone(), binding: one.binding, version, tenant: one.tenant.clone() };
            if !all.iter().any(|(_, other)| *other == interface) {
                all.push((index, interface));
            }
        }
    }
    if let Some(speaks) = speaks {
        all.sort_by_key(|(_, interface)| interface.version != speaks);
    }
    all.truncate(MOST_CANDIDATES);
    all
}

/// The versions to try at an entry, or `None` if it states one that is not spoken here.
fn versions(rules: AddressRules<'_>, stated: &str, binding: Binding) -> Option<Vec<Version>> {
    let stated = stated.trim();
    let known = Interface::version_of(stated);
    if let Some(only) = rules.settings.version {
        return can(only, binding).then(|| vec![only]);
    }
    let first = match known {
        Some(version) => version,
        None if stated.is_empty() && !rules.settings.strict => rules.shape,
        None => return None,
    };
    if rules.settings.strict || binding == Binding::Swp {
        return Some(vec![first]);
    }
    let mut versions = vec![first];
    versions.extend([Version::V1_0, Version::V0_3, Version::Original].into_iter().filter(|version| *version != first));
    versions.retain(|version| can(*version, binding));
    (!versions.is_empty()).then_some(versions)
}

/// The original protocol is spoken over JSON-RPC only.
fn can(version: Version, binding: Binding) -> bool {
    version != Version::Original || binding == Binding::JsonRpc
}

/// The address that the operator set, with the rest as the card's first fitting entry says.
fn overridden(rules: AddressRules<'_>, card: &AgentCard, address: &str) -> Option<CallableInterface> {
    let settings = rules.settings;
    let fits = |listed: &&AgentInterface| {
        Interface::binding_of(listed).is_some_and(|binding| settings.binding.is_none_or(|only| only == binding))
    };
    let listed = card.supported_interfaces.iter().find(fits);
    let is_slim = as_web(address).is_some();
    let of_card = listed.and_then(Interface::binding_of).filter(|binding| (*binding == Binding::Swp) == is_slim);
    let otherwise = if is_slim { Binding::Swp } else { Binding::JsonRpc };
    let binding = settings.binding.or(of_card).unwrap_or(otherwise);
    // A version that nobody speaks here is no reason to leave out an address that the operator set.
    let stated = listed.map_or("", |listed| listed.protocol_version.as_str());
    let versions = versions(rules, stated, binding).or_else(|| versions(rules, "", binding))?;
    Some(CallableInterface {
        url: address.to_owned(),
        binding,
        versions,
        tenant: listed.and_then(|listed| listed.tenant.clone()),
        listed: listed.map(|listed| listed.url.clone()).unwrap_or_default(),
        change: listed.is_none_or(|listed| listed.url != address).then_some(AddressChange::Setting),
    })
}

type Placed = Option<(String, Option<AddressChange>)>;

/// An address of JSON-RPC or HTTP+JSON.
fn web(rules: AddressRules<'_>, listed: &str, permits: &impl Fn(&str) -> UrlPermission) -> Placed {
    let listed = listed.trim();
    let own = || is_web(rules.configured).then(|| (own_address(rules.configured), Some(AddressChange::Unusable)));
    let is_relative = ["/", "./", "../", "?"].iter().any(|start| listed.starts_with(start));
    if is_relative {
        let base = Url::parse(rules.card_url).ok().filter(is_web).or_else(|| Some(rules.configured.clone()).filter(is_web))?;
        let Ok(url) = base.join(listed) else { return own() };
        let (url, change) = judged(rules, &url, permits)?;
        return Some((url, change.or(Some(AddressChange::Relative))));
    }
    let absolute = Url::parse(listed).ok().filter(|url| is_web(url) && url.has_host());
    if let Some(url) = absolute {
        let (judged, change) = judged(rules, &url, permits)?;
        // As the card has it: the parser may have added a slash.
        return Some(if change.is_none() { (listed.to_owned(), None) } else { (judged, change) });
    }
    // `host:port/path` of the configured host keeps its path; anything else without a scheme is a placeholder.
    let bare = Url::parse(&format!("{}://{listed}", rules.configured.scheme())).ok().filter(Url::has_host);
    match bare.map(|url| respelled(rules.configured, &url).unwrap_or(url)) {
        Some(url) if url.origin() == rules.configured.origin() => Some((url.into(), Some(AddressChange::Unusable))),
        _ => own(),
    }
}

/// Where a URL of the card leads: itself, the configured host under another spelling, or the configured origin.
fn judged(rules: AddressRules<'_>, url: &Url, permits: &impl Fn(&str) -> UrlPermission) -> Placed {
    let configured = rules.configured;
    if url.origin() == configured.origin() {
        return Some((url.as_str().to_owned(), None));
    }
    // The same host without TLS is never taken in place of the one with it.
    let is_downgrade = configured.scheme() == "https" && url.scheme() == "http" && url.host() == configured.host();
    match respelled(configured, url) {
        Some(there) if there.origin() == configured.origin() => return Some((there.into(), Some(AddressChange::Respelled))),
        // Made up of the card's port and the configured host, so it needs somebody's word.
        Some(there) if permits(there.as_str()) == UrlPermission::Named => {
            let change = (there != *url).then_some(AddressChange::Respelled);
            return Some((there.into(), change));
        }
        Some(_) if permits(url.as_str()) == UrlPermission::Named => return Some((url.as_str().to_owned(), None)),
        None if !is_downgrade && permits(url.as_str()) != UrlPermission::Denied => return Some((url.as_str().to_owned(), None)),
        _ => {}
    }
    is_web(configured).then(|| (at_configured(configured, url), Some(AddressChange::NotAllowed)))
}

/// An address of gRPC, which cannot be moved to the port of another protocol.
fn grpc(rules: AddressRules<'_>, listed: &str, permits: &impl Fn(&str) -> UrlPermission) -> Placed {
    let listed = listed.trim();
    let (scheme, rest) = listed.split_once("://").unwrap_or(("", listed));
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "https" | "grpcs" => "https",
        "http" => "http",
        // Without TLS where that may be dialled, with it otherwise.
        "" | "grpc" | "dns" | "ipv4" | "ipv6" => "",
        _ => return None,
    };
    let rest = rest.trim_start_matches('/');
    let read = |scheme: &str| Url::parse(&format!("{scheme}://{rest}")).ok().filter(Url::has_host);
    let url = read(if scheme.is_empty() { "http" } else { scheme })?;
    let text = |url: &Url| {
        let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
        if scheme.is_empty() { format!("{host}:{port}") } else { format!("{scheme}://{host}:{port}") }
    };
    let permission = |url: &Url| {
        let mut secured = url.clone();
        let with_tls = scheme.is_empty().then(|| secured.set_scheme("https").ok()).flatten();
        // The port that plain HTTP would have stays what the card says.
        let with_tls = with_tls.and_then(|()| secured.set_port(url.port_or_known_default()).ok());
        match (permits(url.as_str()), with_tls) {
            (UrlPermission::Denied, Some(())) => permits(secured.as_str()),
            (permission, _) => permission,
        }
    };
    // As the card has it, unless its scheme is one of gRPC's own, which clients do not dial.
    let is_plain_form = !listed.contains("://") || listed.starts_with("http");
    let usual = |url: &Url| if is_plain_form { listed.to_owned() } else { text(url) };
    match respelled(rules.configured, &url) {
        Some(there) if permission(&there) == UrlPermission::Named => {
            let change = (there != url).then_some(AddressChange::Respelled);
            Some((if change.is_some() { text(&there) } else { usual(&url) }, change))
        }
        Some(_) => (permission(&url) == UrlPermission::Named).then(|| (usual(&url), None)),
        None => (permission(&url) != UrlPermission::Denied).then(|| (usual(&url), None)),
    }
}

/// An address of SWP.
fn slim(rules: AddressRules<'_>, listed: &str, permits: &impl Fn(&str) -> UrlPermission) -> Placed {
    let url = as_web(listed)?;
    let configured = as_web(rules.configured.as_str());
    let scheme = if url.scheme() == "https" { "swps" } else { "swp" };
    let text = |url: &Url| {
        let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
        format!("{scheme}://{host}:{port}{}", url.path())
    };
    match respelled(configured.as_ref().unwrap_or(rules.configured), &url) {
        Some(there) if there != url && permits(there.as_str()) == UrlPermission::Named => {
            return Some((text(&there), Some(AddressChange::Respelled)));
        }
        _ if permits(url.as_str()) != UrlPermission::Denied => return Some((listed.to_owned(), None)),
        _ => {}
    }
    configured.map(|_| (rules.configured.as_str().to_owned(), Some(AddressChange::NotAllowed)))
}

/// The same URL at the configured host, if its own host is a loopback or no particular one.
fn respelled(configured: &Url, url: &Url) -> Option<Url> {
    if !is_nowhere_else(url.host()?) {
        return None;
    }
    let mut there = url.clone();
    there.set_host(configured.host_str()).ok()?;
    Some(there)
}

/// Whether a host is a spelling of the loopback, or no particular host.
fn is_nowhere_else(host: Host<&str>) -> bool {
    let address = match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            return name == "localhost" || name.ends_with(".localhost") || name == "ip6-localhost" || name == "ip6-loopback";
        }
        Host::Ipv4(address) => IpAddr::V4(address),
        Host::Ipv6(address) => canonical(IpAddr::V6(address)),
    };
    address.is_loopback() || address.is_unspecified()
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// The card's path at the configured origin.
fn at_configured(configured: &Url, url: &Url) -> String {
    let mut there = configured.clone();
    there.set_path(url.path());
    there.set_query(url.query());
    there.set_fragment(None);
    there.into()
}

/// The configured URL as an agent's address: where it names a card, the path that the card is of.
fn own_address(configured: &Url) -> String {
    let mut url = configured.clone();
    url.set_fragment(None);
    if url.path().ends_with(".json") {
        let path = url.path().to_owned();
        let agent = path.find("/.well-known/").or_else(|| path.rfind('/')).unwrap_or(0);
        url.set_path(&path[..agent]);
    }
    url.into()
}

#[cfg(test)]
mod tests;
