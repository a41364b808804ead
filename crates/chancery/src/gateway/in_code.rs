//! The settings for remote agents that a program gives to its node, beside the config.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use chancery_core::routing::PeerSelector;
use chancery_core::{SkillRouting, TaskRunner};
use chancery_rules::routing::RoutingConfig;

/// Runners and a selector given in code.
#[derive(Clone, Default)]
pub(crate) struct InCode {
    /// The local agents that work when no replica can be called, by the name of the agent.
    pub(crate) locals: BTreeMap<String, Arc<dyn TaskRunner>>,
    pub(crate) selector: Option<Arc<dyn PeerSelector>>,
    /// Whether the selector has precedence over the config.
    pub(crate) outranks_config: bool,
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

    /// The selector that counts instead of the config's. An operator who says something about routing outranks the program.
    pub(super) fn selector(&self, config: &RoutingConfig) -> Option<Arc<dyn PeerSelector>> {
        let selector = self.selector.clone()?;
        let silent = RoutingConfig { by_skill: config.by_skill, ..RoutingConfig::default() };
        if self.outranks_config || *config == silent {
            return Some(selector);
        }
        tracing::info!(selector = selector.name(), "[routing] of the config overrides the selector of the program");
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_rules::routing::{LowestLatency, SelectorName};

    #[test]
    fn a_selector_in_code_counts_where_the_config_says_nothing_or_may_not_outrank_it() {
        let silent = RoutingConfig::default();
        let said = RoutingConfig { default_selector: SelectorName::RoundRobin, ..RoutingConfig::default() };
        let in_code = InCode { selector: Some(Arc::new(LowestLatency)), ..InCode::default() };
        assert!(in_code.selector(&silent).is_some());
        assert!(in_code.selector(&said).is_none(), "operators outrank programs");
        let by_address = RoutingConfig { by_skill: false, ..RoutingConfig::default() };
        assert!(in_code.selector(&by_address).is_some(), "that says nothing about how to choose");
        let insists = InCode { outranks_config: true, ..in_code };
        assert!(insists.selector(&said).is_some());
        assert!(InCode::default().selector(&silent).is_none());
    }
}
