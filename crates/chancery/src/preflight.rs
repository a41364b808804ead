//! What a node would refuse to start with, found before it starts: the same for `chancery serve` and `chancery validate`.

use std::path::Path;
use std::sync::Arc;

use chancery_core::{Clock as _, SystemClock};
use chancery_identity::credentials::CallerRecord;
use chancery_inbound::Tls;
use chancery_memory::Schemas;

use crate::agent_registry::AgentRegistry;
use crate::authentication::{CallerDirectory, authenticator, callers_with_keys, key_sets};
use crate::build_error::BuildError;
use crate::caller_registry::CallerRegistry;
use crate::config::store::contradictions;
use crate::config::{
    AgentSource, Config, ConfigFault, KeySource, KeysConfig, Places, PublicUrl, unknown_agents, unknown_revisits,
};
use crate::exposure::{open_listener_fault, plain_swp_fault};
use crate::gateway::{InCode, Remote, RemoteParts};
use crate::key_registry::KeyRegistry;
use crate::postgres_node;
use crate::reload::placed;
use crate::scope_names;
use crate::start_place;
use crate::webhooks;

/// What a config is checked against beside itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings<'a> {
    /// The data folder, whose callers and agents count.
    pub folder: Option<&'a Path>,
    /// Whether the node is started with `--insecure`.
    pub insecure: bool,
    /// Whether the node is started with `--memory`.
    pub in_memory: bool,
    /// Leaves out what depends on this machine: variables of the environment, files, the data folder, and a database.
    pub offline: bool,
}

/// What is wrong with a config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preflight {
    /// What a node does not start with.
    pub faults: Vec<ConfigFault>,
    /// Budgets and policies that apply to no caller, and allowed revisits of agents that do not exist. The
    /// node starts, and warns of them.
    pub unmatched: Vec<ConfigFault>,
    /// Budgets that callers of an open node evade. The node starts, and warns of them.
    pub evadable: Vec<ConfigFault>,
}

/// Makes everything that a start makes of a config and that leaves nothing behind.
pub async fn preflight(config: &Config, places: &Places, around: &Surroundings<'_>) -> Preflight {
    let folder = around.folder.filter(|_| !around.offline);
    let added_callers = folder.map(CallerRegistry::added_in).unwrap_or_default();
    let added_agents = folder.map(AgentRegistry::names_in).unwrap_or_default();
    let mut faults = Vec::new();
    // Agents that nobody named get the names on their cards, which only a start can read.
    if config.agents.iter().all(|(_, agent)| !agent.unnamed) {
        faults.extend(unknown_agents(config, places, &added_agents));
    }
    let public_url =
        config.node.public_url.clone().map_or_else(|| PublicUrl::try_from(format!("http://{}", config.node.listen)), Ok);
    match public_url {
        Ok(public_url) => faults.extend(Attempt { config, places, around, public_url }.faults(&added_callers)),
        Err(fault) => faults.push(places.fault("public_url", &fault)),
    }
    let contradictions = contradictions(config, places, around.in_memory);
    if contradictions.is_empty() && !around.in_memory && !around.offline {
        faults.extend(database(config, places).await);
    }
    faults.extend(contradictions);
    faults.sort_by_key(|fault| (fault.line, fault.column));
    faults.dedup();
    let mut unmatched = scope_names::unmatched(config, places, &added_callers, &added_agents);
    if config.agents.iter().all(|(_, agent)| !agent.unnamed) {
        let known: Vec<String> = added_agents.into_iter().chain(known_ids(folder)).collect();
        unmatched.extend(unknown_revisits(config, places, &known));
    }
    Preflight { faults, unmatched, evadable: scope_names::evadable(config, places, &added_callers) }
}

/// What keeps a node from working with its database. A node that uses it now goes on.
async fn database(config: &Config, places: &Places) -> Option<ConfigFault> {
    let options = config.store.postgres()?;
    let refusal = postgres_node::probe(options).await.err()?;
    Some(places.fault("store.url", &refusal.to_string()))
}

/// The AgentIDs by which agents are known in a data folder: those they are held to, and those of the cards shown for them.
fn known_ids(folder: Option<&Path>) -> Vec<String> {
    let pinned = folder.map(AgentRegistry::pinned_ids_in).unwrap_or_default();
    let shown = folder.map(KeyRegistry::card_ids_in).unwrap_or_default();
    pinned.into_iter().chain(shown).map(|id| id.to_string()).collect()
}

/// A start that stops short of the data folder and the sockets.
struct Attempt<'a> {
    config: &'a Config,
    places: &'a Places,
    around: &'a Surroundings<'a>,
    public_url: PublicUrl,
}

