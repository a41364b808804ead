//! `chancery memory`: puts vectors into the node's tier, hands them out by their witness, and says who may use them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use chancery_memory::{Capability, VectorShape};
use chancery_protocol::AgentId;
use futures::{Stream, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::duration::duration;
use super::node_args::NodeArgs;
use super::{Failure, Shared, nearby, show};

const EXAMPLES: &str = "\
Examples:
  chancery memory publish notes.ruvec                  put vectors into the tier; prints their witness
  chancery memory publish notes.jsonl                  the same from lines of {\"id\": 1, \"vector\": [0.5, -1]}
  chancery memory grants add WITNESS --to AGENT_ID     let an agent read and search them for a day
  chancery memory grants add WITNESS --to AGENT_ID --can read --for 1h --from AGENT_ID
  chancery memory grants ls                            all grants and their states
  chancery memory grants rm GRANT                      revoke a grant on every node of the tier
  chancery memory resolve WITNESS                      check the vectors of a witness
  chancery memory search WITNESS --query '[0.5, -1]'   the nearest vectors
  chancery memory show                                 the tier, its content, and the key that other nodes trust

The id of an agent is in its card and in `chancery keys ls`.";

/// A large collection is read, checked and made ready before there is an answer.
const LOADING: Duration = Duration::from_secs(600);

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MemoryCommandArgs {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(clap::Subcommand)]
enum MemoryCommand {
    /// Publish vectors in the tier and print their witness
    Publish {
        /// A ruvec1 file, or lines of JSON if its name ends with .jsonl
        file: PathBuf,
        /// The class of the memory, such as "episodic"; stored with the vectors
        #[arg(long, value_name = "WORD")]
        class: Option<String>,
    },
    /// Check a witness and load its collection
    Resolve {
        witness: String,
        /// The location that the witness must have
        #[arg(long, value_name = "URL")]
        data_ref: Option<String>,
    },
    /// Print the nearest vectors of a query
    Search {
        witness: String,
        /// A list of numbers in JSON; repeat it for several
        #[arg(long, required = true, value_name = "JSON")]
        query: Vec<String>,
        /// How many neighbours
        #[arg(short, default_value_t = 10)]
        k: usize,
    },
    /// List, add and revoke the grants of the tier
    Grants {
        #[command(subcommand)]
        command: Option<GrantsCommand>,
    },
    // The words for `grants add` and `grants rm` of earlier versions.
    #[command(hide = true)]
    Grant(NewGrantArgs),
    #[command(hide = true)]
    Revoke { grant: String },
    /// Show the tier, its content, and the key that other nodes must trust
    Show,
}

#[derive(clap::Subcommand)]
enum GrantsCommand {
    /// List the grants of the tier
    Ls,
    /// Issue a grant to an agent and print its id, which is sent with the witness
    Add(NewGrantArgs),
    /// Revoke a grant
    Rm {
        /// The id of the grant
        grant: String,
    },
}

#[derive(clap::Args)]
struct NewGrantArgs {
    /// The witness [default: the whole shard]
    witness: Option<String>,
    /// The agent that may use it
    #[arg(long, value_name = "AGENT_ID", value_parser = agent_id)]
    to: AgentId,
    /// The rights: read, write, search
    #[arg(long, value_delimiter = ',', default_value = "read,search", value_parser = capability)]
    can: Vec<Capability>,
    /// The agent that must send the grant
    #[arg(long, value_name = "AGENT_ID", value_parser = agent_id)]
    from: Option<AgentId>,
    /// How long the grant is valid, as in 30m or 12h
    #[arg(long = "for", default_value = "1d", value_parser = duration)]
    lasts: Duration,
}

fn agent_id(text: &str) -> Result<AgentId, &'static str> {
    text.parse()
}

fn capability(text: &str) -> Result<Capability, &'static str> {
    text.parse()
}

impl NewGrantArgs {
    fn asked(&self) -> Value {
        let Self { witness, to, can, from, lasts } = self;
        json!({
            "witness": witness, "capabilities": can, "grantee": to, "presenter": from, "lasts_seconds": lasts.as_secs(),
        })
    }
}

