//! One node put together: agents, store, service and doors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::routing::PeerSelector;
use chancery_core::{Agent, Chancery, Clock, Parts, Store, StoreError, SystemClock, TaskRunner};
use chancery_identity::cards::CardFault;
use chancery_identity::credentials::{CertificateName, IdentityResolver};
use chancery_identity::{KeyError, SealKey};
use chancery_inbound::{DoorSettings, Doors, Tls, TlsError};
use chancery_protocol::AgentCard;
use chancery_store::{MemoryStore, SqliteOptions, SqliteStore};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, House, Office};
use crate::agent_book::{AgentBook, AgentBookError};
use crate::authentication::{authenticator, check_grants, configured_callers};
use crate::caller_book::{BookError, CallerBook};
use crate::config::{AgentConfig, Config, NodeConfig, PublicUrl, TlsConfig, TlsFileError};
use crate::data_folder::{DataFolder, FolderError};
use crate::gateway::{Fleet, InCode, Workplace, gather};
use crate::key_chest::{ChestError, KeyChest, keep_published};
use crate::mount::{Given, Mount};
use crate::seal::KeySeal;
use crate::signs::Signs;

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("a node needs at least one agent")]
    NoAgent,
    #[error("the agent name {0:?} is taken, or is not made of a-z, 0-9, - and _")]
    AgentName(String),
    #[error("the first agent answers at the root, so {0} cannot be hidden")]
    Hidden(String),
    #[error("the public URL {url:?} {fault}")]
    PublicUrl { url: String, fault: String },
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Keys(#[from] ChestError),
    #[error(transparent)]
    Callers(#[from] BookError),
    #[error(transparent)]
    Agents(#[from] AgentBookError),
    #[error("{0}")]
    Credentials(String),
    #[error("agents.{name}: {fault}")]
    Agent { name: String, fault: String },
    #[error("agents: {0}")]
    Signs(String),
    #[error("the card of an agent: {0}")]
    Card(#[from] CardFault),
    #[error(transparent)]
    TlsFile(#[from] TlsFileError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("outbound: {0}")]
    Outbound(String),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the tasks of the last run could not be taken up: {0}")]
    Recovery(chancery_protocol::Error),
}

/// A control plane with its doors. It works from the moment it is built; `router` or `serve` let callers in.
#[derive(Debug)]
pub struct Node {
    chancery: Chancery,
    doors: Doors,
    folder: Option<Arc<DataFolder>>,
    tls: Option<Tls>,
    tls_config: TlsConfig,
    open: bool,
}

/// What a node is built from. The default keeps tasks in memory and calls itself `http://127.0.0.1:7420`.
#[derive(Default)]
#[must_use]
pub struct NodeBuilder {
    agents: Vec<Given>,
    /// Agents elsewhere, each with its place among all of them.
    elsewhere: Vec<(usize, String, AgentConfig)>,
    signs: Signs,
    in_code: InCode,
    resolver: Option<Arc<dyn IdentityResolver>>,
    public_url: Option<String>,
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
        self.agents.push(Given { name: name.into(), card, extended: None, runner, exposed: true });
        self
    }

    /// An agent for the others of this process. It is not shown to callers from outside, who would see how the work is
    /// divided, unless `with_a2a_exposure` says so.
    pub fn subagent(mut self, name: impl Into<String>, card: AgentCard, runner: impl TaskRunner) -> Self {
        self.agents.push(Given { name: name.into(), card, extended: None, runner: Arc::new(runner), exposed: false });
        self
    }

    /// Whether callers from outside can see and call the agent given last.
    pub fn with_a2a_exposure(mut self, exposed: bool) -> Self {
        if let Some(last) = self.agents.last_mut() {
            last.exposed = exposed;
        }
        self
    }

    /// Stands in front of an agent elsewhere, at `/agents/NAME`; the first agent given also answers at the root.
    pub fn remote_agent(mut self, name: impl Into<String>, agent: AgentConfig) -> Self {
        let name = name.into();
        self.signs.of_agent(&name, &agent);
        self.elsewhere.push((self.agents.len() + self.elsewhere.len(), name, agent));
        self
    }

    /// What does the work of the agent elsewhere that was given last when nobody there can be asked, where `routing.fallback` is
    /// "local". Whatever it begins it goes on with.
    pub fn with_local(mut self, runner: impl TaskRunner) -> Self {
        if let Some((_, name, _)) = self.elsewhere.last() {
            self.in_code.locals.insert(name.clone(), Arc::new(runner));
        }
        self
    }

    /// Chooses among the replicas of agents elsewhere, unless the config says something about routing.
    pub fn peer_selector(mut self, selector: impl PeerSelector + 'static) -> Self {
        self.in_code.selector = Some(Arc::new(selector));
        self
    }

    /// Whether what the config says of routing counts before what the program does. It does, if this is not called.
    pub fn config_override_allowed(mut self, allowed: bool) -> Self {
        self.in_code.outranks_config = !allowed;
        self
    }

    /// Hosts and tenants that an agent's config has for the agent of that name, which is given to the node otherwise. Agents
    /// elsewhere bring theirs.
    pub fn names_of(mut self, name: &str, agent: &AgentConfig) -> Self {
        self.signs.of_agent(name, agent);
        self
    }

    /// What callers who proved who they are see instead of the card of the agent given last.
    pub fn extended_card(mut self, card: AgentCard) -> Self {
        if let Some(last) = self.agents.last_mut() {
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

    /// Everything a config says but its agents, its data folder and where to listen, which are left to the caller.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
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
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let folder = self.folder.map(DataFolder::claim).transpose()?.map(Arc::new);
        let callers = Arc::new(CallerBook::open(folder.clone(), configured_callers(&self.config)?)?);
        let keys = Arc::new(KeyChest::open(folder.clone())?);
        let tls = self.config.tls.load()?.map(Tls::new).transpose()?;
        let authenticator = authenticator(&self.config, &callers, self.resolver, &public_url, &clock)?;
        let signs = Arc::new(self.signs);
        let mount = Mount::new(public_url.clone(), &authenticator, Arc::clone(&signs));
        let mut given = self.agents;
        let place = Workplace {
            config: Arc::new(self.config.clone()),
            public_url: public_url.url().clone(),
            clock: Arc::clone(&clock),
            book: Arc::new(AgentBook::open(folder.clone())?),
            knows_callers: mount.knows_callers(),
            in_code: self.in_code,
        };
        let remotes = gather(&place, &mut given, &self.elsewhere).await?;
        let agents = mount.all(given)?;
        check_grants(&callers, &agents)?;
        signs.check(&agents, &public_url)?;
        let key_sources = |agent: &Arc<Agent>| {
            let configured = self.config.agents.iter().find(|(name, _)| **name == *agent.name);
            (agent.name.to_string(), configured.and_then(|(_, agent)| agent.key.clone()))
        };
        keys.furnish(&agents.iter().map(key_sources).collect::<Vec<_>>(), &self.config.keys, clock.now())?;
        let admin_token = folder.as_deref().map(DataFolder::admin_token).transpose()?;
        let (store, key): (Arc<dyn Store>, SealKey) = match &folder {
            Some(folder) if !self.in_memory => {
                let options = SqliteOptions { answer_before_commit: self.answer_before_commit, ..self.config.store.sqlite() };
                (Arc::new(SqliteStore::open(folder.database(), options)?), folder.seal_key()?)
            }
            _ => (Arc::new(MemoryStore::new()), SealKey::new(&SealKey::random_bytes()?)?),
        };
        let Config { node, limits, retention, card, tls: tls_config, .. } = self.config;
        let chancery = Chancery::new(Parts {
            agents,
            store,
            clock: Arc::clone(&clock),
            seal: Arc::new(KeySeal(key)),
            limits: limits.tasks,
            retention,
            dedupe: node.dedupe,
        });
        let recovered = chancery.recover().await.map_err(BuildError::Recovery)?;
        if recovered.failed + recovered.resumed > 0 {
            tracing::info!(failed = recovered.failed, resumed = recovered.resumed, "took up tasks the last run left unfinished");
        }
        let open = authenticator.is_open();
        let house = House {
            chancery: chancery.clone(),
            issuers: self.config.issuers.iter().map(|issuer| issuer.name.clone()).collect(),
            client_certificates: tls_config.client_ca_file.is_some(),
        };
        let office = Office { callers: Arc::clone(&callers), keys: Arc::clone(&keys), clock, open, house: Arc::new(house) };
        let fleet = Fleet::new(place, remotes, mount, Arc::clone(&keys), chancery.clone());
        let settings = DoorSettings {
            public_url: public_url.to_string(),
            headerless: card.headerless,
            limits: limits.inbound,
            json: limits.json,
            admin_token,
            admin_routes: admin::routes(office, &fleet),
            authenticator,
            signposts: Arc::new(signs.signposts(&public_url)?),
        };
        let doors = Doors::new(chancery.clone(), settings, &keys.ring())?;
        let keeper = chancery.clone();
        tokio::spawn(async move { keeper.keep_swept().await });
        fleet.start(doors.clone());
        tokio::spawn(keep_published(doors.clone(), keys, callers, chancery.clone()));
        Ok(Node { chancery, doors, folder, tls, tls_config, open })
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
        self.doors.router()
    }

    /// Lets callers in through a listener, until `stop` fires and the open connections are done.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        chancery_inbound::serve(listener, self.tls.clone(), self.doors.clone(), stop).await;
    }

    /// Whether everybody may call: nobody is configured as a caller, and nobody has to prove anything.
    pub fn is_open(&self) -> bool {
        self.open
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
        if let (Some(tls), Some(material)) = (&self.tls, self.tls_config.load()?) {
            tls.replace(material)?;
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
