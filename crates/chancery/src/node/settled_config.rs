//! Whether what a program says agrees with its config: each setting counts, or the node cannot be built.

use super::NodeBuilder;
use crate::build_error::BuildError;
use crate::config::store::contradictions;
use crate::config::{AgentConfig, AgentSource, Config, Places};
use crate::gateway::Precedence;

impl NodeBuilder {
    /// Rejects settings of the config that nothing would use, and a selector that could not choose.
    pub(super) fn settle_config(&mut self) -> Result<(), BuildError> {
        if !self.serves_configured && self.config.agents != Config::default().agents {
            for (name, agent) in &self.config.agents {
                self.own.agent_routes.of_agent(name, agent);
                let is_given = self.own.names().any(|given| given == name);
                if !is_given {
                    return Err(BuildError::AgentNotServed(name.clone()));
                }
                if describes(agent) {
                    return Err(BuildError::Contradiction(
                        "title, description and extended_skills of [agents] describe an agent of the config, and the program gives this one",
                    ));
                }
            }
        }
        if let (Some(given), Some(configured)) = (&self.swp_url, &self.config.swp.door.public_url)
            && given != configured
        {
            return Err(BuildError::Contradiction("swp_url() and swp.public_url of the config differ"));
        }
        if let Some(fault) = contradictions(&self.config, &Places::default(), false).into_iter().next() {
            return Err(BuildError::StoreSection(fault.message));
        }
        if self.swp_url.is_some() && cfg!(not(feature = "swp")) {
            return Err(BuildError::Feature { key: "swp_url()".to_owned(), feature: "swp" });
        }
        if self.own.in_code.selector.is_some() && !self.can_choose() {
            return Err(BuildError::Contradiction("peer_selector() was called, and the node has nothing to choose from"));
        }
        self.own.in_code.precedence = match self.override_allowed {
            Some(_) if self.own.in_code.selector.is_none() => {
                return Err(BuildError::Contradiction("config_override_allowed() was called without peer_selector()"));
            }
            Some(true) => Precedence::Config,
            Some(false) => Precedence::Program,
            None => Precedence::Unsettled,
        };
        Ok(())
    }

    /// Whether a selector could have something to choose from, now or later. The admin API adds agents to a node with a folder,
    /// and a reload those of a file.
    fn can_choose(&self) -> bool {
        let configured = || self.config.agents.iter().filter(|_| self.serves_configured);
        let is_remote = |(_, agent): &(String, AgentConfig)| matches!(agent.source, AgentSource::Remote(_));
        let by_skill = self.config.routing.by_skill && self.own.names().count() + configured().count() > 1;
        let grows = self.source.is_some() || self.storage.folder().is_some() || self.config.node.data.is_some();
        grows || by_skill || !self.own.elsewhere.is_empty() || configured().any(is_remote)
    }
}

fn describes(agent: &AgentConfig) -> bool {
    agent.title.is_some() || agent.description.is_some() || !agent.extended_skills.is_empty()
}
