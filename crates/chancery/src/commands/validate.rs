//! `chancery validate`: all that is wrong with a config file, at once.

use std::path::PathBuf;

use chancery::config::{AgentSource, Config, ConfigError, ConfigFile};
use chancery::{AgentBook, DataFolder};
use serde_json::{Value, json};

use super::{Failure, Shared, show};

const EXAMPLES: &str = "\
Examples:
  chancery validate                    chancery.toml in this folder
  chancery validate node.toml --json   the faults as JSON

Faults are printed as FILE:LINE:COLUMN: MESSAGE, and the exit code is 2 if there are any. Agents that were added with
`chancery agents add` are known from the data folder. What only shows when a node starts (variables of its environment, files
of keys and certificates) is not looked at.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Validate {
    #[arg(value_name = "FILE", default_value = "chancery.toml")]
    file: PathBuf,
}

impl Validate {
    pub(super) fn run(self, shared: &Shared) -> Result<(), Failure> {
        let said = || Config::load(&self.file).ok().and_then(|config| config.node.data);
        let folder = shared.data.clone().or_else(said).or_else(DataFolder::default_path);
        let added = folder.map(|folder| AgentBook::names_in(&folder)).unwrap_or_default();
        let shown = self.file.display();
        let error = match ConfigFile::check(&self.file, &added) {
            Ok(sound) => {
                if shared.json {
                    show::print_json(
                        &json!({ "file": self.file, "ok": true, "faults": [], "holds": counts(&sound.config) }).to_string(),
                    );
                } else {
                    show::print_line(&format!("OK {shown}: {}", summary(&sound.config)));
                }
                return Ok(());
            }
            Err(error @ ConfigError::Unreadable { .. }) => return Err(Failure::Usage(error.to_string())),
            Err(error) => error,
        };
        let faults = error.faults();
        if shared.json {
            show::print_json(&json!({ "file": self.file, "ok": false, "faults": faults }).to_string());
        } else {
            show::print_line(&show::safe(&error.to_string()));
        }
        Err(Failure::Usage(format!("{} in {shown}", many(faults.len(), "fault"))))
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
