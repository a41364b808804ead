//! `chancery agents`: the agents behind the node, which are added, looked at, approved and taken out.

mod call_flags;
mod doctor;
mod keeper;
mod table;

use std::path::PathBuf;

use chancery::cli_support::AgentRecord;
use chancery::config::RemoteCredentials;
use chancery::protocol::AgentId;
use chancery_outbound::discovery::CardVerification;
use serde_json::Value;

use self::call_flags::CallFlags;
use self::doctor::Doctor;
use self::keeper::AgentsAccess;
use super::nearby::holder;
use super::node_args::NodeArgs;
use super::{Failure, Shared, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery agents add http://localhost:9001 --name research     add an agent; the node serves it at /agents/research
  chancery agents add https://a.example.org https://b.example.org --name pool --verify require
                                                                two replicas of one agent; unsigned cards are rejected
  chancery agents ls                                            every agent, and changed cards that wait for approval
  chancery agents show research                                 version, binding, address, deviations, and the last fault
  chancery agents doctor http://localhost:9001 --call           check an agent before you add it
  chancery agents approve research --digest DIGEST              accept the changed card, if it still has this digest
  chancery agents health research                               state of each replica
  chancery agents url research                                  base URL for the agent's own calls, so that the node identifies it
  chancery agents rm research

The node pins the first card of an added agent. A card with other addresses, skills, schemes, modes or capabilities waits for
`agents approve`, and the node uses the old card until then. The node rejects a card with another signer.
To change an agent of the config file, edit that file. `add`, `approve`, `health` and `url` need a running node.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AgentsCommand {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the agents, how the node calls them, and cards that wait for approval
    #[command(name = "ls", alias = "list")]
    List,
    /// Show one agent: version, binding, address, deviations, learnt facts and the last fault
    Show {
        /// The name of the agent
        name: String,
    },
    /// Check a remote agent: what works, what deviates, and which settings to write
    Doctor(Box<Doctor>),
    /// Add a remote agent behind the node
    Add(Box<Add>),
    /// Remove an added agent; its tasks stay, and callers reach them again if you add an agent of the same name
    #[command(name = "rm", alias = "remove")]
    Remove {
        /// The name of the agent
        name: String,
    },
    /// Approve a card that differs from the approved one
    Approve {
        /// The name of the agent
        name: String,
        /// Forget the approved card and accept the current one, with any signer
        #[arg(long, conflicts_with = "digest")]
        anew: bool,
        /// Approve only the card with this digest, which `chancery agents ls` shows
        #[arg(long, value_name = "DIGEST")]
        digest: Option<String>,
    },
    /// Show the health of the replicas of an agent
    Health {
        /// The name of the agent
        name: String,
    },
    /// Print the address of an agent: the base URL that identifies its calls
    ///
    /// Configure the agent with this URL instead of the node's own. Its peers are URL/agents/OTHER, and cards below the URL
    /// use it too. The node can then place the calls of an agent that forwards neither a hop token nor its trace, so it finds
    /// loops and applies the budgets of trees. The URL identifies the agent and grants nothing. A client with the URL can spend
    /// the money of that agent's tasks. It works over JSON-RPC and HTTP+JSON. A node with --memory has other addresses after
    /// each start.
    Url {
        /// The name of the agent
        name: String,
        /// Make another address; the old one stays valid for 24 hours
        #[arg(long)]
        rotate: bool,
    },
}

#[derive(clap::Args)]
struct Add {
    /// The URL of the agent or of its card; several for the replicas of one agent
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// The name, served at /agents/NAME: 1 to 64 of a-z, 0-9, '-' and '_'
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The rule for the card's signature
    #[arg(long, value_name = "HOW", default_value = "if-present", value_parser = verify)]
    verify: CardVerification,
    /// The AgentID that must have signed the card
    #[arg(long, value_name = "ID")]
    agent_id: Option<AgentId>,
    /// A file on the node's machine with the keys that may sign the card: JWK or JWKS
    #[arg(long, value_name = "FILE")]
    card_keys: Option<PathBuf>,
    /// The variable of the node's environment with the bearer token for the agent
    #[arg(long, value_name = "VARIABLE", conflicts_with = "api_key_env")]
    bearer_env: Option<String>,
    /// The variable of the node's environment with the API key for the agent
    #[arg(long, value_name = "VARIABLE")]
    api_key_env: Option<String>,
    /// The name on the card, if not the agent's own
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The description on the card, if not the agent's own
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Accept every later card without approval
    #[arg(long)]
    no_pin: bool,
    #[command(flatten)]
    calls: CallFlags,
}

fn verify(text: &str) -> Result<CardVerification, &'static str> {
    match text {
        "off" => Ok(CardVerification::Off),
        "if-present" => Ok(CardVerification::IfPresent),
        "require" => Ok(CardVerification::Require),
        _ => Err("it is off, if-present or require"),
    }
}

