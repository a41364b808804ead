//! `chancery push dead ls|show|replay|purge` and `push receipts export`: what was given up, and what was taken.

use std::time::Duration;

use chancery_outbound::Admin;
use serde_json::{Map, Value, json};

use super::super::node_args::NodeArgs;
use super::super::{Failure, Shared, nearby, remark, show};
use super::operate::query;

/// Which letters are meant.
#[derive(clap::Args)]
struct DeadLetterFilter {
    /// Only letters that died at or after this time, as 2026-11-15T07:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only letters that died before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[arg(long, value_name = "ORIGIN")]
    origin: Option<String>,
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    #[arg(long, value_name = "LANE")]
    lane: Option<u64>,
    /// rejected, redirect, gone or exhausted
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
}

impl DeadLetterFilter {
    fn named(&self) -> Map<String, Value> {
        let mut named = Map::new();
        let texts = [
            ("since", &self.since),
            ("until", &self.until),
            ("origin", &self.origin),
            ("task", &self.task),
            ("reason", &self.reason),
        ];
        for (name, value) in texts {
            named.extend(value.as_ref().map(|value| (name.to_owned(), json!(value))));
        }
        named.extend(self.lane.map(|lane| ("lane".to_owned(), json!(lane))));
        named
    }
}

#[derive(clap::Args)]
pub(super) struct DeadLettersCommand {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: DeadCommand,
}

#[derive(clap::Subcommand)]
enum DeadCommand {
    /// List dead letters: deliveries that the node stopped retrying
    Ls {
        #[command(flatten)]
        which: DeadLetterFilter,
        #[arg(long, value_name = "NUMBER", default_value_t = 100)]
        limit: usize,
    },
    /// Show one dead letter
    Show { letter: u64 },
    /// Send dead letters to their receivers again, in order, with the same ids
    Replay {
        #[command(flatten)]
        which: DeadLetterFilter,
        /// Use new ids, for receivers that would drop the old ids as duplicates
        #[arg(long)]
        new_id: bool,
        /// List the letters and send nothing
        #[arg(long)]
        dry_run: bool,
        /// The most letters a second
        #[arg(long, value_name = "NUMBER")]
        rate: Option<usize>,
        /// Only letters after this one, to continue an interrupted replay
        #[arg(long, value_name = "LETTER", default_value_t = 0)]
        after: u64,
    },
    /// Delete dead letters
    Purge {
        #[command(flatten)]
        which: DeadLetterFilter,
        /// Print the number of letters and delete nothing
        #[arg(long)]
        dry_run: bool,
    },
}

impl DeadLettersCommand {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        match self.command {
            DeadCommand::Ls { which, limit } => {
                let mut named = which.named();
                named.insert("limit".to_owned(), json!(limit));
                let answer = admin.push_get(&["dead"], &query(&named)).await?;
                if shared.json {
                    show::print_json(&answer.to_string());
                } else {
                    show::print(&table(&answer["letters"]));
                }
            }
            DeadCommand::Show { letter } => {
                let letter = admin.push_get(&["dead", &letter.to_string()], &[]).await?;
                show::print_json(&letter.to_string());
            }
            DeadCommand::Replay { which, new_id, dry_run, rate, after } => {
                let mut named = which.named();
                named.insert("new_id".to_owned(), json!(new_id));
                named.insert("dry_run".to_owned(), json!(dry_run));
                replay(&admin, named, rate, after, shared.json).await?;
            }
            DeadCommand::Purge { which, dry_run } => {
                let mut named = which.named();
                named.insert("dry_run".to_owned(), json!(dry_run));
                let answer = admin.push_post(&["dead", "purge"], &Value::Object(named)).await?;
                if shared.json {
                    show::print_json(&answer.to_string());
                } else {
                    show::print_line(&format!("{} letters {}", answer["purged"], if dry_run { "fit" } else { "purged" }));
                }
            }
        }
        Ok(())
    }
}

/// All at once, or so many a second.
async fn replay(
    admin: &Admin,
    mut named: Map<String, Value>,
    rate: Option<usize>,
    after: u64,
    json: bool,
) -> Result<(), Failure> {
    if rate == Some(0) {
        return Err(Failure::Usage("--rate: at least one a second".to_owned()));
    }
    named.extend(rate.map(|rate| ("limit".to_owned(), json!(rate))));
    let (mut after, mut letters) = (after, Vec::new());
    loop {
        named.insert("after".to_owned(), json!(after));
        let answer = admin.push_post(&["dead", "replay"], &Value::Object(named.clone())).await?;
        letters.extend(show::items(&answer["letters"]).iter().cloned());
        let Some(next) = answer["next"].as_u64() else { break };
        after = next;
        if rate.is_some() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    if json {
        show::print_json(&json!({ "letters": letters, "dry_run": named["dry_run"] }).to_string());
    } else {
        let what =
            if named["dry_run"] == true { "would be put to their receivers again" } else { "are in line to be sent again" };
        show::print_line(&format!("{} letters {what}", letters.len()));
    }
    Ok(())
}

fn table(letters: &Value) -> String {
    let rows = show::items(letters);
    if rows.is_empty() {
        remark("no dead letter matches");
        return String::new();
    }
    let head = ["LETTER", "REASON", "HTTP", "ATTEMPTS", "ENTRIES", "LAST", "REPLAYS", "ORIGIN", "TASK"].map(str::to_owned);
    let row = |letter: &Value| {
        let text = |name: &str| show::text(&letter[name]);
        let entries = format!("{}-{}", text("from"), text("to"));
        let (id, reason, http, attempts) = (text("id"), text("reason"), text("http"), text("attempts"));
        [id, reason, http, attempts, entries, text("last_at"), text("replays"), text("origin"), text("task")]
    };
    show::columns(std::iter::once(head).chain(rows.iter().map(row)).collect())
}

#[derive(clap::Args)]
pub(super) struct Receipts {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: ReceiptsCommand,
}

#[derive(clap::Subcommand)]
enum ReceiptsCommand {
    /// Print every receipt as JSON, one a line
    Export {
        /// Only receipts of this lane
        #[arg(long, value_name = "LANE")]
        lane: Option<u64>,
        /// Only receipts after this number
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: u64,
    },
}

impl Receipts {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let ReceiptsCommand::Export { lane, mut after } = self.command;
        loop {
            let mut named = Map::from_iter([("after".to_owned(), json!(after)), ("limit".to_owned(), json!(1_000))]);
            named.extend(lane.map(|lane| ("lane".to_owned(), json!(lane))));
            let answer = admin.push_get(&["receipts"], &query(&named)).await?;
            for receipt in show::items(&answer["receipts"]) {
                show::print_json(&receipt.to_string());
            }
            match answer["next"].as_u64() {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }
}
