//! A config as it stands in a file: what it says, where it says it, and which text it was.

use std::path::{Path, PathBuf};

use chancery_identity::SealKey;

use super::agreement::unknown_agents;
use super::{Config, ConfigError, ConfigFault, Places};

/// One reading of a config file.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// The path of the file.
    pub path: PathBuf,
    /// SHA-256 of the text, in hex.
    pub digest: String,
    /// The settings.
    pub config: Config,
    /// The line and column of every key.
    pub places: Places,
}

impl ConfigFile {
    /// Reads a file, whole or not at all.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = text_of(path)?;
        Self::of(path, &text, Config::read(&text))
    }

    /// Reads a file and also refuses grants of agents that are neither in it nor among `added`.
    pub fn check(path: &Path, added: &[String]) -> Result<Self, ConfigError> {
        Self::check_settled(path, added, Config::clone)
    }

    /// The same where something outranks the file. What is read is what the file says.
    pub(crate) fn check_settled(
        path: &Path,
        added: &[String],
        settle: impl FnOnce(&Config) -> Config,
    ) -> Result<Self, ConfigError> {
        let text = text_of(path)?;
        let grants = |config: &Config, places: &Places| unknown_agents(&settle(config), places, added);
        Self::of(path, &text, Config::read_and(&text, grants))
    }

    fn of(path: &Path, text: &str, read: Result<(Config, Places), Vec<ConfigFault>>) -> Result<Self, ConfigError> {
        let (config, places) = read.map_err(|faults| ConfigError::Faulty { file: path.to_owned(), faults })?;
        Ok(Self { path: path.to_owned(), digest: digest(text), config, places })
    }
}

/// Which text a file holds.
pub(crate) fn digest(text: &str) -> String {
    SealKey::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text_of(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { file: path.to_owned(), reason: source.to_string() })
}