impl Add {
    fn record(self) -> AgentRecord {
        AgentRecord {
            name: self.name,
            urls: self.urls,
            verify: self.verify,
            agent_id: self.agent_id,
            card_keys: self.card_keys,
            credentials: RemoteCredentials {
                bearer_env: self.bearer_env,
                api_key_env: self.api_key_env,
                ..RemoteCredentials::default()
            },
            title: self.title,
            description: self.description,
            pin: !self.no_pin,
            calls: self.calls.settings(),
        }
    }
}

impl AgentsCommand {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        // It looks at an agent and not at a node.
        let command = match self.command {
            Command::Doctor(doctor) => return doctor.run(shared).await,
            command => command,
        };
        let keeper = AgentsAccess::find(holder(shared, &self.node, false).await?)?;
        let json = shared.json;
        match command {
            Command::Doctor(_) => Ok(()),
            Command::Show { name } => {
                let answer = keeper.show(&name).await?;
                tell(&answer, json, |answer| show::print(&table::one(answer)))
            }
            Command::List => list(&keeper, json).await,
            Command::Add(add) => {
                let answer = keeper.add(&add.record()).await?;
                tell(&answer, json, added)
            }
            Command::Remove { name } => {
                let answer = keeper.remove(&name).await?;
                tell(&answer, json, removed)
            }
            Command::Approve { name, anew, digest } => {
                let answer = keeper.approve(&name, anew, digest.as_deref()).await?;
                tell(&answer, json, approved)
            }
            Command::Url { name, rotate } => {
                let answer = keeper.url(&name, rotate).await?;
                tell(&answer, json, |answer| addressed(answer, rotate))
            }
            Command::Health { name } => {
                let answer = keeper.health(&name).await?;
                tell(&answer, json, |answer| show::print(&table::health(answer)))
            }
        }
    }
}

fn tell(answer: &Value, json: bool, words: impl FnOnce(&Value)) -> Result<(), Failure> {
    if json {
        show::print_json(&answer.to_string());
    } else {
        words(answer);
    }
    Ok(())
}

fn added(agent: &Value) {
    let name = show::safe(agent["name"].as_str().unwrap_or_default());
    show::print_line(&format!("/agents/{name}"));
    match agent["state"].as_str() {
        Some("served") => remark(&format!("{name} is served now; `chancery send --agent {name} TEXT` calls it")),
        _ => {
            remark(&format!("{name} has not been reached yet; it is served as soon as it is. Why: `chancery agents show {name}`"))
        }
    }
}

fn addressed(answer: &Value, rotated: bool) {
    let (name, url) =
        (show::safe(answer["name"].as_str().unwrap_or_default()), show::safe(answer["url"].as_str().unwrap_or_default()));
    show::print_line(&url);
    remark(&format!("configure {name} with this URL in the place of the node's own; its peers are {url}/agents/OTHER"));
    if rotated {
        remark("the address before this one holds for 24 hours");
    }
}

fn removed(answer: &Value) {
    let name = show::safe(answer["name"].as_str().unwrap_or_default());
    remark(&format!("{name} is no longer served; its tasks stay, and show again if it is added again under its name"));
}

fn approved(answer: &Value) {
    let name = show::safe(answer["name"].as_str().unwrap_or_default());
    for pending in show::items(&answer["approved"]) {
        show::print(&table::changes(&pending["changes"], ""));
    }
    remark(&format!("{name} is called by its new card from now on"));
}

async fn list(keeper: &AgentsAccess, json: bool) -> Result<(), Failure> {
    let answer = keeper.list().await?;
    if json {
        show::print_json(&answer.to_string());
        return Ok(());
    }
    let agents = show::items(&answer["agents"]);
    if !agents.is_empty() {
        show::print(&table::list(agents));
    }
    if matches!(keeper, AgentsAccess::Book(_)) {
        remark("no node runs here: agents of its config file are not in this list");
    }
    Ok(())
}
