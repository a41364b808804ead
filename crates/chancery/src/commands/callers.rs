//! `chancery callers`: who may call the node, and the keys they do it with.

use std::time::Duration;

use chancery::identity::credentials::{CallerRecord, CertificateName, TokenSubject};
use chancery::protocol::{AgentId, Grant, MayCall};
use chancery::{BookError, CallerBook, show_caller};
use chancery_core::{Clock as _, SystemClock};
use chancery_outbound::{Admin, CallError};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::credentials::OwnCertificate;
use super::duration::duration;
use super::nearby::{Holder, holder};
use super::{Failure, Shared, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery callers add planner                                  prints planner's key, this once
  KEY=$(chancery callers add planner)                           keeps it in a variable
  chancery callers add ci --tenant acme --may-call echo         only that agent, and among the tasks of acme only its own
  chancery callers add bot --agent-id ID                        proves itself by signing with its own key, and has none of ours
  chancery callers rotate planner --overlap 1h                  a new key; the old one works for another hour
  chancery callers revoke planner                               nothing it has works any more, from now on
  chancery callers list

These work while the node runs, at once, and while it does not, from its next start on. Callers of the config file are
changed there.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Callers {
    #[command(flatten)]
    own: OwnCertificate,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add a caller and print its key
    Add(Add),
    /// List who may call
    List,
    /// Give a caller a new key and print it
    Rotate {
        name: String,
        /// How long the keys it has still work
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = duration)]
        overlap: Duration,
    },
    /// Take every credential from a caller, at once
    Revoke { name: String },
}

#[derive(clap::Args)]
struct Add {
    /// 1 to 64 of a-z, 0-9, '-', '_' and '.'
    name: String,
    /// Whose tasks it shares a roof with; it sees only its own
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// The agent of this node that it is
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// An agent it may call, or one skill of it; can be given several times [default: everything]
    #[arg(long, value_name = "AGENT[/SKILL]")]
    may_call: Vec<Grant>,
    /// A name of its certificate: spiffe://…, uri:URI, dns:NAME or sha256:HEX
    #[arg(long = "certificate", value_name = "NAME")]
    certificates: Vec<CertificateName>,
    /// The id of the key it signs its requests with
    #[arg(long = "agent-id", value_name = "ID")]
    agent_ids: Vec<AgentId>,
    /// An issuer of the config, and whom its tokens are about
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

impl Callers {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let adds = matches!(self.command, Command::Add(_));
        let keeper = Keeper::find(holder(shared, &self.own, adds).await?)?;
        match self.command {
            Command::Add(add) => {
                let record = add.record();
                keeper.check_agents(&record).await?;
                hand_over(&keeper.add(record).await?, shared.json)
            }
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
            "this is the key of {name}: keep it now, it is shown nowhere again. A lost one is replaced with `chancery callers \
             rotate {name}`"
        )),
        false => {
            remark(&format!("{name} proves itself without a key; `chancery callers rotate {name}` gives it one all the same"))
        }
    }
    if answer["open"] == true {
        remark(
            "the node was started without callers and lets everybody in until it is started again; start it again to let in \
             only those it knows",
        );
    }
    Ok(())
}

async fn list(keeper: &Keeper, json: bool) -> Result<(), Failure> {
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
    if matches!(keeper, Keeper::Book(_)) {
        remark("no node runs here: callers of its config file are not in this list");
    } else if callers.is_empty() {
        remark("nobody; everybody on this machine may call. Add callers with `chancery callers add NAME`");
    } else if answer["open"] == true {
        remark("the node was started without callers and lets everybody in until it is started again");
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

/// Whoever has the callers: a node that runs, or their file.
enum Keeper {
    Node(Admin),
    Book(CallerBook),
}

impl Keeper {
    fn find(holder: Holder) -> Result<Self, Failure> {
        let folder = match holder {
            Holder::Node(admin) => return Ok(Self::Node(admin)),
            Holder::Us(folder) => Some(folder),
            Holder::Nobody => None,
        };
        CallerBook::open(folder, Vec::new()).map(Self::Book).map_err(book_failure)
    }

    async fn list(&self) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.callers().await.map_err(failure),
            Self::Book(book) => {
                let callers: Vec<_> = book.list().iter().map(|(record, configured)| show_caller(record, *configured)).collect();
                Ok(json!({ "callers": callers }))
            }
        }
    }

    /// A node refuses to start with a caller that is granted an agent it does not have.
    async fn check_agents(&self, record: &CallerRecord) -> Result<(), Failure> {
        let mut named: Vec<&str> = record.agent.iter().map(|agent| &**agent).collect();
        if let MayCall::Only(grants) = &record.may_call {
            named.extend(grants.iter().map(|grant| &*grant.agent));
        }
        let Self::Node(admin) = self else {
            if !named.is_empty() {
                remark(&format!("no node runs here to ask: see that it serves {} before it is started", named.join(", ")));
            }
            return Ok(());
        };
        if named.is_empty() {
            return Ok(());
        }
        let node = admin.node().await.map_err(failure)?;
        let served: Vec<&str> = node["agents"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match named.iter().find(|name| !served.contains(name)) {
            None => Ok(()),
            Some(unknown) => Err(Failure::Usage(format!(
                "the node has no agent {}; it has {}",
                show::safe(unknown),
                show::safe(&served.join(", "))
            ))),
        }
    }

    async fn add(&self, record: CallerRecord) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.add_caller(&record).await.map_err(failure),
            Self::Book(book) => {
                let name = record.name.clone();
                let key = book.add(record, SystemClock.now()).map_err(book_failure)?;
                Ok(given(&name, key.as_ref()))
            }
        }
    }

    async fn rotate(&self, name: &str, overlap: Duration) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.rotate_caller(name, overlap).await.map_err(failure),
            Self::Book(book) => {
                let key = book.rotate(name, overlap, SystemClock.now()).map_err(book_failure)?;
                Ok(given(name, Some(&key)))
            }
        }
    }

    async fn revoke(&self, name: &str) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.revoke_caller(name).await.map_err(failure),
            Self::Book(book) => {
                book.revoke(name).map_err(book_failure)?;
                Ok(given(name, None))
            }
        }
    }
}

fn given(name: &str, key: Option<&SecretString>) -> Value {
    json!({ "name": name, "key": key.map(|key| key.expose_secret()) })
}

const SEE_LIST: &str = "see who there is with `chancery callers list`";

fn book_failure(fault: BookError) -> Failure {
    match fault {
        BookError::Faulty(_) => Failure::Usage(fault.to_string()),
        // Without a folder there is nobody to change.
        BookError::NoFolder => {
            Failure::Refused("there are no callers here yet; add one with `chancery callers add NAME`".to_owned())
        }
        BookError::Unknown(_) => Failure::Refused(format!("{fault}; {SEE_LIST}")),
        fault => Failure::Refused(fault.to_string()),
    }
}

/// What the node says, which is the same.
fn failure(error: CallError) -> Failure {
    match error {
        CallError::Refused { code: 400 | 422, message } => Failure::Usage(show::safe(&message)),
        CallError::Refused { code: 404, message } => Failure::Refused(format!("{}; {SEE_LIST}", show::safe(&message))),
        CallError::Refused { message, .. } => Failure::Refused(show::safe(&message)),
        error => error.into(),
    }
}
