//! One node put together: agents, store, service and doors.

mod by_name;
mod elsewhere;
mod hosts;
mod own_parts;
mod running;
mod settled_config;

use std::sync::Arc;

use chancery_core::routing::PeerSelector;
use chancery_core::{Chancery, Clock, LoopNeed, SystemClock, TaskRunner};
use chancery_identity::credentials::IdentityResolver;
use chancery_inbound::{DoorsHandle, Tls};
use chancery_protocol::AgentCard;

use self::by_name::ByName;
use self::own_parts::Storage;
use self::running::EndsWithLast;
use crate::agent_registry::AgentRegistry;
use crate::assembly::assemble;
use crate::authentication::{CallerDirectory, configured_callers};
use crate::build_error::BuildError;
use crate::caller_registry::CallerRegistry;
use crate::certificate_check::warn_of_uncovered_hosts;
use crate::config::{AgentConfig, Config, ConfigFile, HostName, NodeConfig, PublicUrl, SwpUrl, TenantName, TlsConfig};
use crate::configured_agents::ConfiguredAgents;
use crate::data_folder::DataFolder;
use crate::key_registry::{KeyRegistry, Signers, keep_published};
use crate::node_parts::{NodeParts, OwnRule, Service, StoreWrapper};
use crate::record_keeper;
use crate::reload::{ConfigSource, Reloader, ReloaderHandle, RunningNode};

/// A control plane with its listeners. It runs from [`build`](NodeBuilder::build) on; [`router`](Self::router) and
/// [`serve`](Self::serve) accept calls.
#[derive(Debug)]
pub struct Node {
    chancery: Chancery,
    doors_handle: DoorsHandle,
    folder: Option<Arc<DataFolder>>,
    tls: Option<Tls>,
    swp_tls: Option<Tls>,
    tls_config: TlsConfig,
    reloader: Arc<Reloader>,
    keys: Arc<KeyRegistry>,
    /// Shared with the routers that were made of this node.
    ends: Arc<EndsWithLast>,
}

/// Collects the parts of a node. Without other settings the node keeps tasks in memory, and its cards have
/// `http://127.0.0.1:7420`.
#[derive(Default)]
#[must_use]
pub struct NodeBuilder {
    own: ConfiguredAgents,
    serves_configured: bool,
    source: Option<ConfigSource>,
    resolver: Option<Arc<dyn IdentityResolver>>,
    public_url: Option<String>,
    swp_url: Option<SwpUrl>,
    override_allowed: Option<bool>,
    config: Config,
    /// Whether `config` was called, and not only `config_file`.
    has_config: bool,
    by_name: ByName,
    storage: Storage,
    is_insecure: bool,
    store_wrapper: Option<StoreWrapper>,
    clock: Option<Arc<dyn Clock>>,
    policies: Vec<OwnRule>,
    /// The first method that was called twice and takes one value.
    repeated: Option<&'static str>,
}

impl std::fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeBuilder")
            .field("config", &self.config)
            .field("folder", &self.storage.folder())
            .finish_non_exhaustive()
    }
}

impl NodeBuilder {
    /// Adds an agent of the program, served at `/agents/NAME`. The first one is also served at the root. A card without
    /// interfaces gets those of this node.
    pub fn agent(self, name: impl Into<String>, card: AgentCard, runner: impl TaskRunner) -> Self {
        self.shared_agent(name, card, Arc::new(runner))
    }

    /// Adds an agent whose runner the program shares.
    pub fn shared_agent(mut self, name: impl Into<String>, card: AgentCard, runner: Arc<dyn TaskRunner>) -> Self {
        self.own.here(name.into(), card, runner, true);
        self
    }

    /// Adds an agent that only other agents of this program and [`Node::executor`] can call.
    /// [`with_a2a_exposure`](Self::with_a2a_exposure) also shows it to callers.
    pub fn subagent(mut self, name: impl Into<String>, card: AgentCard, runner: impl TaskRunner) -> Self {
        self.own.here(name.into(), card, Arc::new(runner), false);
        self
    }

