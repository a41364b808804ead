//! `chancery tasks`: the operator's view of every caller's tasks.

use std::time::Duration;

use chancery::protocol::{Task, TaskEvent, TaskState, Timestamp};
use chancery_core::{Clock as _, SystemClock};
use chancery_outbound::Admin;
use serde_json::Value;

use super::duration::duration;
use super::node_args::NodeArgs;
use super::{Failure, Shared, nearby, remark, show, tree};

const EXAMPLES: &str = "\
Examples:
  chancery tasks ls                        all tasks, the newest first
  chancery tasks ls --state working        only tasks in this state
  chancery tasks ls --caller acme/planner --since 1h
                                           tasks of one caller whose state changed in the last hour
  chancery tasks show TASK                 one task, with its history and artifacts
  chancery tasks watch TASK                its log so far, and new entries as they are written
  chancery tasks cancel TASK               cancel a task and the calls made for it, the deepest first

These commands find the node and its token in the data folder (--data). For a node on another machine give its
URL and token: chancery tasks ls --url https://node.example.org --token-file admin.token";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Tasks {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List tasks of all callers, newest first
    #[command(name = "ls", alias = "list")]
    List(ListArgs),
    /// Show one task
    #[command(name = "show", alias = "get")]
    Get { id: String },
    /// Cancel a task and all tasks below it, the deepest first
    Cancel { id: String },
    /// Show a task's log, and follow it until the task ends
    Watch {
        id: String,
        /// Show only entries after this one
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: u64,
    },
}

#[derive(clap::Args)]
struct ListArgs {
    /// Only tasks of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only tasks of this caller: NAME, or TENANT/NAME
    #[arg(long, value_name = "CALLER")]
    caller: Option<String>,
    /// Only tasks of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only tasks of this context
    #[arg(long, value_name = "CONTEXT")]
    context: Option<String>,
    /// Only tasks in this state: working, completed, input-required, ...
    #[arg(long, value_name = "STATE", value_parser = state_named)]
    state: Option<TaskState>,
    /// Only tasks whose state changed in this time, as in 90s, 10m, 24h or 7d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    since: Option<Duration>,
    /// How many to list
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Continue after an earlier list, with the value that it printed
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
}

impl ListArgs {
    fn query(&self) -> Vec<(&'static str, String)> {
        let Self { agent, caller, tenant, context, state, since, limit, after } = self;
        let texts = [("agent", agent), ("caller", caller), ("tenant", tenant), ("context", context), ("after", after)];
        let mut query: Vec<_> = texts.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
        query.extend(state.map(|state| ("state", state.name().to_owned())));
        let before =
            |since: Duration| SystemClock.now().micros().saturating_sub_unsigned(since.as_secs().saturating_mul(1_000_000));
        query.extend(since.map(|since| ("since", Timestamp::from_micros(before(since)).to_string())));
        query.extend([("limit", limit.to_string()), ("total", true.to_string())]);
        query
    }
}

fn state_named(name: &str) -> Result<TaskState, String> {
    let known = TaskState::ALL.into_iter().filter(|state| *state != TaskState::Unspecified);
    let found = known.clone().find(|state| state.name() == name || show::state(*state) == name);
    found.ok_or_else(|| format!("the states are {}", known.map(show::state).collect::<Vec<_>>().join(", ")))
}

impl Tasks {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        match self.command {
            Command::List(wanted) => list(&admin, &wanted, shared.json).await,
            Command::Get { id } => {
                let answer = admin.task(&id).await?;
                if shared.json {
                    show::print_json(&answer.to_string());
                    return Ok(());
                }
                show_one(&answer["record"], &read(&answer["task"])?);
                Ok(())
            }
            Command::Cancel { id } => {
                let answer = admin.cancel(&id).await?;
                let cascade = &answer["cascade"];
                if shared.json {
                    show::print_json(&answer.to_string());
                } else {
                    show::print(&tree::cascade(cascade));
                    let task: Task = read(&answer["task"])?;
                    show::print_line(&format!("{} {}", show::safe(task.id.as_str()), show::state(task.status.state)));
                }
                if show::items(cascade).is_empty() { Ok(()) } else { tree::left_over(cascade) }
            }
            Command::Watch { id, after } => watch(&admin, &id, after, shared.json).await,
        }
    }
}

