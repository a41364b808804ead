//! `chancery agents doctor`: looks at an agent before it is put behind a node, and says which settings it needs.

mod snippet;
mod trial;

use std::path::PathBuf;
use std::sync::Arc;

use chancery::cli_support::agent_slug;
use chancery::config::{CallSettings, Config, ConfigFile};
use chancery_core::{Clock as _, SystemClock};
use chancery_outbound::client::{AgentCredentials, Interface};
use chancery_outbound::discovery::{CardDiscovery, CardSettings, CardVerification, Discovered, DiscoveryError, PeerLocation};
use chancery_outbound::guard::WayOut;
use chancery_outbound::remote::{AddressInUse, Replica};
use serde_json::{Value, json};
use url::Url;

use self::snippet::{Snippet, suggested};
use self::trial::Trial;
use super::super::{Failure, Shared, remark, show};
use super::call_flags::CallFlags;

const EXAMPLES: &str = "\
Examples:
  chancery agents doctor http://localhost:9001                    fetch its card and list its deviations
  chancery agents doctor http://localhost:9001 --call             also call it: unary, stream, get, cancel, a follow-up
  chancery agents doctor http://localhost:9001 --call --write     and append the settings to chancery.toml

Without --call only the card is fetched, and nothing is executed. With --call the agent gets up to four short messages in each
version and binding that its card lists: an agent behind a paid model costs what they cost.
Only the address you give is contacted, and what [outbound] of the config file allows.
Exit code 0 if the agent can be called, 1 if it cannot or its card is rejected, 2 for wrong usage, 3 if nothing answers.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// The URL of the agent or of its card
    #[arg(value_name = "URL")]
    url: String,
    /// Call the agent as well
    #[arg(long)]
    call: bool,
    /// Append the settings to the config file
    #[arg(long)]
    write: bool,
    /// The config file: its [outbound] section applies to the calls, and --write appends to it
    #[arg(long, value_name = "FILE", default_value = "chancery.toml")]
    config: PathBuf,
    /// The name of the section [default: the name on the agent's card]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The environment variable with a bearer token for the agent
    #[arg(long, value_name = "VARIABLE", conflicts_with = "api_key_env")]
    bearer_env: Option<String>,
    /// The environment variable with an API key for the agent
    #[arg(long, value_name = "VARIABLE")]
    api_key_env: Option<String>,
    #[command(flatten)]
    calls: CallFlags,
}

/// What the doctor found out.
struct Findings {
    found: Arc<Discovered>,
    used: Result<AddressInUse, String>,
    trials: Vec<Trial>,
    snippet: Snippet,
}

impl Doctor {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let url = Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https" | "swp" | "swps"));
        let url = url
            .filter(Url::has_host)
            .ok_or_else(|| Failure::Usage(format!("{:?} is no http, https, swp or swps URL of an agent", self.url)))?;
        let config = self.node_config()?;
        let settings = self.calls.clone().settings();
        let agent_settings = settings.settled().map_err(Failure::Usage)?;
        let address = agent_settings.address.as_ref().and_then(|address| Url::parse(address).ok());
        let written_down: Vec<Url> = std::iter::once(url.clone()).chain(address).collect();
        let way_out = WayOut::new(&config.outbound, &written_down, &[]).map_err(Failure::Usage)?;
        let credentials = self.credentials()?;
        let discovery = Arc::new(CardDiscovery::new(way_out.trusted().client(), config.discovery.clone()));
        let card = CardSettings {
            file: settings.card_file.clone(),
            headers: agent_settings.headers.clone(),
            strict: agent_settings.strict,
        };
        let peer = PeerLocation {
            name: "agent".into(),
            url: url.to_string(),
            verify: CardVerification::IfPresent,
            agent_id: None,
            keys: Vec::new(),
            card,
        };
        let limits = config.peers.client.clone();
        let replica = Replica::new(peer, way_out.clone(), discovery, limits.clone(), credentials.clone());
        let replica = replica.called_by(agent_settings.clone());
        let found = replica.refresh(SystemClock.now()).await.map_err(no_card)?;
        let used = replica.in_use().unwrap_or_else(|| Err(missing(&replica))).map_err(|error| error.to_string());
        let mut trials = Vec::new();
        if self.call {
            let listed: Vec<Interface> = Interface::spoken(&found.card).collect();
            let patient = trial::Patient {
                way_out: &way_out,
                limits: &limits,
                credentials: &credentials,
                headers: &agent_settings.headers,
                is_strict: agent_settings.strict,
            };
            trials = patient.try_all(&replica.to_try(&found), &listed).await;
        }
        let name = self.name.clone().or_else(|| agent_slug(&found.card.name)).unwrap_or_else(|| "agent".to_owned());
        let settings = suggested(settings, used.as_ref().ok(), &trials);
        let snippet = Snippet {
            name,
            url: self.url.clone(),
            bearer_env: self.bearer_env.clone(),
            api_key_env: self.api_key_env.clone(),
            settings,
        };
        let findings = Findings { found, used, trials, snippet };
        if shared.json {
            show::print_json(&findings.to_json(self.call).to_string());
        } else {
            show::print(&findings.text(self.call));
        }
        if self.write {
            findings.snippet.append_to(&self.config)?;
            remark(&format!("[agents.{}] was appended to {}", findings.snippet.name, self.config.display()));
        }
        findings.verdict(self.call)
    }

    /// The config with the [outbound] section for the calls. Without the file the defaults apply.
    fn node_config(&self) -> Result<Config, Failure> {
        if !self.config.exists() {
            return Ok(Config::default());
        }
        ConfigFile::read(&self.config).map(|file| file.config).map_err(|fault| Failure::Usage(fault.to_string()))
    }

    fn credentials(&self) -> Result<AgentCredentials, Failure> {
        let variable = |name: &String| {
            std::env::var(name).map_err(|_| Failure::Usage(format!("the environment variable {name} is not set")))
        };
        match (&self.bearer_env, &self.api_key_env) {
            (Some(name), _) => variable(name).map(AgentCredentials::bearer),
            (None, Some(name)) => variable(name).map(AgentCredentials::api_key),
            (None, None) => Ok(AgentCredentials::None),
        }
    }
}

