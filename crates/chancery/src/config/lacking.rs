//! Keys of a config that this build cannot obey, because it was made without a feature.

use chancery_outbound::guard::as_web;

use super::agent::AgentSource;
use super::fault::ConfigFault;
use super::places::Places;
use super::{BindingSetting, CardBinding, Config};

/// A key, and the feature that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingFeature {
    pub(crate) key: String,
    pub(crate) feature: &'static str,
}

impl MissingFeature {
    pub(crate) fn reason(&self) -> String {
        format!("needs the feature `{}`, which this build does not have", self.feature)
    }
}

impl Config {
    /// What the config asks for and the build lacks. Rules of `[[policy.rules]]` are refused where they are read.
    pub(crate) fn missing_features(&self) -> Vec<MissingFeature> {
        let mut missing = Vec::new();
        let mut need = |is_there: bool, feature: &'static str, key: &str, is_asked: bool| {
            if is_asked && !is_there {
                missing.push(MissingFeature { key: key.to_owned(), feature });
            }
        };
        let (grpc, swp) = (cfg!(feature = "grpc"), cfg!(feature = "swp"));
        let lists_grpc = self.card.bindings.iter().any(|one| matches!(one, CardBinding::Grpc | CardBinding::GrpcTarget));
        need(grpc, "grpc", "card.bindings", lists_grpc);
        need(swp, "swp", "swp.listen", self.swp.door.listen.is_some());
        for (name, agent) in &self.agents {
            let AgentSource::Remote(remote) = &agent.source else { continue };
            let is_bound_to = |binding| remote.calls.binding == Some(binding);
            need(grpc, "grpc", &format!("agents.{name}.binding"), is_bound_to(BindingSetting::Grpc));
            need(swp, "swp", &format!("agents.{name}.binding"), is_bound_to(BindingSetting::Swp));
            need(swp, "swp", &format!("agents.{name}.url"), remote.urls.iter().any(|url| as_web(url).is_some()));
        }
        need(cfg!(feature = "postgres"), "postgres", "store.url", self.store.url.is_some());
        need(cfg!(feature = "memory-tier"), "memory-tier", "memory.tier", self.memory.tier.is_some());
        need(cfg!(feature = "memory-tier"), "memory-tier", "artifacts.offload", self.artifacts.offload);
        need(cfg!(feature = "schemas"), "schemas", "artifacts.schemas", self.artifacts.schemas.is_some());
        missing
    }
}

pub(super) fn faults(config: &Config, places: &Places) -> Vec<ConfigFault> {
    config.missing_features().iter().map(|missing| places.fault(&missing.key, &missing.reason())).collect()
}
