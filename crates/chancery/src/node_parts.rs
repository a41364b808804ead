//! The parts that last as long as a node, and the service that its first assembly makes. A reload keeps both.

use std::sync::Arc;

use chancery_core::notify::Engine;
use chancery_core::{Agents, Chancery, ChanceryParts, Dedupe, RetentionConfig, Rulebook, Store, TaskLimits, node_tag};
use chancery_evidence::record::Recorder;
use chancery_identity::hop_token::HopTokens;
use chancery_outbound::Guard;
use chancery_rules::policy::{Expression, PolicyRule, RuleKind, Rules};
use secrecy::SecretString;

use crate::agent_identities::NodeIdentities;
use crate::agent_registry::AgentRegistry;
use crate::authentication::CallerDirectory;
use crate::build_error::BuildError;
use crate::config::Config;
use crate::configured_agents::ConfiguredAgents;
use crate::data_folder::DataFolder;
use crate::gateway::{Gateway, GatewayParts};
use crate::hops::SignedHops;
use crate::key_registry::KeyRegistry;
use crate::memory::NodeMemory;
use crate::opened_store::{OpenedStore, StoreChoice};
use crate::part_store;
use crate::postgres_node::Takeover;
use crate::record_keeper;
use crate::reload::ReloaderHandle;
use crate::seal::KeySeal;
use crate::webhooks::Webhooks;

/// Makes the store that the control plane uses from the one that was opened.
pub(crate) type StoreWrapper = Arc<dyn Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync>;

/// A rule of the policy that was given in code.
pub(crate) struct OwnRule {
    pub(crate) name: Arc<str>,
    pub(crate) kind: RuleKind,
    pub(crate) condition: Arc<dyn Expression>,
}

/// What a node is given when it is built and keeps until it ends.
pub(crate) struct NodeParts {
    pub(crate) folder: Option<Arc<DataFolder>>,
    /// Where tasks are kept.
    pub(crate) store_choice: StoreChoice,
    /// Rules that were given in code.
    pub(crate) policies: Vec<OwnRule>,
    pub(crate) store_wrapper: Option<StoreWrapper>,
    pub(crate) caller_directory: CallerDirectory,
    pub(crate) keys: Arc<KeyRegistry>,
    pub(crate) agent_registry: Arc<AgentRegistry>,
    /// Agents that were given in code.
    pub(crate) own: ConfiguredAgents,
    /// Whether the agents of the config are served too.
    pub(crate) serves_configured: bool,
    pub(crate) admin_token: Option<SecretString>,
    pub(crate) behind: ReloaderHandle,
}

impl NodeParts {
    /// Adds the rules that were given in code behind those of a config.
    pub(crate) fn add_policies(&self, rules: &mut Rules) -> Result<(), BuildError> {
        for OwnRule { name, kind, condition } in &self.policies {
            let rule = PolicyRule { name: Arc::clone(name), kind: *kind, condition: Box::new(Arc::clone(condition)) };
            rules.add(rule).map_err(|fault| BuildError::Rules(vec![fault]))?;
        }
        Ok(())
    }

    /// Agents that callers may be granted although the config does not have them.
    pub(crate) fn other_agents(&self) -> Vec<String> {
        let given = self.own.here.iter().map(|given| given.name.clone());
        let elsewhere = self.own.elsewhere.iter().map(|(_, name, _)| name.clone());
        let added = self.agent_registry.added().into_iter().map(|record| record.name);
        given.chain(elsewhere).chain(added).chain(self.agent_registry.given_names()).collect()
    }
}

/// The control plane and what works beside it. It is made once, from keys of the config that need a restart.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) chancery: Chancery,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) memory: Option<NodeMemory>,
    /// Delivers notifications, where there are webhooks.
    pub(crate) engine: Option<Arc<Engine>>,
    pub(crate) webhooks: Option<Arc<Webhooks>>,
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) hops: Arc<HopTokens>,
    /// Tells when another node has taken the store over.
    pub(crate) takeover: Option<Takeover>,
}

impl Service {
    /// Opens the store. The assembly sets limits, rules and all else that a reload can change.
    pub(crate) async fn new(
        config: &Config,
        parts: &NodeParts,
        gateway_parts: &GatewayParts,
        agents: &Agents,
        egress: Option<&Guard>,
    ) -> Result<Self, BuildError> {
        let (caller_directory, keys) = (&parts.caller_directory, &parts.keys);
        let now = caller_directory.clock.now();
        let recorder = record_keeper::recorder(&config.evidence, keys, now);
        let (choice, folder) = (&parts.store_choice, parts.folder.as_deref());
        let OpenedStore { store, outbox, key, takeover } =
            OpenedStore::open(choice, folder, &config.store.sqlite(), recorder.clone()).await?;
        let store = parts.store_wrapper.as_ref().map_or_else(|| Arc::clone(&store), |wrap| wrap(Arc::clone(&store)));
        caller_directory.nonces.keep_in(Arc::clone(&store));
        let webhooks = match egress {
            Some(egress) => {
                let opened =
                    Webhooks::open(&config.push, &caller_directory.public_url, egress, parts.folder.clone(), outbox, now)?;
                opened.vault.warn_if_lost(opened.parts.outbox.outbox_load().await?.lanes);
                Some(Arc::new(opened))
            }
            None => None,
        };
        let seal = Arc::new(KeySeal(key));
        let hops = Arc::new(HopTokens::new(node_tag(&*seal), &keys.ring()));
        let chancery = Chancery::new(ChanceryParts {
            agents: agents.clone(),
            store,
            clock: Arc::clone(&caller_directory.clock),
            seal,
            limits: TaskLimits::default(),
            retention: RetentionConfig::default(),
            dedupe: Dedupe::default(),
            rules: Rulebook::default(),
            hops: Some(Arc::new(SignedHops(Arc::clone(&hops)))),
            push: webhooks.as_ref().map(|webhooks| webhooks.parts.clone()),
        });
        chancery.set_address_rotations(parts.agent_registry.address_rotations());
        let memory = NodeMemory::of(&chancery, &config.memory, keys, now)?;
        let tier = memory.as_ref().map(NodeMemory::tier);
        part_store::set_up(&chancery, &config.artifacts, tier, &caller_directory.public_url.to_string())?;
        let engine = webhooks.as_ref().and_then(|webhooks| webhooks.engine(&chancery, &keys.ring()));
        let gateway = Gateway::new(gateway_parts.clone(), Arc::clone(keys), chancery.clone());
        let identities = NodeIdentities::new(Arc::clone(keys), Arc::clone(&caller_directory.clock), &gateway);
        chancery.set_agent_identities(Arc::new(identities));
        Ok(Self { chancery, gateway, memory, engine, webhooks, recorder, hops, takeover })
    }
}