    /// Adds a remote agent behind the node, served at `/agents/NAME`. The first agent is also served at the root.
    pub fn remote_agent(mut self, name: impl Into<String>, agent: AgentConfig) -> Self {
        self.own.elsewhere(name.into(), agent);
        self
    }

    /// Sets the choice among the replicas of remote agents, and among agents with the same skill.
    ///
    /// A config that also chooses, in `[routing]`, is an error unless
    /// [`config_override_allowed`](Self::config_override_allowed) says which of the two counts. A node whose agents leave
    /// nothing to choose cannot be built with a selector.
    pub fn peer_selector(mut self, selector: impl PeerSelector + 'static) -> Self {
        let given = self.own.in_code.selector.replace(Arc::new(selector));
        self.once("peer_selector", given.is_none());
        self
    }

    /// Sets which counts if both choose: `[routing]` of the config with `true`, the
    /// [`peer_selector`](Self::peer_selector) with `false`.
    pub fn config_override_allowed(mut self, allowed: bool) -> Self {
        let given = self.override_allowed.replace(allowed);
        self.once("config_override_allowed", given.is_none());
        self
    }

    /// Adds hosts and tenants that lead to the agent `name`, beside those of the config.
    pub fn names_of(
        mut self,
        name: &str,
        hosts: impl IntoIterator<Item = HostName>,
        tenants: impl IntoIterator<Item = TenantName>,
    ) -> Self {
        self.own.agent_routes.lead_to(name, hosts, tenants);
        self
    }

    /// Sets the decision which agents may call, by their AgentIDs.
    pub fn identity_resolver(mut self, resolver: impl IdentityResolver + 'static) -> Self {
        let given = self.resolver.replace(Arc::new(resolver));
        self.once("identity_resolver", given.is_none());
        self
    }

