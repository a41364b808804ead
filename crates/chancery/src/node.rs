//! One node put together: agents, store, service and doors.

mod elsewhere;
mod shelf;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chancery_core::routing::PeerSelector;
use chancery_core::{Chancery, Clock, Parts, StoreError, SystemClock, TaskRunner};
use chancery_identity::SealKey;
use chancery_identity::credentials::{CertificateName, IdentityResolver};
use chancery_identity::hop_token::HopTokens;
use chancery_inbound::{Doors, Entrance, Tls};
use chancery_protocol::AgentCard;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::shelf::Shelf;
use crate::admin::{self, House, Office};
use crate::agent_book::AgentBook;
use crate::artifact_desk;
use crate::authentication::{Reception, authenticator, check_grants, configured_callers, key_sets};
use crate::build_error::BuildError;
use crate::caller_book::CallerBook;
use crate::config::{AgentConfig, Config, ConfigFile, NodeConfig, PublicUrl, SwpUrl, TlsConfig};
use crate::data_folder::DataFolder;
use crate::gateway::{Fleet, Site, Workplace, gather};
use crate::hops::SignedHops;
use crate::key_chest::{KeyChest, Signers, keep_published};
use crate::lineup::Lineup;
use crate::memory::NodeMemory;
use crate::mount::Mount;
use crate::record_keeper;
use crate::reload::{Behind, Grounds, ReloadError, Reloaded, Reloader, Source, door_settings, furnish};
use crate::seal::KeySeal;
use crate::webhooks::Webhooks;

/// A control plane with its doors. It works from the moment it is built; `router` or `serve` let callers in.
#[derive(Debug)]
pub struct Node {
    chancery: Chancery,
    entrance: Entrance,
    folder: Option<Arc<DataFolder>>,
    tls: Option<Tls>,
    swp_tls: Option<Tls>,
    tls_config: TlsConfig,
    reloader: Arc<Reloader>,
}

/// What a node is built from. The default keeps tasks in memory and calls itself `http://127.0.0.1:7420`.
#[derive(Default)]
#[must_use]
pub struct NodeBuilder {
    own: Lineup,
    serves_configured: bool,
    source: Option<Source>,
    resolver: Option<Arc<dyn IdentityResolver>>,
    public_url: Option<String>,
    swp_url: Option<SwpUrl>,
    config: Config,
    folder: Option<PathBuf>,
    in_memory: bool,
    answer_before_commit: bool,
}