impl MemoryCommandArgs {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?.patient(LOADING);
        let (answer, line) = match self.command {
            MemoryCommand::Publish { file, class } => {
                let class = class.as_deref();
                let answer = if file.extension().is_some_and(|extension| extension == "jsonl") {
                    let vectors = Bytes::from(from_lines(&file)?);
                    admin.publish_memory(stream::iter([Ok(vectors)]), class).await?
                } else {
                    admin.publish_memory(read(&file).await?, class).await?
                };
                let line = text(&answer["witness"]);
                (answer, line)
            }
            MemoryCommand::Resolve { witness, data_ref } => {
                let answer = admin.resolve_memory(&witness, data_ref.as_deref()).await?;
                let line = format!("{} vectors of {} at {}", answer["count"], answer["dim"], text(&answer["data_ref"]));
                (answer, line)
            }
            MemoryCommand::Search { witness, query, k } => {
                let queries = query.iter().map(|query| serde_json::from_str(query)).collect::<Result<Vec<Vec<f32>>, _>>();
                let queries = queries.map_err(|fault| Failure::Usage(format!("--query: {fault}")))?;
                let answer = admin.search_memory(&witness, &queries, k).await?;
                let near = answer["neighbours"].as_array().into_iter().flatten().flat_map(Value::as_array).flatten();
                let lines: Vec<String> = near.map(|one| format!("{}\t{}", one["id"], one["score"])).collect();
                (answer, lines.join("\n"))
            }
            MemoryCommand::Grants { command: Some(GrantsCommand::Add(new)) } | MemoryCommand::Grant(new) => {
                let answer = admin.grant_memory(&new.asked()).await?;
                let line = text(&answer["id"]);
                (answer, line)
            }
            MemoryCommand::Grants { command: Some(GrantsCommand::Ls) | None } => {
                let answer = admin.memory_grants().await?;
                let lines: Vec<String> = answer["grants"].as_array().into_iter().flatten().map(listed).collect();
                (answer, lines.join("\n"))
            }
            MemoryCommand::Grants { command: Some(GrantsCommand::Rm { grant }) } | MemoryCommand::Revoke { grant } => {
                let answer = admin.revoke_memory(&grant).await?;
                (answer, format!("{grant} revoked"))
            }
            MemoryCommand::Show => {
                let answer = admin.memory().await?;
                let mut lines: Vec<String> =
                    ["shard", "tier", "issuer"].iter().map(|name| format!("{name}: {}", text(&answer[*name]))).collect();
                lines.extend(answer["witnesses"].as_array().into_iter().flatten().map(text));
                (answer, lines.join("\n"))
            }
        };
        if shared.json {
            show::print_json(&answer.to_string());
        } else if !line.is_empty() {
            show::print_line(&line);
        }
        Ok(())
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn listed(grant: &Value) -> String {
    let says = &grant["says"];
    let can: Vec<String> = says["capabilities"].as_array().into_iter().flatten().map(text).collect();
    let what = says.get("witness").map_or_else(|| format!("all of {}", text(&says["shard"])), text);
    let (id, state, to, until) = (text(&says["id"]), text(&grant["state"]), text(&says["grantee"]), text(&says["expires_at"]));
    format!("{id}  {state}  {}  {what}  to {to}  until {until}", can.join(","))
}

/// A file of any size, a piece at a time.
async fn read(file: &Path) -> Result<impl Stream<Item = std::io::Result<Bytes>> + Send + 'static, Failure> {
    const PIECE: usize = 1 << 20;
    let unread = |fault: std::io::Error| Failure::Usage(format!("{}: {fault}", file.display()));
    let opened = tokio::fs::File::open(file).await.map_err(unread)?;
    Ok(stream::try_unfold(opened, |mut file| async move {
        let mut piece = vec![0; PIECE];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(piece), file)))
    }))
}

/// Lines of `{"id", "vector"}` as a ruvec1 file.
fn from_lines(file: &Path) -> Result<Vec<u8>, Failure> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        id: u64,
        vector: Vec<f32>,
    }

    let fault = |place: usize, fault: &dyn std::fmt::Display| Failure::Usage(format!("{}:{place}: {fault}", file.display()));
    let lines = std::fs::read_to_string(file).map_err(|unread| fault(0, &unread))?;
    let mut records = Vec::new();
    let mut shape = VectorShape { count: 0, dim: 0 };
    for (place, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Line { id, vector } = serde_json::from_str(line).map_err(|wrong| fault(place + 1, &wrong))?;
        let dim = u32::try_from(vector.len()).unwrap_or(u32::MAX);
        if shape.count > 0 && dim != shape.dim {
            return Err(fault(place + 1, &format!("{dim} numbers, and {} in the lines before", shape.dim)));
        }
        shape = VectorShape { count: shape.count + 1, dim };
        records.extend_from_slice(&id.to_le_bytes());
        records.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
    }
    Ok([&shape.header()[..], &records].concat())
}
