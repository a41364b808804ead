//! Agents that an operator added to a running node, and the approved cards of all remote agents.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_core::AddressRotation;
use chancery_outbound::discovery::{CardVerification, Pin, PinKeeper};
use chancery_protocol::{AgentId, AgentName, Timestamp};
use serde::{Deserialize, Serialize};

use crate::agent_facts::FactsFile;
use crate::config::{AgentConfig, AgentSource, CallSettings, RemoteConfig, RemoteCredentials, is_agent_name};
use crate::data_folder::{DataFolder, FolderError};

const FILE: &str = "agents.json";

/// Why the list of added agents cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AgentRegistryError {
    /// The data folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// `agents.json` cannot be parsed.
    #[error("agents.json of the data folder is damaged: {0}")]
    Damaged(String),
    /// The record of an agent has a fault.
    #[error("{0}")]
    Faulty(String),
    /// Another agent has the name.
    #[error("an agent {0} exists already")]
    Taken(String),
    /// No agent has the name.
    #[error("there is no agent {0}")]
    Unknown(String),
    /// The config file or the command line has the agent, so only they can remove it.
    #[error("{0} is in the config file or on the command line of the node; remove it there")]
    Configured(String),
    /// The node has no data folder to write to.
    #[error("agents cannot be added to a node without a data folder; list them in its config")]
    NoFolder,
}

/// A remote agent that was added: the content of an `[agents.NAME]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRecord {
    /// The name in `/agents/NAME`.
    pub name: String,
    /// One, or several that are the same.
    pub urls: Vec<String>,
    /// How the agent's card has to be signed.
    #[serde(default)]
    pub verify: CardVerification,
    /// The id of the key that has to sign the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// On the machine of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_keys: Option<PathBuf>,
    /// What this node sends to authenticate itself.
    #[serde(default)]
    pub credentials: RemoteCredentials,
    /// Replaces the name on the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Replaces the description on the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether calls wait for an operator after the card changed.
    #[serde(default = "unless_told")]
    pub pin: bool,
    /// How it is called, where its card is not to decide.
    #[serde(default, skip_serializing_if = "CallSettings::is_default")]
    pub calls: CallSettings,
}

fn unless_told() -> bool {
    true
}

impl AgentRecord {
    fn fault(&self) -> Option<String> {
        if !is_agent_name(&self.name) {
            return Some(format!("{:?} is no name for an agent: 1 to 64 of a-z, 0-9, - and _", self.name));
        }
        if self.urls.is_empty() {
            return Some("a remote agent needs a URL".to_owned());
        }
        let is_web = |text: &String| {
            url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https" | "swp" | "swps") && url.has_host())
        };
        if let Some(url) = self.urls.iter().find(|url| !is_web(url)) {
            return Some(format!("{url:?} is no http, https, swp or swps URL"));
        }
        self.calls.faults().into_iter().next().map(|(key, fault)| format!("{key}: {fault}"))
    }
}

impl From<&AgentRecord> for AgentConfig {
    fn from(record: &AgentRecord) -> Self {
        let source = AgentSource::Remote(Box::new(RemoteConfig {
            urls: record.urls.clone(),
            verify: record.verify,
            agent_id: record.agent_id.clone(),
            card_keys: record.card_keys.clone(),
            credentials: record.credentials.clone(),
            pin: record.pin,
            local: None,
            calls: record.calls.clone(),
        }));
        Self { title: record.title.clone(), description: record.description.clone(), ..Self::from(source) }
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    agents: Vec<AgentRecord>,
    /// By replica, which are named after their agent and a digest of their URL.
    pins: BTreeMap<String, Arc<Pin>>,
    /// The names of agents without a configured name, by their URL. A name comes from the first card that was
    /// read, and stays.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    names: BTreeMap<String, String>,
    /// How often the address of an agent was changed, and when.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    addresses: BTreeMap<String, AddressRotation>,
}

/// Holds added agents and pins, and the place they are kept in. What is changed is kept before it holds.
pub struct AgentRegistry {
    file: Mutex<File>,
    folder: Option<Arc<DataFolder>>,
    facts: Arc<FactsFile>,
}

impl std::fmt::Debug for AgentRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.lock();
        f.debug_struct("AgentBook").field("agents", &file.agents.len()).field("pins", &file.pins.len()).finish()
    }
}