impl std::fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeBuilder").field("config", &self.config).field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl NodeBuilder {
    /// Serves an agent at `/agents/NAME`; the first one given also at the root. A card without interfaces gets those of
    /// this node.
    pub fn agent(self, name: impl Into<String>, card: AgentCard, runner: impl TaskRunner) -> Self {
        self.shared_agent(name, card, Arc::new(runner))
    }

    /// The same, for a runner that is held elsewhere too.
    pub fn shared_agent(mut self, name: impl Into<String>, card: AgentCard, runner: Arc<dyn TaskRunner>) -> Self {
        self.own.here(name.into(), card, runner, true);
        self
    }

    /// An agent for the others of this process. It is not shown to callers from outside, who would see how the work is
    /// divided, unless `with_a2a_exposure` says so.
    pub fn subagent(mut self, name: impl Into<String>, card: AgentCard, runner: impl TaskRunner) -> Self {
        self.own.here(name.into(), card, Arc::new(runner), false);
        self
    }

    /// Whether callers from outside can see and call the agent given last.
    pub fn with_a2a_exposure(mut self, exposed: bool) -> Self {
        if let Some(last) = self.own.here.last_mut() {
            last.exposed = exposed;
        }
        self
    }

    /// Stands in front of an agent elsewhere, at `/agents/NAME`; the first agent given also answers at the root.
    pub fn remote_agent(mut self, name: impl Into<String>, agent: AgentConfig) -> Self {
        self.own.elsewhere(name.into(), agent);
        self
    }

    /// What does the work of the agent elsewhere that was given last when nobody there can be asked, where `routing.fallback` is
    /// "local". Whatever it begins it goes on with.
    pub fn with_local(mut self, runner: impl TaskRunner) -> Self {
        if let Some((_, name, _)) = self.own.elsewhere.last() {
            self.own.in_code.locals.insert(name.clone(), Arc::new(runner));
        }
        self
    }

    /// Chooses among the replicas of agents elsewhere, unless the config says something about routing.
    pub fn peer_selector(mut self, selector: impl PeerSelector + 'static) -> Self {
        self.own.in_code.selector = Some(Arc::new(selector));
        self
    }

    /// Whether what the config says of routing counts before what the program does. It does, if this is not called.
    pub fn config_override_allowed(mut self, allowed: bool) -> Self {
        self.own.in_code.outranks_config = !allowed;
        self
    }

    /// Hosts and tenants that an agent's config has for the agent of that name, which is given to the node otherwise. Agents
    /// elsewhere bring theirs.
    pub fn names_of(mut self, name: &str, agent: &AgentConfig) -> Self {
        self.own.signs.of_agent(name, agent);
        self
    }

    /// What callers who proved who they are see instead of the card of the agent given last.
    pub fn extended_card(mut self, card: AgentCard) -> Self {
        if let Some(last) = self.own.here.last_mut() {
            last.extended = Some(card);
        }
        self
    }

    /// Decides which agents may call, by the ids of their keys.
    pub fn identity_resolver(mut self, resolver: impl IdentityResolver + 'static) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Keeps tasks in memory only.
    pub fn memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Keeps tasks in a database in this folder, with the node's keys and the operator's token beside it.
    pub fn sqlite(mut self, folder: impl Into<PathBuf>) -> Self {
        self.in_memory = false;
        self.data(folder)
    }

    /// Keeps the node's keys and the operator's token in this folder, and tasks too unless `memory` was asked for.
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Where callers reach the node; cards say so.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into());
        self
    }

    /// Where SWP peers reach the node; cards say so. What the config says of it counts before.
    pub fn swp_url(mut self, url: Option<SwpUrl>) -> Self {
        self.swp_url = url;
        self
    }

    /// Everything a config says but its agents, its data folder and where to listen, which are left to the caller.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Also serves the agents of the config, after those that are given in code.
    pub fn configured_agents(mut self) -> Self {
        self.serves_configured = true;
        self
    }

    /// The config of a file that can be read anew while the node runs, its agents included. `settle` puts over it what
    /// outranks the file.
    pub fn config_file(mut self, file: ConfigFile, settle: impl Fn(Config) -> Config + Send + Sync + 'static) -> Self {
        self.config = settle(file.config);
        self.source = Some(Source { file: file.path, digest: file.digest, settle: Arc::new(settle) });
        self.configured_agents()
    }

    /// Breaks durability on purpose, so that the crash test can prove that it would notice.
    #[doc(hidden)]
    pub fn answer_before_commit(mut self, broken: bool) -> Self {
        self.answer_before_commit = broken;
        self
    }

    /// Opens the store, takes up what the last run left behind, and starts to keep house.
    pub async fn build(self) -> Result<Node, BuildError> {
        let public_url = self.read_public_url()?;
        let config = self.config;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let folder = self.folder.map(DataFolder::claim).transpose()?.map(Arc::new);
        let configured = configured_callers(&config)?;
        let callers = Arc::new(CallerBook::open(folder.clone(), configured.clone())?);
        let keys = Arc::new(KeyChest::open(folder.clone())?);
        let tls = config.tls.load()?.map(Tls::new).transpose()?;
        let swp_tls = if config.swp.door.listen.is_some() { config.tls.load()?.map(Tls::for_swp).transpose()? } else { None };
        let swp_url = config.swp.door.public_url.clone().or(self.swp_url);
        let reception = Reception { callers, resolver: self.resolver, public_url, swp_url, clock };
        let preview = reception.callers.preview(&configured)?;
        let mut fetched = None;
        let authenticator = authenticator(&config, &reception, preview, || {
            let sets = key_sets(&config, &reception)?;
            fetched = Some(Arc::clone(&sets));
            Ok(sets)
        })?;
        let own = self.own.clone();
        let lineup = if self.serves_configured { own.and_configured(&config, |_, _| None) } else { own };
        let signs = Arc::new(lineup.signs.clone());
        let mount = Mount::new(reception.public_url.clone(), &authenticator, signs, &config).also_at(reception.swp_url.clone());
        let place = Workplace {
            config: Arc::new(config.clone()),
            public_url: reception.public_url.url().clone(),
            swp_url: reception.swp_url.clone(),
            clock: Arc::clone(&reception.clock),
            book: Arc::new(AgentBook::open(folder.clone())?),
            knows_callers: mount.knows_callers(),
            in_code: lineup.in_code.clone(),
            known_names: keys.agents(),
        };
        let signposts = Arc::new(mount.signposts()?);
        let site = Site { place, mount };
        let (given, remotes) = gather(&site.place, lineup, None).await?;
        let agents = site.mount.all(given)?;
        check_grants(&reception.callers, &agents)?;
        furnish(&keys, &agents, &config, reception.clock.now())?;
        let admin_token = folder.as_deref().map(DataFolder::admin_token).transpose()?;
        let recorder = record_keeper::recorder(&config.evidence, &keys, reception.clock.now());
        let on_disk = folder.as_deref().filter(|_| !self.in_memory);
        let Shelf { store, outbox, key } = Shelf::open(on_disk, &config, self.answer_before_commit, recorder.clone())?;
        let webhooks =
            Webhooks::open(&config, &reception.public_url, folder.clone(), outbox, reception.clock.now())?.map(Arc::new);
        let rules = config.rulebook().map_err(BuildError::Rules)?;
        let hops = Arc::new(HopTokens::new(reception.public_url.to_string(), &keys.ring()));
        let chancery = Chancery::new(Parts {
            agents,
            store,
            clock: Arc::clone(&reception.clock),
            seal: Arc::new(KeySeal(key)),
            limits: config.limits.tasks.clone(),
            retention: config.retention.clone(),
            dedupe: config.node.dedupe,
            rules,
            hops: Some(Arc::new(SignedHops(Arc::clone(&hops)))),
            push: webhooks.as_ref().map(|webhooks| webhooks.parts.clone()),
        });
        // Before anything is taken up again that may need them.
        let memory = NodeMemory::of(&chancery, &config.memory, &keys, reception.clock.now())?;
        let tier = memory.as_ref().map(|memory| memory.gate.tier());
        artifact_desk::set_up(&chancery, &config.artifacts, tier, &reception.public_url.to_string())?;
        let recovered = chancery.recover().await.map_err(BuildError::Recovery)?;
        if recovered.failed + recovered.resumed > 0 {
            tracing::info!(failed = recovered.failed, resumed = recovered.resumed, "took up tasks the last run left unfinished");
        }
        let engine = webhooks.as_ref().and_then(|webhooks| webhooks.start(&chancery, &keys.ring()));
        let book = Arc::clone(&site.place.book);
        let fleet = Fleet::new(site, remotes, Arc::clone(&keys), chancery.clone());
        let behind = Behind::default();
        let office = Office {
            callers: Arc::clone(&reception.callers),
            keys: Arc::clone(&keys),
            clock: Arc::clone(&reception.clock),
            open: authenticator.is_open(),
            house: Arc::new(House::of(&config, chancery.clone())),
            memory: memory.clone(),
            engine: engine.clone(),
            webhooks: webhooks.clone(),
        };
        let routes = admin::routes(office, &fleet, &behind);
        let settings = door_settings(&config, &reception.public_url, authenticator, admin_token.clone(), routes, signposts);
        let entrance = Entrance::new(Doors::new(chancery.clone(), settings, &keys.ring())?);
        let keeper = chancery.clone();
        tokio::spawn(async move { keeper.keep_swept().await });
        fleet.start(entrance.clone());
        let signers = Signers { hops, webhooks: webhooks.clone() };
        let published = (Arc::clone(&keys), Arc::clone(&reception.callers));
        tokio::spawn(keep_published(entrance.clone(), published.0, published.1, signers, recorder, chancery.clone()));
        tokio::spawn(record_keeper::keep(chancery.clone(), config.evidence.clone()));
        let tls_config = config.tls.clone();
        let grounds = Grounds {
            chancery: chancery.clone(),
            entrance: entrance.clone(),
            reception,
            keys,
            memory,
            book,
            fleet,
            admin_token,
            own: self.own,
            serves_configured: self.serves_configured,
            key_sets: Mutex::new(fetched),
            behind,
            engine,
            webhooks,
        };
        Ok(Node { chancery, entrance, folder, tls, swp_tls, tls_config, reloader: Reloader::new(grounds, self.source, config) })
    }

    fn read_public_url(&self) -> Result<PublicUrl, BuildError> {
        let NodeConfig { listen, public_url, .. } = &self.config.node;
        let configured = || public_url.as_ref().map(ToString::to_string);
        let url = self.public_url.clone().or_else(configured).unwrap_or_else(|| format!("http://{listen}"));
        PublicUrl::try_from(url.clone()).map_err(|fault| BuildError::PublicUrl { url, fault })
    }
}

