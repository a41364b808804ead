//! Hosts and tenants that lead to agents: gathered, checked against each other, and put up at the doors.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_core::Agents;
use chancery_inbound::{HostSign, Signposts};
use chancery_protocol::AgentInterface;

use crate::agents::interfaces;
use crate::build_error::BuildError;
use crate::config::{AgentConfig, CardBinding, HostName, PublicUrl, TenantName};

/// Which agent each name leads to, in the order they were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentRoutes {
    hosts: Vec<(String, HostName)>,
    tenants: Vec<(String, TenantName)>,
}

impl AgentRoutes {
    pub(crate) fn of_agent(&mut self, name: &str, agent: &AgentConfig) {
        self.lead_to(name, agent.hosts.iter().cloned(), agent.tenants.iter().cloned());
    }

    pub(crate) fn lead_to(
        &mut self,
        name: &str,
        hosts: impl IntoIterator<Item = HostName>,
        tenants: impl IntoIterator<Item = TenantName>,
    ) {
        self.hosts.extend(hosts.into_iter().map(|host| (name.to_owned(), host)));
        self.tenants.extend(tenants.into_iter().map(|tenant| (name.to_owned(), tenant)));
    }

    /// Refuses names that lead to two agents, to none, or to the node itself.
    pub(crate) fn check(&self, agents: &Agents, public_url: &PublicUrl) -> Result<(), BuildError> {
        let mut faults = Vec::new();
        let (mut hosts, mut tenants) = (BTreeMap::new(), BTreeMap::new());
        for (agent, host) in &self.hosts {
            if let Some(other) = hosts.insert(host.name(), agent) {
                faults.push(format!("the host {host} cannot be both {other}'s and {agent}'s"));
            }
            if public_url.url().host_str() == Some(host.name()) {
                faults.push(host.is_the_nodes_own());
            }
        }
        for (agent, tenant) in &self.tenants {
            if let Some(other) = tenants.insert(tenant.as_str(), agent) {
                faults.push(format!("the tenant {tenant} cannot lead to both {other} and {agent}"));
            }
        }
        let named = self.hosts.iter().map(|(agent, _)| agent).chain(self.tenants.iter().map(|(agent, _)| agent));
        let hidden = named.filter(|name| !agents.get(name).is_some_and(|agent| agent.exposed));
        faults.extend(hidden.map(|name| format!("there is no agent {name} that callers from outside can see")));
        if faults.is_empty() { Ok(()) } else { Err(BuildError::Signs(faults.join("; "))) }
    }

    /// The addresses of an agent at the root, where a tenant says that it is meant. Only 1.0 has a place on a card for one.
    pub(crate) fn by_tenant(&self, agent: &str, public_url: &PublicUrl, bindings: &[CardBinding]) -> Vec<AgentInterface> {
        let tenants = self.tenants.iter().filter(|(name, _)| name == agent);
        let at = |(_, tenant): &(String, TenantName)| {
            let root = interfaces(&public_url.to_string(), true, bindings);
            let newer = root.into_iter().filter(|interface| interface.protocol_version == "1.0");
            let tenant = tenant.to_string();
            newer.map(move |interface| AgentInterface { tenant: Some(tenant.clone()), ..interface })
        };
        tenants.flat_map(at).collect()
    }

    pub(crate) fn signposts(&self, public_url: &PublicUrl, bindings: &[CardBinding]) -> Result<Signposts, BuildError> {
        let fault = |host: &HostName, fault: &dyn std::fmt::Display| BuildError::Signs(format!("the host {host}: {fault}"));
        let host = |(agent, host): &(String, HostName)| {
            let base = host.beside(public_url.url());
            let url = url::Url::parse(&base).map_err(|error| fault(host, &error))?;
            let sign = HostSign {
                agent: agent.as_str().into(),
                interfaces: interfaces(&base, true, bindings),
                jwks_url: format!("{base}/.well-known/jwks.json"),
                authority: url.origin().ascii_serialization().parse().map_err(|error| fault(host, &error))?,
            };
            Ok((Arc::from(host.name()), sign))
        };
        let tenant = |(agent, tenant): &(String, TenantName)| (Arc::from(tenant.as_str()), agent.as_str().into());
        Ok(Signposts {
            hosts: self.hosts.iter().map(host).collect::<Result<_, BuildError>>()?,
            tenants: self.tenants.iter().map(tenant).collect(),
        })
    }
}