impl Attempt<'_> {
    fn faults(&self, added: &[CallerRecord]) -> Vec<ConfigFault> {
        let mut faults = self.callers(added);
        if self.config.push.offer.enabled {
            faults.extend(self.failed(webhooks::guard(self.config, &self.public_url)));
        }
        let swp = self.config.swp.door.listen;
        let plain = swp.and_then(|listen| plain_swp_fault(listen, self.config.tls.cert_file.is_some(), self.around.insecure));
        faults.extend(plain.map(|fault| self.places.fault("swp.listen", &fault)));
        let listen = self.config.node.listen;
        if swp.is_some_and(|swp| start_place::collide(swp, listen)) {
            faults.push(self.places.fault("swp.listen", &format!("is the port of listen = {listen}; SWP needs one of its own")));
        }
        if !self.around.offline {
            faults.extend(self.start_place());
            faults.extend(self.failed(self.tls()));
            faults.extend(self.keys());
            faults.extend(self.agents_elsewhere());
            faults.extend(self.failed(self.schemas()));
            if self.config.push.offer.enabled {
                faults.extend(self.failed(webhooks::secrets(&self.config.push)));
            }
        }
        faults
    }

    /// Addresses and folders that this machine does not have.
    fn start_place(&self) -> Vec<ConfigFault> {
        let listens = [("listen", Some(self.config.node.listen)), ("swp.listen", self.config.swp.door.listen)];
        let addresses = listens.into_iter().filter_map(|(key, listen)| Some((key, start_place::address_fault(listen?)?)));
        let tier = self.config.memory.tier.as_deref().filter(|tier| !tier.contains("://")).map(Path::new);
        // Without the key the default folder counts, which a node with --memory does not need.
        let data = self.around.folder.filter(|_| self.config.node.data.is_some());
        let folders = [("data", data), ("memory.tier", tier)];
        let folders = folders.into_iter().filter_map(|(key, folder)| Some((key, start_place::folder_fault(folder?)?)));
        addresses.chain(folders).map(|(key, fault)| self.places.fault(key, &fault)).collect()
    }

    fn failed<T>(&self, made: Result<T, BuildError>) -> Vec<ConfigFault> {
        made.err().map(|error| placed(error, self.places)).unwrap_or_default()
    }

    /// Callers and their proofs, and whether the node asks for any where others reach it.
    fn callers(&self, added: &[CallerRecord]) -> Vec<ConfigFault> {
        let listed = || self.config.callers.iter().map(|caller| caller.record.clone()).collect();
        let (configured, mut faults) = match callers_with_keys(self.config, self.places) {
            _ if self.around.offline => (listed(), Vec::new()),
            Ok(records) => (records, Vec::new()),
            Err(faults) => (listed(), faults),
        };
        match self.is_open(configured.into_iter().chain(added.iter().cloned()).collect()) {
            Ok(is_open) => {
                let fault = open_listener_fault(self.config.node.listen, is_open, self.around.insecure);
                faults.extend(fault.map(|fault| self.places.fault("listen", &fault)));
            }
            Err(error) => faults.extend(placed(error, self.places)),
        }
        faults
    }

    fn is_open(&self, records: Vec<CallerRecord>) -> Result<bool, BuildError> {
        let registry = CallerRegistry::open(None, records.clone())?;
        let preview = registry.preview(&records)?;
        let caller_directory = CallerDirectory {
            callers: Arc::new(registry),
            resolver: None,
            public_url: self.public_url.clone(),
            swp_url: None,
            is_insecure: self.around.insecure,
            clock: Arc::new(SystemClock),
            nonces: Arc::default(),
        };
        let sets = key_sets(self.config, &caller_directory)?;
        Ok(authenticator(self.config, &caller_directory, preview, || Ok(sets))?.is_open())
    }

    fn tls(&self) -> Result<(), BuildError> {
        if let Some(material) = self.config.tls.load()? {
            Tls::new(material)?;
        }
        if self.config.swp.door.listen.is_some()
            && let Some(material) = self.config.tls.load()?
        {
            Tls::for_swp(material)?;
        }
        Ok(())
    }

    /// Keys that come from files or the environment, each tried by itself.
    fn keys(&self) -> Vec<ConfigFault> {
        let now = SystemClock.now();
        let tried = |agents: &[(String, Option<KeySource>)], given: &KeysConfig| {
            KeyRegistry::open(None)
                .and_then(|registry| registry.ensure_keys(agents, given, now))
                .err()
                .map(|error| error.to_string())
        };
        let mut faults = Vec::new();
        for (name, agent) in &self.config.agents {
            let Some(source) = &agent.key else { continue };
            let word = if matches!(source, KeySource::File(_)) { "key_file" } else { "key_env" };
            let fault = tried(&[(name.clone(), Some(source.clone()))], &KeysConfig::default());
            faults.extend(fault.map(|fault| self.places.fault(&format!("agents.{name}.{word}"), &fault)));
        }
        let KeysConfig { hop_tokens, push, receipts } = self.config.keys.clone();
        for (key, given) in [
            ("keys.hop_tokens", KeysConfig { hop_tokens, ..KeysConfig::default() }),
            ("keys.push", KeysConfig { push, ..KeysConfig::default() }),
            ("keys.receipts", KeysConfig { receipts, ..KeysConfig::default() }),
        ] {
            if given != KeysConfig::default() {
                faults.extend(tried(&[], &given).map(|fault| self.places.fault(key, &fault)));
            }
        }
        faults
    }

    /// Remote agents: their addresses, keys and credentials. None is called.
    fn agents_elsewhere(&self) -> Vec<ConfigFault> {
        let agent_registry = match AgentRegistry::open(None) {
            Ok(registry) => Arc::new(registry),
            Err(error) => return placed(error.into(), self.places),
        };
        let remote_parts = RemoteParts {
            config: Arc::new(self.config.clone()),
            public_url: self.public_url.url().clone(),
            swp_url: self.config.swp.door.public_url.clone(),
            clock: Arc::new(SystemClock),
            agent_registry,
            knows_callers: false,
            in_code: InCode::default(),
            known_names: Default::default(),
        };
        let elsewhere = self.config.agents.iter().filter(|(_, agent)| matches!(agent.source, AgentSource::Remote(_)));
        let made = elsewhere.map(|(name, agent)| (name, Remote::new(name, agent, false, &remote_parts)));
        made.filter_map(|(name, made)| Some(self.places.fault(&format!("agents.{name}"), &made.err()?))).collect()
    }

    fn schemas(&self) -> Result<(), BuildError> {
        let loaded = self.config.artifacts.schemas.as_deref().map(Schemas::load).transpose();
        loaded.map(drop).map_err(|fault| BuildError::Artifacts(fault.into()))
    }
}