impl Node {
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    /// All doors, to be merged into an axum app of your own.
    pub fn router(&self) -> axum::Router {
        self.entrance.router()
    }

    /// Lets callers in through a listener, until `stop` fires and the open connections are done.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        chancery_inbound::serve(listener, self.tls.clone(), self.entrance.clone(), stop).await;
    }

    /// The same for SWP peers. Over TLS they show certificates; without it, nobody may be on the way to read along.
    pub async fn serve_swp(&self, listener: TcpListener, stop: CancellationToken) {
        chancery_inbound::serve_swp(listener, self.swp_tls.clone(), self.entrance.clone(), stop).await;
    }

    /// Whether everybody may call: nobody is configured as a caller, and nobody has to prove anything.
    pub fn is_open(&self) -> bool {
        self.entrance.doors().authenticator().is_open()
    }

    /// Reads the config file anew. All of it holds from now on, or none of it and all that is wrong with it comes back.
    pub async fn reload(&self) -> Result<Reloaded, ReloadError> {
        self.reloader.reload().await
    }

    /// Reloads the config file whenever it changes. Does nothing for a node without one.
    pub fn watch_config(&self) -> Result<(), BuildError> {
        self.reloader.watch().map_err(|error| BuildError::Watch(error.to_string()))
    }

    pub fn speaks_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The certificate that new connections are shown, by its fingerprint.
    pub fn certificate(&self) -> Option<CertificateName> {
        self.tls.as_ref().map(|tls| CertificateName::Sha256(SealKey::digest(&tls.certificate())))
    }

    /// Reads certificate and key anew. New connections get them; a fault changes nothing.
    pub fn reload_tls(&self) -> Result<(), BuildError> {
        for tls in [&self.tls, &self.swp_tls].into_iter().flatten() {
            if let Some(material) = self.tls_config.load()? {
                tls.replace(material)?;
            }
        }
        Ok(())
    }

    /// The service behind the doors.
    pub fn chancery(&self) -> &Chancery {
        &self.chancery
    }

    pub fn data_folder(&self) -> Option<&DataFolder> {
        self.folder.as_deref()
    }

    /// Closes streams, gives running turns some time, and makes sure that all that was recorded is durable.
    pub async fn shut_down(&self, patience: Duration) -> Result<(), StoreError> {
        self.chancery.shut_down(patience).await
    }
}

#[cfg(test)]
mod tests;