impl AgentRegistry {
    /// Without a folder pins last as long as the process, and nothing can be added.
    pub fn open(folder: Option<Arc<DataFolder>>) -> Result<Self, AgentRegistryError> {
        let kept = folder.as_ref().map(|folder| folder.read(FILE)).transpose()?.flatten();
        let file = match kept {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|fault| AgentRegistryError::Damaged(fault.to_string()))?,
            None => File::default(),
        };
        let facts = Arc::new(FactsFile::open(folder.clone()));
        Ok(Self { file: Mutex::new(file), folder, facts })
    }

    /// The names of the agents that were added to the node of this folder. It does not need the folder's
    /// lock.
    pub fn names_in(folder: &std::path::Path) -> Vec<String> {
        let file = std::fs::read(folder.join(FILE)).ok().and_then(|bytes| serde_json::from_slice::<File>(&bytes).ok());
        file.unwrap_or_default().agents.into_iter().map(|record| record.name).collect()
    }

    /// The AgentIDs that those agents are held to.
    pub(crate) fn pinned_ids_in(folder: &std::path::Path) -> Vec<AgentId> {
        let file = std::fs::read(folder.join(FILE)).ok().and_then(|bytes| serde_json::from_slice::<File>(&bytes).ok());
        file.unwrap_or_default().agents.into_iter().filter_map(|record| record.agent_id).collect()
    }

    /// What was learnt about agents, for longer than the process runs.
    pub(crate) fn facts(&self) -> &Arc<FactsFile> {
        &self.facts
    }

    /// The name that an agent without a configured name got when its card was first read.
    pub(crate) fn name_of(&self, url: &str) -> Option<String> {
        self.lock().names.get(url).cloned()
    }

    /// The names that agents without a configured name got.
    pub(crate) fn given_names(&self) -> Vec<String> {
        self.lock().names.values().cloned().collect()
    }

    pub(crate) fn keep_name(&self, url: &str, name: &str) -> Result<(), AgentRegistryError> {
        if self.name_of(url).as_deref() == Some(name) {
            return Ok(());
        }
        self.change(|file| {
            file.names.insert(url.to_owned(), name.to_owned());
            Ok(())
        })
    }

    /// The addresses of agents that were changed.
    pub(crate) fn address_rotations(&self) -> HashMap<AgentName, AddressRotation> {
        self.lock().addresses.iter().map(|(name, rotation)| (name.as_str().into(), *rotation)).collect()
    }

    /// Gives an agent another address.
    pub(crate) fn rotate_address(&self, name: &str, now: Timestamp) -> Result<(), AgentRegistryError> {
        self.change(|file| {
            let rotation = file.addresses.entry(name.to_owned()).or_default();
            *rotation = AddressRotation { generation: rotation.generation.saturating_add(1), rotated_at: now };
            Ok(())
        })
    }

    /// The agents that were added, in the order they were.
    pub fn added(&self) -> Vec<AgentRecord> {
        self.lock().agents.clone()
    }

    /// Returns whether an added agent has the name.
    pub fn has(&self, name: &str) -> bool {
        self.lock().agents.iter().any(|record| record.name == name)
    }

    /// Refuses what could never be added, without adding it.
    pub fn check(&self, record: &AgentRecord) -> Result<(), AgentRegistryError> {
        if self.folder.is_none() {
            return Err(AgentRegistryError::NoFolder);
        }
        match record.fault() {
            Some(fault) => Err(AgentRegistryError::Faulty(fault)),
            None if self.has(&record.name) => Err(AgentRegistryError::Taken(record.name.clone())),
            None => Ok(()),
        }
    }

    /// Adds an agent, durably.
    pub fn add(&self, record: AgentRecord) -> Result<(), AgentRegistryError> {
        self.check(&record)?;
        self.change(|file| {
            file.agents.push(record);
            Ok(())
        })
    }

    /// Takes an added agent out, and what was approved of it.
    pub fn remove(&self, name: &str) -> Result<(), AgentRegistryError> {
        self.change(|file| {
            let before = file.agents.len();
            file.agents.retain(|record| record.name != name);
            if file.agents.len() == before {
                return Err(AgentRegistryError::Unknown(name.to_owned()));
            }
            file.pins.retain(|replica, _| agent_of(replica) != name);
            Ok(())
        })?;
        self.facts.forget(|replica| agent_of(replica) == name);
        Ok(())
    }

    fn change<T>(&self, change: impl FnOnce(&mut File) -> Result<T, AgentRegistryError>) -> Result<T, AgentRegistryError> {
        let mut held = self.lock();
        let mut file = held.clone();
        let made = change(&mut file)?;
        if let Some(folder) = &self.folder {
            let bytes = serde_json::to_vec_pretty(&file).map_err(|fault| AgentRegistryError::Damaged(fault.to_string()))?;
            folder.write(FILE, &bytes)?;
        }
        *held = file;
        Ok(made)
    }

    fn lock(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a replica's name before the mark that no agent's name has.
fn agent_of(replica: &str) -> &str {
    replica.split('#').next().unwrap_or(replica)
}

impl PinKeeper for AgentRegistry {
    fn pin(&self, replica: &str) -> Option<Arc<Pin>> {
        self.lock().pins.get(replica).cloned()
    }

    fn keep(&self, replica: &str, pin: Pin) -> Result<(), String> {
        let kept = self.change(|file| {
            file.pins.insert(replica.to_owned(), Arc::new(pin));
            Ok(())
        });
        kept.map_err(|error| error.to_string())
    }

    fn forget(&self, replica: &str) -> Result<(), String> {
        let forgotten = self.change(|file| {
            file.pins.remove(replica);
            Ok(())
        });
        forgotten.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_outbound::discovery::Verification;
    use chancery_protocol::Timestamp;
    use std::os::unix::fs::PermissionsExt as _;

    fn record(name: &str) -> AgentRecord {
        let text = format!(r#"{{ "name": "{name}", "urls": ["http://127.0.0.1:9"] }}"#);
        serde_json::from_str(&text).unwrap()
    }

    fn pin() -> Pin {
        let verification = Verification::Verified { agent_ids: vec![AgentId::from_digest(&[7; 32])], kids: vec!["k".to_owned()] };
        let (url, text, structure) = ("http://h/c".to_owned(), "{}".to_owned(), "ab".to_owned());
        Pin { url, text, structure, verification, approved_at: Timestamp::from_micros(1_000_000) }
    }

    #[test]
    fn agents_and_pins_outlive_the_process_for_their_owner_alone_until_they_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let open = || AgentRegistry::open(Some(Arc::new(DataFolder::claim(home.path()).unwrap()))).unwrap();
        let registry = open();
        registry.add(record("a")).unwrap();
        registry.add(record("b")).unwrap();
        assert!(matches!(registry.add(record("a")), Err(AgentRegistryError::Taken(_))));
        for replica in ["a#1", "b#1"] {
            registry.keep(replica, pin()).unwrap();
        }
        drop(registry);
        let mode = std::fs::metadata(home.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let registry = open();
        assert_eq!(registry.added(), [record("a"), record("b")]);
        assert_eq!(registry.pin("a#1").as_deref(), Some(&pin()));
        registry.remove("a").unwrap();
        assert!(matches!(registry.remove("a"), Err(AgentRegistryError::Unknown(_))));
        drop(registry);
        let registry = open();
        assert_eq!(registry.added(), [record("b")]);
        assert!(registry.pin("a#1").is_none() && registry.pin("b#1").is_some());
    }

    #[test]
    fn a_name_taken_from_a_card_is_kept_by_the_agents_url() {
        let home = tempfile::tempdir().unwrap();
        let open = || AgentRegistry::open(Some(Arc::new(DataFolder::claim(home.path()).unwrap()))).unwrap();
        let registry = open();
        assert_eq!(registry.name_of("http://127.0.0.1:9/"), None);
        registry.keep_name("http://127.0.0.1:9/", "weather").unwrap();
        drop(registry);
        assert_eq!(open().name_of("http://127.0.0.1:9/").as_deref(), Some("weather"));
    }

    #[test]
    fn what_could_never_be_called_is_refused_and_a_damaged_file_stays() {
        let home = tempfile::tempdir().unwrap();
        let folder = Arc::new(DataFolder::claim(home.path()).unwrap());
        let registry = AgentRegistry::open(Some(Arc::clone(&folder))).unwrap();
        let nowhere = AgentRecord { urls: Vec::new(), ..record("a") };
        let strange = AgentRecord { urls: vec!["ftp://h".to_owned()], ..record("a") };
        for bad in [record("A"), record(""), record("a#b"), nowhere, strange] {
            assert!(matches!(registry.add(bad.clone()), Err(AgentRegistryError::Faulty(_))), "{bad:?}");
        }
        assert!(matches!(AgentRegistry::open(None).unwrap().add(record("a")), Err(AgentRegistryError::NoFolder)));
        std::fs::write(home.path().join(FILE), "{").unwrap();
        assert!(matches!(AgentRegistry::open(Some(folder)), Err(AgentRegistryError::Damaged(_))));
        assert_eq!(std::fs::read_to_string(home.path().join(FILE)).unwrap(), "{");
    }
}