    /// Sets the URL where callers reach the node, which cards show. Another URL in the config is an error.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        let given = self.public_url.replace(url.into());
        self.once("public_url", given.is_none());
        self
    }

    /// Sets the URL where SWP peers reach the node, which cards show. Another URL in the config is an error.
    pub fn swp_url(mut self, url: SwpUrl) -> Self {
        let given = self.swp_url.replace(url);
        self.once("swp_url", given.is_none());
        self
    }

    /// Sets the config.
    ///
    /// `data` is the folder of the node, unless a call of the builder names the same one. `listen` is what
    /// [`Node::bind`] binds. Agents of the config are served with [`configured_agents`](Self::configured_agents). Without
    /// it, the config can have no agents but those that the program gives, for which price, key, hosts, tenants and
    /// input modes count.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        let given = std::mem::replace(&mut self.has_config, true);
        self.once("config", !given);
        self
    }

    /// Serves the agents of the config too, after those of the program.
    pub fn configured_agents(mut self) -> Self {
        self.serves_configured = true;
        self
    }

    /// Sets the config of a file, and serves its agents. The file can be reloaded while the node runs. `settle` applies
    /// what has precedence over the file.
    pub fn config_file(mut self, file: ConfigFile, settle: impl Fn(Config) -> Config + Send + Sync + 'static) -> Self {
        self.config = settle(file.config);
        let source = ConfigSource { file: file.path, digest: file.digest, settle: Arc::new(settle) };
        let given = self.source.replace(source);
        self.once("config_file", given.is_none());
        self.configured_agents()
    }

    /// Builds the node: opens the store, recovers the tasks of the last run, and starts the background loops.
    ///
    /// Every call of the builder takes effect, or `build` returns an error that names it.
    pub async fn build(mut self) -> Result<Node, BuildError> {
        if let Some(method) = self.repeated {
            return Err(BuildError::Repeated(method));
        }
        if self.has_config && self.source.is_some() {
            return Err(BuildError::Contradiction("both config() and config_file() set the config"));
        }
        self.settle_names()?;
        self.settle_config()?;
        let public_url = self.read_public_url()?;
        let config = self.config;
        let (folder, store_choice) = self.storage.settle(config.node.data.clone(), config.store.postgres())?;
        let folder = folder.map(DataFolder::claim).transpose()?.map(Arc::new);
        let configured = configured_callers(&config)?;
        let tls = config.tls.load()?.map(Tls::new).transpose()?;
        tls.iter().for_each(|tls| warn_of_uncovered_hosts(tls, config.node.listen.ip(), public_url.url()));
        let swp_tls = if config.swp.door.listen.is_some() { config.tls.load()?.map(Tls::for_swp).transpose()? } else { None };
        let caller_directory = CallerDirectory {
            // The callers of the config are put in place with the rest of it.
            callers: Arc::new(CallerRegistry::open(folder.clone(), Vec::new())?),
            resolver: self.resolver,
            public_url,
            swp_url: self.swp_url.or_else(|| config.swp.door.public_url.clone()),
            is_insecure: self.is_insecure,
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock)),
            nonces: Arc::default(),
        };
        let parts = NodeParts {
            store_choice,
            policies: self.policies,
            store_wrapper: self.store_wrapper,
            caller_directory,
            keys: Arc::new(KeyRegistry::open(folder.clone())?),
            agent_registry: Arc::new(AgentRegistry::open(folder.clone())?),
            own: self.own,
            serves_configured: self.serves_configured,
            admin_token: folder.as_deref().map(DataFolder::admin_token).transpose()?,
            behind: ReloaderHandle::default(),
            folder: folder.clone(),
        };
        let assembly = assemble(&config, configured, &parts, None).await?;
        let keys = Arc::clone(&parts.keys);
        let running = RunningNode::begin(parts, assembly)?;
        let Service { chancery, gateway, webhooks, recorder, hops, engine, takeover, .. } = running.service().clone();
        let doors_handle = running.doors_handle().clone();
        let callers = Arc::clone(&running.parts().caller_directory.callers);
        let reloader = Reloader::new(running, self.source);
        let ends = Arc::new(EndsWithLast(chancery.clone()));
        let node = Node { chancery, doors_handle, folder, tls, swp_tls, tls_config: config.tls, reloader, keys, ends };
        if let Some(takeover) = takeover {
            takeover.watch(&node.chancery);
        }
        let recovered = node.chancery.recover().await.map_err(BuildError::Recovery)?;
        if recovered.failed + recovered.resumed > 0 {
            tracing::info!(
                failed = recovered.failed,
                resumed = recovered.resumed,
                "recovered the tasks that the last run left unfinished"
            );
        }
        if let Some(engine) = engine {
            engine.start(&node.chancery);
        }
        gateway.start();
        let (chancery, loops) = (&node.chancery, node.chancery.loops());
        let keeper = chancery.clone();
        loops.start("retention", LoopNeed::Vital, async move { keeper.keep_swept().await });
        let signers = Signers { hops, webhooks };
        let publishing =
            keep_published(node.doors_handle.clone(), Arc::clone(&node.keys), callers, signers, recorder, chancery.clone());
        loops.start("keys and cards", LoopNeed::Vital, publishing);
        let recording = record_keeper::keep(chancery.clone(), config.evidence, Arc::clone(&node.keys));
        loops.start("record", LoopNeed::Vital, recording);
        Ok(node)
    }

    /// Remembers a method that takes one value and was called before. `build` returns the error.
    fn once(&mut self, method: &'static str, is_first: bool) {
        if !is_first {
            self.repeated.get_or_insert(method);
        }
    }

    fn read_public_url(&self) -> Result<PublicUrl, BuildError> {
        let NodeConfig { listen, public_url: configured, .. } = &self.config.node;
        let read = |url: String| PublicUrl::try_from(url.clone()).map_err(|fault| BuildError::PublicUrl { url, fault });
        match (self.public_url.clone().map(read).transpose()?, configured.clone()) {
            (Some(given), Some(configured)) if given != configured => {
                Err(BuildError::Contradiction("public_url() and public_url of the config differ"))
            }
            (Some(url), _) | (None, Some(url)) => Ok(url),
            (None, None) => read(format!("http://{listen}")),
        }
    }
}

impl Node {
    /// Starts with an empty builder.
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }
}

#[cfg(test)]
mod tests;
