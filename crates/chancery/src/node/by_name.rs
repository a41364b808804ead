//! What a program says of agents by their names, before or after it gives the agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_core::TaskRunner;
use chancery_protocol::AgentCard;

use super::NodeBuilder;
use crate::build_error::BuildError;
use crate::config::AgentSource;

/// Settings for agents that may be given later.
#[derive(Default)]
pub(super) struct ByName {
    exposures: BTreeMap<String, bool>,
    extended_cards: BTreeMap<String, AgentCard>,
    locals: BTreeMap<String, Arc<dyn TaskRunner>>,
}

impl NodeBuilder {
    /// Sets whether callers can see and call an agent of the program. By default they can call an [`agent`](Self::agent), and
    /// cannot call a [`subagent`](Self::subagent).
    pub fn with_a2a_exposure(mut self, name: impl Into<String>, exposed: bool) -> Self {
        let given = self.by_name.exposures.insert(name.into(), exposed);
        self.once("with_a2a_exposure", given.is_none());
        self
    }

    /// Sets the extended card of an agent of the program, for authenticated callers. It is an error on a node without callers.
    pub fn extended_card(mut self, name: impl Into<String>, card: AgentCard) -> Self {
        let given = self.by_name.extended_cards.insert(name.into(), card);
        self.once("extended_card", given.is_none());
        self
    }

    /// Sets the runner that takes a task when no replica of a remote agent can be called. `routing.fallback` must be "local".
    /// A task that this runner began stays with it.
    pub fn with_local(mut self, name: impl Into<String>, runner: impl TaskRunner) -> Self {
        let given = self.by_name.locals.insert(name.into(), Arc::new(runner));
        self.once("with_local", given.is_none());
        self
    }

    /// Applies the settings by name to the agents. A name without an agent is an error.
    pub(super) fn settle_names(&mut self) -> Result<(), BuildError> {
        let ByName { exposures, extended_cards, locals } = std::mem::take(&mut self.by_name);
        let unknown = |name: &str, method: &'static str| BuildError::UnknownAgent { name: name.to_owned(), method };
        for (name, exposed) in exposures {
            let given = self.own.here.iter_mut().find(|given| given.name == name);
            given.ok_or_else(|| unknown(&name, "with_a2a_exposure"))?.exposed = exposed;
        }
        for (name, card) in extended_cards {
            let given = self.own.here.iter_mut().find(|given| given.name == name);
            given.ok_or_else(|| unknown(&name, "extended_card"))?.extended = Some(card);
        }
        for (name, runner) in locals {
            let is_remote = |source: &AgentSource| matches!(source, AgentSource::Remote(_));
            let configured = self.config.agents.iter().filter(|_| self.serves_configured);
            let mut configured = configured.filter(|(_, agent)| is_remote(&agent.source)).map(|(name, _)| name);
            let mut given = self.own.elsewhere.iter().map(|(_, name, _)| name);
            if !given.any(|other| *other == name) && !configured.any(|other| *other == name) {
                return Err(unknown(&name, "with_local"));
            }
            self.own.in_code.locals.insert(name, runner);
        }
        Ok(())
    }
}