async fn list(admin: &Admin, wanted: &ListArgs, json: bool) -> Result<(), Failure> {
    let query = wanted.query();
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = admin.tasks(&query).await?;
    if json {
        show::print_json(&answer.to_string());
        return Ok(());
    }
    let tasks = answer["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !tasks.is_empty() {
        let head = ["TASK", "STATE", "AGENT", "CALLER", "SINCE", "EVENTS"].map(str::to_owned);
        show::print(&show::columns(std::iter::once(head).chain(tasks.iter().map(row)).collect()));
    }
    remark(&format!("{} of {}", tasks.len(), answer["total"]));
    if let Some(next) = answer["next"].as_str() {
        remark(&format!("more with the same command and --after {}", show::safe(next)));
    }
    Ok(())
}

fn row(record: &Value) -> [String; 6] {
    let caller = format!("{}/{}", text(&record["caller"]["tenant"]), text(&record["caller"]["name"]));
    [
        text(&record["id"]),
        show::state_name(&text(&record["state"])),
        text(&record["agent"]),
        caller,
        text(&record["status_at"]),
        record["events"].to_string(),
    ]
}

fn show_one(record: &Value, task: &Task) {
    let facts = [
        ("task", text(&record["id"])),
        ("context", text(&record["context_id"])),
        ("agent", text(&record["agent"])),
        ("caller", row(record)[3].clone()),
        ("state", show::state(task.status.state)),
        ("since", text(&record["status_at"])),
        ("made", text(&record["created_at"])),
        ("events", record["events"].to_string()),
    ];
    show::print(&show::columns(facts.map(|(name, fact)| [name.to_owned(), fact]).to_vec()));
    for message in &task.history {
        let who = message.role.name().trim_start_matches("ROLE_").to_lowercase();
        show::print(&format!("\n{who}:\n{}\n", show::message(message)));
    }
    if let Some(message) = &task.status.message {
        show::print(&format!("\nstatus:\n{}\n", show::message(message)));
    }
    for artifact in &task.artifacts {
        show::print(&format!("\nartifact {}:\n{}\n", show::safe(artifact.artifact_id.as_str()), show::parts(&artifact.parts)));
    }
}

async fn watch(admin: &Admin, id: &str, after: u64, json: bool) -> Result<(), Failure> {
    let mut events = admin.follow(id, after).await?;
    let mut last = None;
    while let Some(entry) = events.next().await? {
        let event: TaskEvent = read(&entry["event"])?;
        last = state_of(&event).or(last);
        if json {
            show::print_json(&entry.to_string());
        } else {
            show::print_line(&format!("{:>4}  {}  {}", entry["seq"].to_string(), text(&entry["at"]), told(&event)));
        }
    }
    match last {
        Some(TaskState::Failed | TaskState::Rejected | TaskState::Canceled) => {
            Err(Failure::Refused(format!("task {} {}", show::safe(id), last.map(show::state).unwrap_or_default())))
        }
        Some(state) if !state.is_terminal() => Err(Failure::Unreachable("the node stopped before the task ended".to_owned())),
        _ => Ok(()),
    }
}

fn state_of(event: &TaskEvent) -> Option<TaskState> {
    match event {
        TaskEvent::Created(task) => Some(task.status.state),
        TaskEvent::Status(change) => Some(change.status.state),
        TaskEvent::Replied(_) => Some(TaskState::Completed),
        TaskEvent::Said(_) | TaskEvent::Artifact(_) => None,
    }
}

fn told(event: &TaskEvent) -> String {
    let said = |what: String, text: String| if text.is_empty() { what } else { format!("{what}: {text}") };
    match event {
        TaskEvent::Created(task) => {
            let first = task.history.first().map(|message| show::message(message));
            said(show::state(task.status.state), first.unwrap_or_default())
        }
        TaskEvent::Said(message) => said("said".to_owned(), show::message(message)),
        TaskEvent::Status(change) => {
            let message = change.status.message.as_deref().map(show::message);
            said(show::state(change.status.state), message.unwrap_or_default())
        }
        TaskEvent::Artifact(chunk) => {
            let verb = if chunk.append { "more of artifact" } else { "artifact" };
            said(format!("{verb} {}", show::safe(chunk.artifact.artifact_id.as_str())), show::parts(&chunk.artifact.parts))
        }
        TaskEvent::Replied(message) => said("replied".to_owned(), show::message(message)),
    }
}

fn text(value: &Value) -> String {
    show::safe(value.as_str().unwrap_or_default())
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, Failure> {
    // By way of text, because metadata and data keep the text they came in.
    serde_json::from_str(&value.to_string()).map_err(|error| Failure::Refused(format!("cannot read the node's answer: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_found_by_either_name() {
        assert_eq!(state_named("input-required"), Ok(TaskState::InputRequired));
        assert_eq!(state_named("TASK_STATE_WORKING"), Ok(TaskState::Working));
        assert!(state_named("happy").is_err_and(|fault| fault.contains("working")));
        assert!(state_named("unspecified").is_err());
    }
}
