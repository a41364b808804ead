//! The settings for remote agents that a program gives to its node, beside the config.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use chancery_core::routing::PeerSelector;
use chancery_core::{SkillRouting, TaskRunner};
use chancery_rules::routing::RoutingConfig;

use crate::build_error::BuildError;

/// Runners and a selector given in code.
#[derive(Clone, Default)]
pub(crate) struct InCode {
    /// The local agents that work when no replica can be called, by the name of the agent.
    pub(crate) locals: BTreeMap<String, Arc<dyn TaskRunner>>,
    pub(crate) selector: Option<Arc<dyn PeerSelector>>,
    pub(crate) precedence: Precedence,
}

/// Which counts if both the program and the config choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Precedence {
    /// The program does not say. A config that chooses beside its selector is rejected.
    #[default]
    Unsettled,
    Config,
    Program,
}

impl fmt::Debug for InCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let selector = self.selector.as_ref().map(|selector| selector.name());
        f.debug_struct("InCode").field("locals", &self.locals.keys()).field("selector", &selector).finish_non_exhaustive()
    }
}

impl InCode {
    /// How calls at the root address are routed by skill.
    pub(crate) fn skill_routing(&self, config: &RoutingConfig) -> SkillRouting {
        let routing = SkillRouting::new(config, chancery_core::random_seed());
        self.selector(config).into_iter().fold(routing, SkillRouting::choosing_by)
    }

    /// Rejects a config that chooses beside the selector of the program, unless the program says which counts.
    pub(crate) fn check(&self, config: &RoutingConfig) -> Result<(), BuildError> {
        if self.selector.is_some() && self.precedence == Precedence::Unsettled && chooses(config) {
            return Err(BuildError::Contradiction(
                "both peer_selector() and [routing] of the config choose; call config_override_allowed()",
            ));
        }
        Ok(())
    }

    /// Returns the selector that counts instead of the config's.
    pub(super) fn selector(&self, config: &RoutingConfig) -> Option<Arc<dyn PeerSelector>> {
        let selector = self.selector.clone()?;
        if self.precedence == Precedence::Program || !chooses(config) {
            return Some(selector);
        }
        tracing::info!(selector = selector.name(), "[routing] of the config overrides the selector, as the program allows");
        None
    }
}

/// Whether a config says how to choose.
fn chooses(config: &RoutingConfig) -> bool {
    *config != RoutingConfig { by_skill: config.by_skill, ..RoutingConfig::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_rules::routing::{LowestLatency, SelectorName};

    #[test]
    fn a_selector_in_code_counts_where_the_config_does_not_choose_or_may_not_outrank_it() {
        let silent = RoutingConfig::default();
        let said = RoutingConfig { default_selector: SelectorName::RoundRobin, ..RoutingConfig::default() };
        let in_code = InCode { selector: Some(Arc::new(LowestLatency)), ..InCode::default() };
        assert!(in_code.selector(&silent).is_some() && in_code.check(&silent).is_ok());
        assert!(in_code.check(&said).is_err(), "the program does not say which counts");
        let yields = InCode { precedence: Precedence::Config, ..in_code.clone() };
        assert!(yields.selector(&said).is_none() && yields.check(&said).is_ok());
        let by_address = RoutingConfig { by_skill: false, ..RoutingConfig::default() };
        assert!(in_code.selector(&by_address).is_some(), "that says nothing about how to choose");
        let insists = InCode { precedence: Precedence::Program, ..in_code };
        assert!(insists.selector(&said).is_some() && insists.check(&said).is_ok());
        assert!(InCode::default().selector(&silent).is_none());
    }
}
