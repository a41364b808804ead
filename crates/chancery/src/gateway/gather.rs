//! The agents elsewhere that a node begins with, or goes on with when its config has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_core::{Agent, Agents};
use chancery_protocol::{AgentCard, AgentName, Timestamp};

use super::naming::settle_names;
use super::remote::{Remote, Shown, Workplace};
use crate::build_error::BuildError;
use crate::config::AgentConfig;
use crate::lineup::Lineup;
use crate::mount::Given;

/// What is there already: agents elsewhere, and all agents as they are served now.
pub(crate) struct Standing {
    remotes: BTreeMap<AgentName, Arc<Remote>>,
    served: Arc<Agents>,
}

impl Standing {
    pub(super) fn new(remotes: BTreeMap<AgentName, Arc<Remote>>, served: Arc<Agents>) -> Self {
        Self { remotes, served }
    }

    pub(super) fn same(&self, name: &str, agent: &AgentConfig, added: bool) -> Option<Found> {
        let remote = self.remotes.get(name).filter(|remote| remote.is(agent, added))?;
        Some(Found { remote: Arc::clone(remote), served: self.served.get(name).cloned() })
    }
}

/// An agent elsewhere, and how it is served if it is already.
#[derive(Clone)]
pub(super) struct Found {
    remote: Arc<Remote>,
    served: Option<Arc<Agent>>,
}

impl Found {
    /// Its cards as they are before they are mounted.
    async fn cards(self, now: Timestamp) -> Shown {
        let unmounted = |card: &Arc<AgentCard>| AgentCard { supported_interfaces: Vec::new(), ..card.as_ref().clone() };
        match self.served {
            Some(agent) => Shown { card: unmounted(&agent.card), extended: agent.extended.as_ref().map(unmounted) },
            None => self.remote.first_cards(now).await,
        }
    }
}

/// Makes the agents elsewhere: those that were given, at their places, then those that were added. What is `standing` and
/// stays the same goes on as it is.
pub(crate) async fn gather(
    place: &Workplace,
    lineup: Lineup,
    standing: Option<&Standing>,
) -> Result<(Vec<Given>, Vec<Arc<Remote>>), BuildError> {
    let Lineup { here: mut given, elsewhere, .. } = lineup;
    let now = place.clock.now();
    let others = given.iter().map(|given| given.name.clone()).chain(place.book.added().into_iter().map(|record| record.name));
    let elsewhere = settle_names(place, elsewhere, others, standing, now).await;
    let make = |name: &str, agent: &AgentConfig, added: bool| match standing.and_then(|all| all.same(name, agent, added)) {
        Some(same) => Ok(Some(same)),
        None => {
            Remote::new(name, agent, added, place).map(|made| made.map(|remote| Found { remote: Arc::new(remote), served: None }))
        }
    };
    let mut all: Vec<(Option<usize>, Found)> = Vec::new();
    for (index, name, agent) in &elsewhere {
        let made = make(name, agent, false).map_err(|fault| BuildError::Agent { name: name.clone(), fault })?;
        all.extend(made.map(|found| (Some(*index), found)));
    }
    for record in place.book.added() {
        let mut taken = given.iter().map(|given| given.name.as_str()).chain(all.iter().map(|(_, found)| &*found.remote.name));
        if taken.any(|name| name == record.name) {
            tracing::warn!(agent = record.name, "the config has an agent of this name; the one that was added is left out");
            continue;
        }
        match make(&record.name, &AgentConfig::from(&record), true) {
            Ok(made) => all.extend(made.map(|found| (None, found))),
            Err(fault) => tracing::error!(agent = record.name, fault, "an agent that was added is left out"),
        }
    }
    let looks: Vec<_> = all.iter().map(|(_, found)| tokio::spawn(found.clone().cards(now))).collect();
    for ((index, Found { remote, served }), look) in all.iter().zip(looks) {
        let lost = |fault: tokio::task::JoinError| BuildError::Agent { name: remote.name.to_string(), fault: fault.to_string() };
        let Shown { card, extended } = look.await.map_err(lost)?;
        let runner = served.as_ref().map_or_else(|| remote.runner(place), |agent| Arc::clone(&agent.runner));
        let agent = Given { name: remote.name.to_string(), card, extended, runner, exposed: true };
        given.insert(index.unwrap_or(given.len()), agent);
    }
    Ok((given, all.into_iter().map(|(_, found)| found.remote).collect()))
}
