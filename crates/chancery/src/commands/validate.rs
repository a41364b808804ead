//! `chancery validate`: all that is wrong with a config file, at once.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chancery::DataFolder;
use chancery::cli_support::{AgentRegistry, Preflight, Surroundings};
use chancery::config::{AgentSource, Config, ConfigError, ConfigFault, ConfigFile};
use serde_json::{Value, json};

use super::store_flag::StoreFlag;
use super::{Failure, Shared, show};

const EXAMPLES: &str = "\
Examples:
  chancery validate                    chancery.toml in this folder
  chancery validate node.toml --json   the faults as JSON
  chancery validate --offline          reads no environment variables, no other files, no data folder and no database

The command prints each fault as FILE:LINE:COLUMN: MESSAGE, and exits with 2 if there is one. It accepts a key under its old name and
prints a warning with the new name. It checks what `chancery serve` checks: environment variables, keys, certificates, addresses,
folders, and a public address without callers. It reads added agents and callers from the data folder. A budget or policy for a caller,
tenant or agent that does not exist is a fault; `serve` only warns of it. It connects to the database of `store.url`, checks it and
changes nothing there. The command opens no file of SQLite, calls no agent and leaves nothing behind. It does not try ports: another
program may use one only now.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Validate {
    /// The config file
    #[arg(value_name = "FILE", default_value = "chancery.toml")]
    file: PathBuf,
    /// Skip the checks that depend on this machine: environment variables, addresses, other files, the data folder and the database
    #[arg(long)]
    offline: bool,
    /// Accept budgets and policies for callers, tenants and agents that do not exist yet
    #[arg(long)]
    unknown_ok: bool,
    /// Check the file for `chancery serve --insecure`
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    store: StoreFlag,
}

impl Validate {
    pub(super) fn run(mut self, shared: &Shared) -> Result<(), Failure> {
        let store = self.store.take()?;
        let shown = self.file.display();
        let said = || Config::load(&self.file).ok().and_then(|config| config.node.data);
        let folder = shared.data.clone().or_else(said).or_else(DataFolder::default_path).filter(|_| !self.offline);
        let added = folder.as_deref().map(AgentRegistry::names_in).unwrap_or_default();
        let mut warnings = Vec::new();
        let (config, faults) = match ConfigFile::check(&self.file, &added) {
            Ok(mut read) => {
                if store.is_some() {
                    read.config.store.url = store;
                }
                let Preflight { faults, evadable, .. } = self.preflight(&read, folder.as_deref())?;
                warnings = [read.places.warnings(), &evadable].concat();
                (Some(read.config), faults)
            }
            Err(error @ ConfigError::Unreadable { .. }) => return Err(Failure::Usage(error.to_string())),
            Err(error) => (None, error.faults()),
        };
        if let Some(config) = config.filter(|_| faults.is_empty()) {
            if shared.json {
                let sound =
                    json!({ "file": self.file, "ok": true, "faults": [], "warnings": warnings, "holds": counts(&config) });
                show::print_json(&sound.to_string());
            } else {
                for ConfigFault { line, column, message } in &warnings {
                    show::print_line(&show::safe(&format!("{shown}:{line}:{column}: warning: {message}")));
                }
                show::print_line(&format!("OK {shown}: {}", summary(&config)));
            }
            return Ok(());
        }
        if shared.json {
            show::print_json(&json!({ "file": self.file, "ok": false, "faults": faults }).to_string());
        } else {
            let lines: Vec<String> = faults.iter().map(|fault| format!("{shown}:{fault}")).collect();
            show::print_line(&show::safe(&lines.join("\n")));
        }
        Err(Failure::Usage(format!("{} in {shown}", many(faults.len(), "fault"))))
    }

    /// Faults that stop a start, limits that apply to no caller among them, and what the node only warns of.
    fn preflight(&self, read: &ConfigFile, folder: Option<&Path>) -> Result<Preflight, Failure> {
        // What calls others is made, and not used; some of it wants to know where it will run.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
        let around = Surroundings { folder, insecure: self.insecure, in_memory: false, offline: self.offline };
        let mut found = runtime.block_on(chancery::cli_support::preflight(&read.config, &read.places, &around));
        found.faults.extend(found.unmatched.drain(..).filter(|_| !self.unknown_ok));
        found.faults.sort_by_key(|fault| (fault.line, fault.column));
        Ok(found)
    }
}

fn many(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn counts(config: &Config) -> Value {
    let elsewhere = config.agents.iter().filter(|(_, agent)| matches!(agent.source, AgentSource::Remote(_))).count();
    json!({
        "agents": config.agents.len(),
        "agents_elsewhere": elsewhere,
        "callers": config.callers.len(),
        "issuers": config.issuers.len(),
        "listen": config.node.listen,
    })
}

fn summary(config: &Config) -> String {
    let agents: Vec<&str> = config.agents.iter().map(|(name, _)| name.as_str()).collect();
    let callers = match (config.callers.len(), config.issuers.len()) {
        (0, 0) => "no callers".to_owned(),
        (callers, 0) => many(callers, "caller"),
        (callers, issuers) => format!("{}, {}", many(callers, "caller"), many(issuers, "issuer")),
    };
    format!("listens at {}, agents {}, {callers}", config.node.listen, agents.join(" "))
}
