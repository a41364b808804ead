//! `chancery keys`: the node's signing keys, and new ones in their place.

use std::sync::Arc;
use std::time::Duration;

use chancery::cli_support::{KeyRegistry, show_key};
use chancery::protocol::Timestamp;
use chancery_core::{Clock as _, SystemClock};
use chancery_identity::KeyUse;
use chancery_outbound::Admin;
use serde_json::{Value, json};

use super::duration::duration;
use super::nearby::{FolderHolder, holder};
use super::node_args::NodeArgs;
use super::{Failure, Shared, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery keys ls                                  every key: whose it is, what it signs, and until when
  chancery keys show KID                            one key
  chancery keys rotate push                         a new key, published now and used in ten minutes
  chancery keys rotate push --now                   sign with it at once; receivers that cache keys may reject it
  chancery keys rotate cards --agent echo --yes     the agent gets a new id, too

The uses are cards, hop-tokens, push, receipts and, with memory.tier, memory-grants. The old key stays published for --overlap after its
last signature. These commands work with a running node and with a stopped one.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct KeysCommandArgs {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the public keys
    Ls,
    /// Show one public key
    #[command(override_usage = "chancery keys show [OPTIONS] <KID>")]
    Show {
        /// Its kid, or the beginning of it
        // Without it every key is shown: `keys show` was the word for `keys ls`.
        #[arg(value_name = "KID")]
        kid: Option<String>,
    },
    /// Replace the keys of one use
    Rotate(Rotate),
}

#[derive(clap::Args)]
struct Rotate {
    /// What the keys sign: cards, hop-tokens, push, receipts or memory-grants
    #[arg(value_name = "USE")]
    key_use: KeyUse,
    /// The agent whose cards the key signs [default: the only agent]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Sign with the new key at once
    #[arg(long, conflicts_with = "lead")]
    now: bool,
    /// How long the new key is published before it signs
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    lead: Duration,
    /// How long the old key stays published after that
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = duration)]
    overlap: Duration,
    /// Confirm that the AgentID changes
    #[arg(long)]
    yes: bool,
}

impl KeysCommandArgs {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let keeper = Keeper::find(holder(shared, &self.node, false).await?)?;
        match self.command {
            Command::Show { kid: Some(kid) } => {
                let mut listed = keeper.list().await?;
                listed.retain(|key| key["kid"].as_str().is_some_and(|one| one.starts_with(&kid)));
                if listed.is_empty() {
                    return Err(Failure::Refused(format!(
                        "there is no key {}; see them with `chancery keys ls`",
                        show::safe(&kid)
                    )));
                }
                match shared.json {
                    true => show::print_json(&json!({ "keys": listed }).to_string()),
                    false => show::print(&table(&listed)),
                }
                Ok(())
            }
            Command::Ls | Command::Show { kid: None } => {
                let listed = keeper.list().await?;
                if shared.json {
                    show::print_json(&json!({ "keys": listed }).to_string());
                } else if listed.is_empty() {
                    remark("there are no keys yet; `chancery serve` makes them");
                } else {
                    show::print(&table(&listed));
                }
                Ok(())
            }
            Command::Rotate(rotate) => rotate.run(&keeper, shared.json).await,
        }
    }
}

impl Rotate {
    async fn run(self, keeper: &Keeper, json: bool) -> Result<(), Failure> {
        let listed = keeper.list().await?;
        let owner = self.owner(&listed)?;
        let before = current_id(&listed, owner.as_deref()).filter(|_| self.key_use == KeyUse::Cards);
        if let (KeyUse::Cards, Some(agent), false) = (self.key_use, &owner, self.yes) {
            let id = before.as_deref().unwrap_or("none yet");
            return Err(Failure::Usage(format!(
                "new keys for the cards of {agent} give it a new agent id: every client that pinned the current id ({id}) must pin \
                 the new one, which this command prints. To continue, use --yes"
            )));
        }
        let lead = if self.now { Duration::ZERO } else { self.lead };
        let made = keeper.rotate(self.key_use, owner.as_deref(), lead, self.overlap).await?;
        let after = made.iter().find_map(|key| key["agent_id"].as_str());
        if json {
            let mut answer = json!({ "keys": made });
            if after.is_some() {
                answer["agent_id"] = json!({ "old": before, "new": after });
            }
            show::print_json(&answer.to_string());
            return Ok(());
        }
        show::print(&table(&made));
        let from = made.first().map(|key| text(&key["used_from"])).unwrap_or_default();
        if let (Some(before), Some(after)) = (&before, after) {
            remark(&format!("old agent id  {}\nnew agent id  {}, from {from}", show::safe(before), show::safe(after)));
            remark("send the new agent id to every client that pinned the old one");
        }
        let until = Timestamp::parse(&from).map(|from| from + self.overlap).unwrap_or_default();
        remark(&format!("the new keys sign from {from} on; the old ones stay published until {until}"));
        Ok(())
    }