fn missing(replica: &Replica) -> chancery_outbound::remote::ReplicaError {
    chancery_outbound::remote::ReplicaError::NoInterface(Arc::clone(&replica.address().name))
}

fn no_card(error: DiscoveryError) -> Failure {
    match error {
        DiscoveryError::Transport { cause, .. } => Failure::Unreachable(format!("the agent cannot be reached: {cause}")),
        DiscoveryError::Discovery { reason, .. } | DiscoveryError::CardSignatureInvalid { reason, .. } => {
            Failure::Refused(format!("card rejected: {}", show::safe(&reason)))
        }
    }
}

impl Findings {
    fn verdict(&self, called: bool) -> Result<(), Failure> {
        if let Err(error) = &self.used {
            return Err(Failure::Refused(error.clone()));
        }
        match called && !self.trials.iter().any(Trial::answers) {
            true => Err(Failure::Refused("the agent answered no call in any version and binding".to_owned())),
            false => Ok(()),
        }
    }

    fn text(&self, called: bool) -> String {
        let found = &self.found;
        let mut lines = vec![
            format!("card      {} ({})", show::safe(&found.url), found.verification.name()),
            format!("name      {}", show::safe(&found.card.name)),
        ];
        match &self.used {
            Ok(used) => {
                let way = if used.streams { "declares streaming" } else { "declares no streaming" };
                let version = format!("A2A {} {}", used.interface.version, used.interface.binding.as_str());
                lines.push(format!("address   {} ({version}, {way})", show::safe(&used.interface.url)));
                if let Some(change) = used.change {
                    lines.push(format!("          its card has {:?}: {}", show::safe(&used.listed), change.reason()));
                }
            }
            Err(error) => lines.push(format!("address   none: {}", show::safe(error))),
        }
        match found.deviations.as_slice() {
            [] => lines.push("card      follows its version".to_owned()),
            all => lines.extend(all.iter().map(|one| format!("deviates  {} {}", show::safe(&one.member), one.fault))),
        }
        if called {
            lines.extend(self.trials.iter().flat_map(Trial::lines));
        } else {
            lines.push("calls     none were made; --call makes them".to_owned());
        }
        format!("{}\n\n{}", lines.join("\n"), self.snippet.text())
    }

    fn to_json(&self, called: bool) -> Value {
        let used = self.used.as_ref().map(AddressInUse::to_json);
        let deviation = |one: &chancery_outbound::discovery::CardDeviation| json!({ "leniency": one.leniency, "member": one.member, "fault": one.fault });
        json!({
            "card": self.found.url,
            "name": self.found.card.name,
            "calls": used.as_ref().ok(),
            "fault": self.used.as_ref().err(),
            "deviations": self.found.deviations.iter().map(deviation).collect::<Vec<_>>(),
            "called": called,
            "trials": self.trials.iter().map(Trial::to_json).collect::<Vec<_>>(),
            "section": self.snippet.name,
            "settings": self.snippet.settings,
            "toml": self.snippet.text(),
        })
    }
}

/// Whether a section needs a key beside the URL.
fn is_plain(settings: &CallSettings) -> bool {
    settings.is_default()
}
