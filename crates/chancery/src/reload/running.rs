//! A node that serves, as a reload sees it: what lasts, the assembly that counts now, and the step that replaces it.

use std::sync::{Arc, Mutex, PoisonError};

use chancery_identity::credentials::CallerRecord;
use chancery_inbound::DoorsHandle;
use chancery_outbound::JwksCache;
use chancery_protocol::Timestamp;
use tokio::sync::MutexGuard;

use super::placed::placed;
use crate::assembly::{Assembly, Replaced, assemble};
use crate::build_error::BuildError;
use crate::config::{Config, ConfigFault, Places};
use crate::node_parts::{NodeParts, Service};

pub(crate) struct RunningNode {
    parts: NodeParts,
    service: Service,
    doors_handle: DoorsHandle,
    /// The part of the assembly that only the next one asks for.
    assembled: Mutex<Assembled>,
}

#[derive(Clone)]
struct Assembled {
    config: Arc<Config>,
    key_sets: Option<Arc<JwksCache>>,
}

impl RunningNode {
    /// Opens the doors of the first assembly.
    pub(crate) fn begin(parts: NodeParts, assembly: Assembly) -> Result<Self, BuildError> {
        let (service, doors_handle) = (assembly.service.clone(), DoorsHandle::new(assembly.doors.clone()));
        let assembled = Assembled { config: Arc::clone(&assembly.config), key_sets: assembly.key_sets.clone() };
        service.gateway.show_at(doors_handle.clone());
        let node = Self { parts, service, doors_handle, assembled: Mutex::new(assembled) };
        node.put_in_place(assembly)?;
        Ok(node)
    }

    pub(crate) fn parts(&self) -> &NodeParts {
        &self.parts
    }

    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    pub(crate) fn doors_handle(&self) -> &DoorsHandle {
        &self.doors_handle
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        self.assembled().config
    }

    pub(super) fn now(&self) -> Timestamp {
        self.service.chancery.now()
    }

    pub(super) async fn alone(&self) -> MutexGuard<'_, ()> {
        self.service.gateway.alone().await
    }

    /// Everything of a change that can go wrong.
    pub(super) async fn prepare(
        &self,
        config: &Config,
        callers: Vec<CallerRecord>,
        places: &Places,
    ) -> Result<Assembly, Vec<ConfigFault>> {
        let Assembled { config: before, key_sets } = self.assembled();
        let replaced = Replaced { config: before, doors: self.doors_handle.doors(), service: self.service.clone(), key_sets };
        assemble(config, callers, &self.parts, Some(&replaced)).await.map_err(|error| placed(error, places))
    }

    /// Puts an assembly in the place of the one that counts. Only callers that the operator added meanwhile can stand in its way; then
    /// nothing has changed.
    pub(super) fn put_in_place(&self, assembly: Assembly) -> Result<(), BuildError> {
        let Assembly { config, callers, key_sets, rules, gateway_parts, agents, remotes, egress, doors, service } = assembly;
        self.parts.caller_directory.callers.configure(callers)?;
        let chancery = &service.chancery;
        service.gateway.refit(gateway_parts, agents, remotes, || {
            chancery.set_limits(config.limits.tasks.clone());
            chancery.set_retention(config.retention.clone());
            chancery.set_dedupe(config.node.dedupe);
            chancery.set_skill_routing(self.parts.own.in_code.skill_routing(&config.routing));
            chancery.set_rules(rules);
            if let (Some(webhooks), Some(egress)) = (&service.webhooks, &egress) {
                webhooks.take_egress(egress);
            }
            self.doors_handle.replace(doors);
        });
        *self.assembled.lock().unwrap_or_else(PoisonError::into_inner) = Assembled { config, key_sets };
        // The cards were rendered before the callers counted that they say the credentials of.
        if let Err(error) = self.doors_handle.publish(&self.parts.keys.ring()) {
            tracing::error!(%error, "cannot sign the cards again; the node serves the old ones");
        }
        Ok(())
    }

    fn assembled(&self) -> Assembled {
        self.assembled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
