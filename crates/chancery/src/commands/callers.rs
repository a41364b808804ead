//! `chancery callers`: who may call the node, and the keys they do it with.

mod keeper;

use std::time::Duration;

use chancery::protocol::{AgentId, CallGrant, MayCall};
use chancery_identity::credentials::{CallerRecord, CertificateName, TokenSubject};
use serde_json::Value;

use self::keeper::CallersAccess;
use super::duration::duration;
use super::nearby::holder;
use super::node_args::NodeArgs;
use super::{Failure, Shared, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery callers add planner                                  prints planner's key; the node never shows it again
  KEY=$(chancery callers add planner)                           keeps the key in a variable
  chancery callers add ci --tenant acme --may-call echo         may call only `echo`, and sees only its own tasks
  chancery callers add bot --agent-id ID                        signs requests with its own key; the node makes no key for it
  chancery callers rotate planner --overlap 1h                  makes a new key; the old key works for another hour
  chancery callers rm planner                                   revokes its keys, tokens and certificates at once
  chancery callers ls

A running node applies these commands at once; a stopped node applies them at its next start. A node that was started without callers
accepts every client until its next start, also after you add its first caller. To change a caller of the config file, edit that file.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CallersCommand {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add a caller and print its key
    Add(Add),
    /// List the callers
    #[command(name = "ls", alias = "list")]
    List,
    /// Give a caller a new key and print it
    Rotate {
        /// The name of the caller
        name: String,
        /// How long the old keys still work
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = duration)]
        overlap: Duration,
    },
    /// Revoke every credential of a caller, at once
    #[command(name = "rm", alias = "revoke")]
    Revoke {
        /// The name of the caller
        name: String,
    },
}

#[derive(clap::Args)]
struct Add {
    /// The name: 1 to 64 of a-z, 0-9, '-', '_' and '.'
    name: String,
    /// The tenant of the caller
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// The agent of this node that calls with these credentials
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// An agent it may call, or one skill of it; can be given several times [default: everything]
    #[arg(long, value_name = "AGENT[/SKILL]")]
    may_call: Vec<CallGrant>,
    /// A name in its certificate: spiffe://…, uri:URI, dns:NAME or sha256:HEX
    #[arg(long = "certificate", value_name = "NAME")]
    certificates: Vec<CertificateName>,
    /// The AgentID of the key that signs its requests
    #[arg(long = "agent-id", value_name = "ID")]
    agent_ids: Vec<AgentId>,
    /// An issuer of the config, and the subject of its tokens
    #[arg(long = "token", value_name = "ISSUER:SUBJECT", value_parser = token_subject)]
    tokens: Vec<TokenSubject>,
}

fn token_subject(text: &str) -> Result<TokenSubject, String> {
    let (issuer, subject) = text.split_once(':').ok_or("write ISSUER:SUBJECT")?;
    Ok(TokenSubject { issuer: issuer.to_owned(), subject: subject.to_owned() })
}

impl Add {
    fn record(self) -> CallerRecord {
        let mut record = CallerRecord::new(self.name);
        if let Some(tenant) = self.tenant {
            record.tenant = tenant;
        }
        record.agent = self.agent.map(Into::into);
        if !self.may_call.is_empty() {
            record.may_call = MayCall::Only(self.may_call);
        }
        record.certificates = self.certificates;
        record.agent_ids = self.agent_ids;
        record.tokens = self.tokens;
        record
    }
}

impl CallersCommand {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let adds = matches!(self.command, Command::Add(_));
        let keeper = CallersAccess::find(holder(shared, &self.node, adds).await?)?;
        match self.command {
            Command::Add(add) => hand_over(&keeper.add(add.record()).await?, shared.json),
            Command::List => list(&keeper, shared.json).await,
            Command::Rotate { name, overlap } => hand_over(&keeper.rotate(&name, overlap).await?, shared.json),
            Command::Revoke { name } => {
                let answer = keeper.revoke(&name).await?;
                if shared.json {
                    show::print_json(&answer.to_string());
                } else {
                    remark(&format!(
                        "{name} can no longer call; what it made stays its own, and its name is not given to others"
                    ));
                }
                Ok(())
            }
        }
    }
}

/// The key alone on stdout, so that it can be put where it belongs without a hand in between.
fn hand_over(answer: &Value, json: bool) -> Result<(), Failure> {
    let name = show::safe(answer["name"].as_str().unwrap_or_default());
    if json {
        show::print_json(&answer.to_string());
    } else if let Some(key) = answer["key"].as_str() {
        show::print_line(&show::safe(key));
    }
    match answer["key"].is_string() {
        true => remark(&format!(
            "the key of {name}; store it now, it is not shown again. `chancery callers rotate {name}` replaces a lost key"
        )),
        false => remark(&format!("{name} authenticates without a key; `chancery callers rotate {name}` makes one")),
    }
    if answer["open"] == true {
        remark(
            "the node was started without callers and accepts every client; restart it, so that it accepts only the callers it \
             knows",
        );
    }
    Ok(())
}

async fn list(keeper: &CallersAccess, json: bool) -> Result<(), Failure> {
    let answer = keeper.list().await?;
    if json {
        show::print_json(&answer.to_string());
        return Ok(());
    }
    let callers = answer["callers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !callers.is_empty() {
        let head = ["CALLER", "TENANT", "MAY CALL", "PROVES ITSELF BY", "FROM"].map(str::to_owned);
        show::print(&show::columns(std::iter::once(head).chain(callers.iter().map(row)).collect()));
    }
    if matches!(keeper, CallersAccess::Book(_)) {
        remark("no node runs here: callers of its config file are not in this list");
    } else if callers.is_empty() {
        remark("no callers: every client on this machine may call. Add a caller with `chancery callers add NAME`");
    } else if answer["open"] == true {
        remark("the node was started without callers and accepts every client until you restart it");
    }
    Ok(())
}

fn row(caller: &Value) -> [String; 5] {
    let text = |value: &Value| show::safe(value.as_str().unwrap_or_default());
    let may_call = caller["may_call"].as_array().map_or_else(
        || "everything".to_owned(),
        |grants| match grants.is_empty() {
            true => "nothing".to_owned(),
            false => grants.iter().map(text).collect::<Vec<_>>().join(" "),
        },
    );
    let mut proofs = Vec::new();
    for (member, word) in [("keys", "key"), ("certificates", "certificate"), ("agent_ids", "signature"), ("tokens", "token")] {
        match caller[member].as_array().map_or(0, Vec::len) {
            0 => {}
            1 => proofs.push(word.to_owned()),
            several => proofs.push(format!("{several} {word}s")),
        }
    }
    let proofs = if proofs.is_empty() { "nothing: revoked".to_owned() } else { proofs.join(", ") };
    let from = if caller["configured"] == true { "config" } else { "callers add" };
    [text(&caller["name"]), text(&caller["tenant"]), may_call, proofs, from.to_owned()]
}