    /// Keys of cards are an agent's, all others the node's.
    fn owner(&self, listed: &[Value]) -> Result<Option<String>, Failure> {
        match (self.key_use, &self.agent) {
            (KeyUse::Cards, _) => {}
            (_, None) => return Ok(None),
            (other, Some(_)) => return Err(Failure::Usage(format!("--agent is for cards: keys for {other} are the node's"))),
        }
        let mut agents: Vec<&str> = listed.iter().filter(is_live_card_key).filter_map(|key| key["owner"].as_str()).collect();
        agents.sort_unstable();
        agents.dedup();
        let names = show::safe(&agents.join(", "));
        match (&self.agent, agents[..].len()) {
            (_, 0) => Err(Failure::Refused("no agent has keys yet; `chancery serve` makes them".to_owned())),
            (Some(agent), _) if agents.contains(&agent.as_str()) => Ok(Some(agent.clone())),
            (Some(agent), _) => Err(Failure::Refused(format!("the agent {agent} has no keys; agents with keys: {names}"))),
            (None, 1) => Ok(Some(agents[0].to_owned())),
            (None, _) => Err(Failure::Usage(format!("several agents have keys; choose one with --agent: {names}"))),
        }
    }
}

fn is_live_card_key(key: &&Value) -> bool {
    key["use"] == KeyUse::Cards.as_str() && key["state"] != "retired"
}

/// The current id of the agent: that of the key that signs.
fn current_id(listed: &[Value], agent: Option<&str>) -> Option<String> {
    let signs = |key: &&Value| key["owner"].as_str() == agent && key["agent_id"].is_string() && key["state"] != "published";
    let mine = listed.iter().filter(is_live_card_key).filter(signs);
    let newest = mine.max_by_key(|key| (key["given"] == true, text(&key["used_from"]), text(&key["made_at"])));
    newest.and_then(|key| key["agent_id"].as_str()).map(str::to_owned)
}

fn table(keys: &[Value]) -> String {
    let head = ["USE", "OWNER", "ALGORITHM", "STATE", "MADE", "SIGNS FROM", "RETIRES", "KID", "AGENT ID"].map(str::to_owned);
    let row = |key: &Value| {
        let names = ["use", "owner", "algorithm", "state", "made_at", "used_from", "retires_at", "kid", "agent_id"];
        names.map(|name| key[name].as_str().map_or_else(|| "-".to_owned(), show::safe))
    };
    show::columns(std::iter::once(head).chain(keys.iter().map(row)).collect())
}

fn text(value: &Value) -> String {
    show::safe(value.as_str().unwrap_or_default())
}

/// The owner of the keys: a running node, or their file.
enum Keeper {
    Node(Box<Admin>),
    File(KeyRegistry),
}

impl Keeper {
    fn find(holder: FolderHolder) -> Result<Self, Failure> {
        let folder = match holder {
            FolderHolder::Node(admin) => return Ok(Self::Node(admin)),
            FolderHolder::Us(folder) => Some(folder),
            FolderHolder::Nobody => None,
        };
        let opened = KeyRegistry::open(folder.as_ref().map(Arc::clone));
        opened.map(Self::File).map_err(|fault| Failure::Refused(fault.to_string()))
    }

    async fn list(&self) -> Result<Vec<Value>, Failure> {
        match self {
            Self::Node(admin) => Ok(listed(admin.keys().await?)),
            Self::File(chest) => {
                let now = SystemClock.now();
                Ok(chest.ring().records().iter().map(|key| show_key(key, now)).collect())
            }
        }
    }

    async fn rotate(
        &self,
        key_use: KeyUse,
        owner: Option<&str>,
        lead: Duration,
        overlap: Duration,
    ) -> Result<Vec<Value>, Failure> {
        match self {
            Self::Node(admin) => Ok(listed(admin.rotate_keys(key_use.as_str(), owner, lead, overlap).await?)),
            Self::File(chest) => {
                let now = SystemClock.now();
                let made = chest.rotate(key_use, owner, lead, overlap, now);
                let made = made.map_err(|fault| Failure::Refused(fault.to_string()))?;
                Ok(made.iter().map(|key| show_key(key, now)).collect())
            }
        }
    }
}

fn listed(mut answer: Value) -> Vec<Value> {
    match answer["keys"].take() {
        Value::Array(keys) => keys,
        _ => Vec::new(),
    }
}
