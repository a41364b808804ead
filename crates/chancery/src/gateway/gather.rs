//! Collects the remote agents of a node at its start and after a change of its config.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_core::{Agent, Agents};
use chancery_protocol::{AgentName, Timestamp};

use super::naming::settle_names;
use super::remote::{Remote, RemoteParts, ShownCards};
use crate::build_error::BuildError;
use crate::config::AgentConfig;
use crate::configured_agents::ConfiguredAgents;
use crate::mount::Given;

/// The agents at this moment: the remote ones, and all agents as they are served.
pub(crate) struct ServedAgents {
    remotes: BTreeMap<AgentName, Arc<Remote>>,
    served: Arc<Agents>,
}

impl ServedAgents {
    pub(super) fn new(remotes: BTreeMap<AgentName, Arc<Remote>>, served: Arc<Agents>) -> Self {
        Self { remotes, served }
    }

    pub(super) fn same(&self, name: &str, agent: &AgentConfig, added: bool) -> Option<GatheredAgent> {
        let remote = self.remotes.get(name).filter(|remote| remote.is(agent, added))?;
        Some(GatheredAgent { remote: Arc::clone(remote), served: self.served.get(name).cloned() })
    }
}

/// A remote agent, and its current state if it is served already.
pub(super) struct GatheredAgent {
    remote: Arc<Remote>,
    served: Option<Arc<Agent>>,
}

impl GatheredAgent {
    /// Its cards before they are mounted. Those of an agent that is served already are not fetched again.
    async fn cards(&self, now: Timestamp) -> ShownCards {
        match self.remote.latest().filter(|_| self.served.is_some()) {
            Some(cards) => cards,
            None => self.remote.first_cards(now).await,
        }
    }
}

/// Builds the remote agents: first the given ones, at their places, then the added ones. An agent in
/// `standing` that stays the same is reused.
pub(crate) async fn gather(
    remote_parts: &RemoteParts,
    configured_agents: ConfiguredAgents,
    standing: Option<&ServedAgents>,
) -> Result<(Vec<Given>, Vec<Arc<Remote>>), BuildError> {
    let ConfiguredAgents { here: mut given, elsewhere, .. } = configured_agents;
    let now = remote_parts.clock.now();
    let others = given
        .iter()
        .map(|given| given.name.clone())
        .chain(remote_parts.agent_registry.added().into_iter().map(|record| record.name));
    let elsewhere = settle_names(remote_parts, elsewhere, others, standing, now).await;
    let make = |name: &str, agent: &AgentConfig, added: bool| match standing.and_then(|all| all.same(name, agent, added)) {
        Some(same) => Ok(Some(same)),
        None => Remote::new(name, agent, added, remote_parts)
            .map(|made| made.map(|remote| GatheredAgent { remote: Arc::new(remote), served: None })),
    };
    let mut all: Vec<(Option<usize>, GatheredAgent)> = Vec::new();
    for (index, name, agent) in &elsewhere {
        let made = make(name, agent, false).map_err(|fault| BuildError::Agent { name: name.clone(), fault })?;
        all.extend(made.map(|found| (Some(*index), found)));
    }
    for record in remote_parts.agent_registry.added() {
        let mut taken = given.iter().map(|given| given.name.as_str()).chain(all.iter().map(|(_, found)| &*found.remote.name));
        if taken.any(|name| name == record.name) {
            tracing::warn!(
                agent = record.name,
                "the config has an agent of this name; the node does not serve the added one. Rename one of them"
            );
            continue;
        }
        match make(&record.name, &AgentConfig::from(&record), true) {
            Ok(made) => all.extend(made.map(|found| (None, found))),
            Err(fault) => tracing::error!(
                agent = record.name,
                fault,
                "the node does not serve an added agent; correct the fault, or remove the agent with `chancery agents rm`"
            ),
        }
    }
    let cards = futures::future::join_all(all.iter().map(|(_, found)| found.cards(now))).await;
    for ((index, GatheredAgent { remote, served }), ShownCards { card, extended }) in all.iter().zip(cards) {
        let runner = served.as_ref().map_or_else(|| remote.runner(remote_parts), |agent| Arc::clone(&agent.runner));
        let agent = Given { name: remote.name.to_string(), card, extended, runner, exposed: true };
        given.insert(index.unwrap_or(given.len()), agent);
    }
    Ok((given, all.into_iter().map(|(_, found)| found.remote).collect()))
}
