//! The agents that a node serves: first those of the program, then those of the config if the program uses
//! it.

use std::sync::Arc;

use chancery_core::TaskRunner;
use chancery_protocol::AgentCard;

use crate::agent_routes::AgentRoutes;
use crate::agents::BuiltIn;
use crate::config::{AgentConfig, AgentSource, Config};
use crate::gateway::InCode;
use crate::mount::Given;

/// Agents in their order; the first one answers at the root.
#[derive(Clone, Default)]
pub(crate) struct ConfiguredAgents {
    pub(crate) here: Vec<Given>,
    /// Remote agents, each with its place among all of them.
    pub(crate) elsewhere: Vec<(usize, String, AgentConfig)>,
    /// Hosts and tenants that lead to them.
    pub(crate) agent_routes: AgentRoutes,
    /// What the program sets for remote agents.
    pub(crate) in_code: InCode,
}

impl ConfiguredAgents {
    /// The names of the agents that the program gives.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.here.iter().map(|given| &given.name).chain(self.elsewhere.iter().map(|(_, name, _)| name))
    }

    pub(crate) fn here(&mut self, name: String, card: AgentCard, runner: Arc<dyn TaskRunner>, exposed: bool) {
        self.here.push(Given { name, card, extended: None, runner, exposed });
    }

    pub(crate) fn elsewhere(&mut self, name: String, agent: AgentConfig) {
        self.agent_routes.of_agent(&name, &agent);
        self.elsewhere.push((self.here.len() + self.elsewhere.len(), name, agent));
    }

    /// With the agents of a config behind. `running` has the runners that go on: what an agent here holds in memory stays.
    pub(crate) fn and_configured(
        mut self,
        config: &Config,
        running: impl Fn(&str, BuiltIn) -> Option<Arc<dyn TaskRunner>>,
    ) -> Self {
        for (name, agent) in &config.agents {
            let run = match &agent.source {
                AgentSource::BuiltIn(run) => *run,
                AgentSource::Remote(_) => {
                    self.elsewhere(name.clone(), agent.clone());
                    continue;
                }
            };
            self.agent_routes.of_agent(name, agent);
            let mut card = run.card();
            if let Some(title) = &agent.title {
                title.clone_into(&mut card.name);
            }
            if let Some(description) = &agent.description {
                description.clone_into(&mut card.description);
            }
            let extended = (!agent.extended_skills.is_empty()).then(|| {
                let mut extended = card.clone();
                extended.skills.extend(agent.extended_skills.iter().map(Into::into));
                extended
            });
            let runner = running(name, run).unwrap_or_else(|| run.runner());
            self.here.push(Given { name: name.clone(), card, extended, runner, exposed: true });
        }
        self
    }
}
