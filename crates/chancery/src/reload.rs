//! A config that changes while the node runs: read whole, made ready beside what holds, and put in its place in one step,
//! or refused with every reason and nothing changed.

mod placed;
mod restart;
mod running;
#[cfg(feature = "cli")]
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use chancery_protocol::Timestamp;
use serde_json::{Value, json};

pub(crate) use self::placed::placed;
pub(crate) use self::running::RunningNode;
use crate::authentication::callers_with_keys;
use crate::config::{ChangedKey, Config, ConfigError, ConfigFault, ConfigFile, Places};

/// What a file says with the flags of the command line put over it.
pub(crate) type Settle = Arc<dyn Fn(Config) -> Config + Send + Sync>;

/// Who reloads, for routes behind the doors that a reload replaces: known once the node is built, and not kept alive by them.
pub(crate) type ReloaderHandle = Arc<OnceLock<Weak<Reloader>>>;

/// The file a node was started with.
#[derive(Clone)]
pub(crate) struct ConfigSource {
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
    /// The keys that say something else, each with when its new value takes effect.
    pub changes: Vec<ChangedKey>,
}

/// A config that was not put in place, and all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", listed(file, faults))]
pub struct Rejected {
    /// The path of the file.
    pub file: PathBuf,
    /// Every fault, in the order of the lines.
    pub faults: Vec<ConfigFault>,
    /// When the file was read.
    pub at: Timestamp,
}

fn listed(file: &std::path::Path, faults: &[ConfigFault]) -> String {
    let lines: Vec<_> = faults.iter().map(|fault| format!("{}:{fault}", file.display())).collect();
    lines.join("\n")
}

/// Why a config file was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The node has no config file.
    #[error("the node was started without a config file, so there is no file to reload")]
    NoFile,
    /// The file has faults. The node keeps its settings.
    #[error(transparent)]
    Rejected(#[from] Rejected),
}

/// What holds now.
struct Current {
    generation: u64,
    loaded_at: Timestamp,
    digest: Option<String>,
    /// The last file that was refused, until one is taken.
    rejected: Option<Rejected>,
}

pub(crate) struct Reloader {
    running: RunningNode,
    source: Option<ConfigSource>,
    current: Mutex<Current>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader").field("generation", &self.lock().generation).finish_non_exhaustive()
    }
}

impl Reloader {
    pub(crate) fn agents_elsewhere(&self) -> Vec<String> {
        self.running.service().gateway.lines()
    }

    pub(crate) fn running(&self) -> &RunningNode {
        &self.running
    }

    /// The config the node was started with is generation 1.
    pub(crate) fn new(running: RunningNode, source: Option<ConfigSource>) -> Arc<Self> {
        let current = Current {
            generation: 1,
            loaded_at: running.now(),
            digest: source.as_ref().map(|source| source.digest.clone()),
            rejected: None,
        };
        let behind = Arc::clone(&running.parts().behind);
        let reloader = Arc::new(Self { running, source, current: Mutex::new(current) });
        let _ = behind.set(Arc::downgrade(&reloader));
        reloader
    }

    /// Reloads the file. The node goes on serving in either case: with all of the new config, or with all of
    /// the old.
    pub(crate) async fn reload(&self) -> Result<Reloaded, ReloadError> {
        let source = self.source.as_ref().ok_or(ReloadError::NoFile)?;
        // No two at once, and none while an operator adds or removes agents.
        let _alone = self.running.alone().await;
        let settled = |config: &Config| (source.settle)(config.clone());
        let read = match ConfigFile::check_settled(&source.file, &self.running.parts().other_agents(), settled) {
            Ok(read) => read,
            Err(error) => return Err(self.reject(source, faults_of(&error)).into()),
        };
        for warning in read.places.warnings() {
            tracing::warn!(%warning, "the config has a key under its old name");
        }
        let config = (source.settle)(read.config);
        let before = self.running.config();
        if config == *before {
            let mut current = self.lock();
            (current.rejected, current.digest) = (None, Some(read.digest));
            return Ok(Reloaded { generation: current.generation, changed: false, changes: Vec::new() });
        }
        let changes = before.changed_keys(&config);
        if let Err(faults) = self.replace(&changes, &config, &read.places).await {
            return Err(self.reject(source, faults).into());
        }
        let mut current = self.lock();
        current.generation += 1;
        current.loaded_at = self.running.now();
        current.digest = Some(read.digest);
        current.rejected = None;
        let generation = current.generation;
        tracing::info!(generation, file = %source.file.display(), "reloaded the config");
        Ok(Reloaded { generation, changed: true, changes })
    }

    async fn replace(&self, changes: &[ChangedKey], config: &Config, places: &Places) -> Result<(), Vec<ConfigFault>> {
        let mut faults = restart::needed(changes, places);
        let callers = callers_with_keys(config, places).unwrap_or_else(|missing| {
            faults.extend(missing);
            Vec::new()
        });
        if !faults.is_empty() {
            faults.sort_by_key(|fault| (fault.line, fault.column));
            return Err(faults);
        }
        let assembly = self.running.prepare(config, callers, places).await?;
        self.running.put_in_place(assembly).map_err(|error| placed(error, places))?;
        let parts = self.running.parts();
        let known: Vec<_> = parts.caller_directory.callers.list().into_iter().map(|(record, _)| record).collect();
        for fault in crate::scope_names::unmatched(config, places, &known, &parts.other_agents()) {
            tracing::warn!(%fault, "a budget or policy of the config applies to no caller, tenant or agent; correct its name");
        }
        for fault in crate::scope_names::evadable(config, places, &known) {
            tracing::warn!(%fault, "calls can evade a budget of the config, because the node has no callers");
        }
        Ok(())
    }

    fn reject(&self, source: &ConfigSource, faults: Vec<ConfigFault>) -> Rejected {
        let rejected = Rejected { file: source.file.clone(), faults, at: self.running.now() };
        let mut current = self.lock();
        for fault in &rejected.faults {
            let (file, generation) = (source.file.display(), current.generation);
            tracing::warn!(%file, fault = %fault, generation, "rejected the config file; the old config stays in effect");
        }
        current.rejected = Some(rejected.clone());
        rejected
    }

    /// The report for operators: which config applies, and the faults of one that was rejected.
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

fn faults_of(error: &ConfigError) -> Vec<ConfigFault> {
    match error {
        ConfigError::Unreadable { reason, .. } => {
            vec![ConfigFault { line: 1, column: 1, message: format!("the file cannot be read: {reason}") }]
        }
        ConfigError::Faulty { faults, .. } => faults.clone(),
    }
}
