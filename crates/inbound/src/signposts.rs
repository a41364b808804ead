//! Which agent a call is for: by its path, by the host it came to, or by the tenant it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_identity::credentials::Authority;
use chancery_protocol::{AgentInterface, AgentName, Error, ErrorKind};
use http::header::HOST;
use http::request::Parts;

use crate::doors::Doors;
use crate::own_hosts::CardBase;

/// Names that lead to agents, beside their paths.
#[derive(Clone, Debug, Default)]
pub struct Signposts {
    /// By host, in lower case and without a port.
    pub hosts: BTreeMap<Arc<str>, HostSign>,
    /// By the tenant that a call at the root names.
    pub tenants: BTreeMap<Arc<str>, AgentName>,
}

/// A host that is one agent's.
#[derive(Clone, Debug)]
pub struct HostSign {
    pub agent: AgentName,
    /// What its card says there.
    pub interfaces: Vec<AgentInterface>,
    /// Where the card's keys are found.
    pub jwks_url: String,
    /// What a signed request must be meant for.
    pub authority: Authority,
}

/// Where a request came to: an agent, if that much names one, and the host, if that is what did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spot {
    pub(crate) agent: Option<AgentName>,
    pub(crate) host: Option<Arc<str>>,
    /// The agent whose own address it came to: that agent calls.
    pub(crate) via: Option<AgentName>,
    /// Where its card says it is, for requests for a card that came to another of the node's own hosts than the public one.
    pub(crate) base: Option<CardBase>,
}

/// The secret of an address, and the rest of the path.
pub(crate) fn address_in(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/via/")?;
    Some(rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash)))
}

impl Signposts {
    /// The host a request came to, if it is an agent's.
    pub(crate) fn host(&self, head: &Parts) -> Option<(&Arc<str>, &HostSign)> {
        if self.hosts.is_empty() {
            return None;
        }
        let in_header = || head.headers.get(HOST).and_then(|value| value.to_str().ok());
        let authority = head.uri.authority().map(http::uri::Authority::as_str).or_else(in_header)?;
        let named: http::uri::Authority = authority.parse().ok()?;
        let host = named.host().trim_end_matches('.').to_ascii_lowercase();
        self.hosts.get_key_value(host.as_str())
    }

    pub(crate) fn spot_of_host(&self, head: &Parts) -> Spot {
        match self.host(head) {
            Some((host, sign)) => Spot { agent: Some(sign.agent.clone()), host: Some(Arc::clone(host)), ..Spot::default() },
            None => Spot::default(),
        }
    }
}

impl Doors {
    /// The addresses of agents on cards for requests at this spot, if not the public URL.
    pub(crate) fn base_of(&self, head: &Parts, spot: &Spot) -> Option<CardBase> {
        let published = self.published();
        match (&spot.via, address_in(head.uri.path())) {
            (Some(_), Some((secret, _))) => Some(published.base_via(head, secret)),
            _ => published.base_of(head),
        }
    }

    /// The spot of a request, and the remaining path. A host of an agent serves only that agent. At other
    /// hosts `/agents/NAME` names the agent, and every other path is for the first one. The address of the
    /// calling agent may precede it; an unknown address is a path like any other.
    pub(crate) fn spot_of<'a>(&self, head: &'a Parts) -> Result<(Spot, &'a str), Error> {
        let path = head.uri.path();
        let spot = self.settings().signposts.spot_of_host(head);
        if spot.agent.is_some() {
            return Ok((spot, path));
        }
        let address = address_in(path).and_then(|(secret, rest)| Some((self.chancery().agent_at(secret)?, rest)));
        let (spot, path) = match address {
            Some((agent, rest)) => (Spot { via: Some(agent), ..spot }, rest),
            None => (spot, path),
        };
        let Some(rest) = path.strip_prefix("/agents/") else { return Ok((spot, path)) };
        let (name, rest) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        match self.chancery().agents().get(name).filter(|agent| agent.exposed) {
            Some(agent) => Ok((Spot { agent: Some(agent.name.clone()), ..spot }, rest)),
            None => Err(Error::new(
                ErrorKind::MethodNotFound,
                "this node serves no agent of this name; GET /agents lists the agents that you may call",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn a_host_is_known_in_any_case_with_any_port_and_from_either_place_it_is_named() {
        let authority = "https://research.example".parse().unwrap();
        let sign = HostSign { agent: "research".into(), interfaces: Vec::new(), jwks_url: String::new(), authority };
        let signposts = Signposts { hosts: BTreeMap::from([("research.example".into(), sign)]), tenants: BTreeMap::new() };
        let agent = |uri: &str, header: Option<&str>| {
            let request = header.iter().fold(Request::get(uri), |request, host| request.header("host", *host));
            signposts.spot_of_host(&request.body(()).unwrap().into_parts().0).agent
        };
        for (uri, header) in [
            ("/", Some("research.example")),
            ("/", Some("Research.Example:8443")),
            ("/", Some("research.example.")),
            ("http://research.example/", None),
            ("http://research.example:1/", Some("other.example")),
        ] {
            assert_eq!(agent(uri, header).as_deref(), Some("research"), "{uri} {header:?}");
        }
        for (uri, header) in [
            ("/", None),
            ("/", Some("")),
            ("/", Some("other.example")),
            ("/", Some("research.example.evil")),
            ("/", Some("a@b@c")),
            ("http://other.example/", Some("research.example")),
        ] {
            assert_eq!(agent(uri, header), None, "{uri} {header:?}");
        }
    }
}
