//! A config that changes while the node runs: read whole, made ready beside what holds, and put in its place in one step,
//! or refused with every reason and nothing changed.

mod grounds;
mod restart;
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use chancery_protocol::Timestamp;
use serde_json::{Value, json};

pub(crate) use self::grounds::{Grounds, door_settings, furnish};
use crate::config::{Config, ConfigError, ConfigFile, Fault, Places};

/// What a file says with the flags of the command line put over it.
pub(crate) type Settle = Arc<dyn Fn(Config) -> Config + Send + Sync>;

/// Who reloads, for routes behind the doors that a reload replaces: known once the node is built, and not kept alive by them.
pub(crate) type Behind = Arc<OnceLock<Weak<Reloader>>>;

/// The file a node was started with.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) digest: String,
    pub(crate) settle: Settle,
}

/// A config that was put in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// Counts the configs that have held since the node was started, from 1.
    pub generation: u64,
    /// Whether it says something else than the one before.
    pub changed: bool,
}

/// A config that was not put in place, and all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", listed(file, faults))]
pub struct Rejected {
    pub file: PathBuf,
    pub faults: Vec<Fault>,
    pub at: Timestamp,
}

fn listed(file: &std::path::Path, faults: &[Fault]) -> String {
    let lines: Vec<_> = faults.iter().map(|fault| format!("{}:{fault}", file.display())).collect();
    lines.join("\n")
}

#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error("the node was started without a config file, so there is none to read anew")]
    NoFile,
    #[error(transparent)]
    Rejected(#[from] Rejected),
}

/// What holds now.
struct Current {
    config: Arc<Config>,
    generation: u64,
    loaded_at: Timestamp,
    digest: Option<String>,
    /// The last file that was refused, until one is taken.
    rejected: Option<Rejected>,
}

pub(crate) struct Reloader {
    grounds: Grounds,
    source: Option<Source>,
    current: Mutex<Current>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader").field("generation", &self.lock().generation).finish_non_exhaustive()
    }
}

impl Reloader {
    pub(crate) fn agents_elsewhere(&self) -> Vec<String> {
        self.grounds.fleet.lines()
    }

    /// The config the node was started with is generation 1.
    pub(crate) fn new(grounds: Grounds, source: Option<Source>, config: Config) -> Arc<Self> {
        let current = Current {
            config: Arc::new(config),
            generation: 1,
            loaded_at: grounds.now(),
            digest: source.as_ref().map(|source| source.digest.clone()),
            rejected: None,
        };
        let behind = Arc::clone(&grounds.behind);
        let reloader = Arc::new(Self { grounds, source, current: Mutex::new(current) });
        let _ = behind.set(Arc::downgrade(&reloader));
        reloader
    }

    /// Reads the file anew. Whatever comes back, the node serves on: with all of the new config, or with all of the old.
    pub(crate) async fn reload(&self) -> Result<Reloaded, ReloadError> {
        let source = self.source.as_ref().ok_or(ReloadError::NoFile)?;
        // No two at once, and none while an operator adds or removes agents.
        let _alone = self.grounds.alone().await;
        let settled = |config: &Config| (source.settle)(config.clone());
        let read = match ConfigFile::check_settled(&source.file, &self.grounds.other_agents(), settled) {
            Ok(read) => read,
            Err(error) => return Err(self.reject(source, faults_of(&error)).into()),
        };
        let config = (source.settle)(read.config);
        let before = Arc::clone(&self.lock().config);
        if config == *before {
            let mut current = self.lock();
            (current.rejected, current.digest) = (None, Some(read.digest));
            return Ok(Reloaded { generation: current.generation, changed: false });
        }
        if let Err(faults) = self.put_in_place(&before, &config, &read.places).await {
            return Err(self.reject(source, faults).into());
        }
        let mut current = self.lock();
        current.generation += 1;
        current.config = Arc::new(config);
        current.loaded_at = self.grounds.now();
        current.digest = Some(read.digest);
        current.rejected = None;
        let generation = current.generation;
        tracing::info!(generation, file = %source.file.display(), "the config was reloaded");
        Ok(Reloaded { generation, changed: true })
    }

    async fn put_in_place(&self, before: &Config, config: &Config, places: &Places) -> Result<(), Vec<Fault>> {
        let mut faults = restart::needed(before, config, places);
        let callers = self.grounds.callers(config, places).unwrap_or_else(|missing| {
            faults.extend(missing);
            Vec::new()
        });
        if !faults.is_empty() {
            faults.sort_by_key(|fault| (fault.line, fault.column));
            return Err(faults);
        }
        let prepared = self.grounds.prepare(before, config, callers, places).await?;
        self.grounds.hold(prepared, config, places)
    }

    fn reject(&self, source: &Source, faults: Vec<Fault>) -> Rejected {
        let rejected = Rejected { file: source.file.clone(), faults, at: self.grounds.now() };
        let mut current = self.lock();
        for fault in &rejected.faults {
            let (file, generation) = (source.file.display(), current.generation);
            tracing::warn!(%file, fault = %fault, generation, "a config was not taken; the old one holds");
        }
        current.rejected = Some(rejected.clone());
        rejected
    }

    /// What an operator is told: which config holds, and what is wrong with one that does not.
    pub(crate) fn report(&self) -> Value {
        let current = self.lock();
        json!({
            "generation": current.generation,
            "loaded_at": current.loaded_at,
            "file": self.source.as_ref().map(|source| &source.file),
            "digest": current.digest.as_ref().map(|digest| format!("sha256:{digest}")),
            "rejected": current.rejected.as_ref().map(|rejected| json!({ "at": rejected.at, "faults": rejected.faults })),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn faults_of(error: &ConfigError) -> Vec<Fault> {
    match error {
        ConfigError::Unreadable { reason, .. } => {
            vec![Fault { line: 1, column: 1, message: format!("the file cannot be read: {reason}") }]
        }
        ConfigError::Faulty { faults, .. } => faults.clone(),
    }
}
