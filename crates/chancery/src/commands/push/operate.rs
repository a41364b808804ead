//! `chancery push ls|show|test|pause|resume|disable|enable`: registrations, as operators see and steer them.

use serde_json::{Map, Value, json};

use super::super::node_args::NodeArgs;
use super::super::{Failure, Shared, nearby, remark, show};

/// Which registrations are meant.
#[derive(clap::Args)]
pub(super) struct LaneSelection {
    /// An origin (https://host), the number of a lane, or the name of a configuration
    #[arg(value_name = "ORIGIN|LANE|CONFIG")]
    what: Option<String>,
    /// Only registrations of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only registrations of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl LaneSelection {
    /// As the API takes it.
    fn named(&self) -> Map<String, Value> {
        let mut named = Map::new();
        if let Some(what) = &self.what {
            let (name, value) = match what.parse::<u64>() {
                Ok(lane) => ("lane", json!(lane)),
                Err(_) if what.contains("://") => ("origin", json!(what)),
                Err(_) => ("config", json!(what)),
            };
            named.insert(name.to_owned(), value);
        }
        for (name, value) in [("task", &self.task), ("tenant", &self.tenant)] {
            named.extend(value.as_ref().map(|value| (name.to_owned(), json!(value))));
        }
        named
    }
}

#[derive(clap::Args)]
pub(super) struct Ls {
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    which: LaneSelection,
    /// Only registrations in this state: active, paused, disabled or gone
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// The most registrations to list
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: usize,
    /// Continue after this lane, which the end of the last list names
    #[arg(long, value_name = "LANE", default_value_t = 0)]
    after: u64,
}

/// What a query says of a value that is text or a number.
pub(super) fn query(named: &Map<String, Value>) -> Vec<(&str, String)> {
    named.iter().map(|(name, value)| (name.as_str(), show::text(value))).collect()
}

impl Ls {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let mut named = self.which.named();
        named.extend(self.state.map(|state| ("state".to_owned(), json!(state))));
        named.insert("limit".to_owned(), json!(self.limit));
        named.insert("after".to_owned(), json!(self.after));
        let answer = admin.push_get(&["lanes"], &query(&named)).await?;
        if shared.json {
            show::print_json(&answer.to_string());
            return Ok(());
        }
        let lanes = show::items(&answer["lanes"]);
        if lanes.is_empty() {
            remark("no registration matches");
            return Ok(());
        }
        let head = ["LANE", "STATE", "PENDING", "ATTEMPT", "NEXT", "PROFILE", "ORIGIN", "TASK", "CONFIG"].map(str::to_owned);
        let row = |lane: &Value| {
            let state = match lane["reason"].as_str() {
                Some(reason) => format!("{}:{}", show::text(&lane["state"]), show::safe(reason)),
                None => show::text(&lane["state"]),
            };
            let text = |name: &str| show::text(&lane[name]);
            [
                text("lane"),
                state,
                text("pending"),
                text("attempt"),
                text("next_at"),
                text("profile"),
                text("origin"),
                text("task"),
                text("config"),
            ]
        };
        show::print(&show::columns(std::iter::once(head).chain(lanes.iter().map(row)).collect()));
        if answer["next"].is_u64() {
            remark(&format!("there are more: --after {}", answer["next"]));
        }
        Ok(())
    }
}

#[derive(clap::Args)]
pub(super) struct LaneCommand {
    #[command(flatten)]
    node: NodeArgs,
    /// The number that `push ls` shows
    lane: u64,
}

impl LaneCommand {
    pub(super) async fn show(self, shared: &Shared) -> Result<(), Failure> {
        let lane = nearby::admin(shared, &self.node)?.push_get(&["lanes", &self.lane.to_string()], &[]).await?;
        if shared.json {
            show::print_json(&lane.to_string());
            return Ok(());
        }
        for name in ["lane", "task", "config", "agent", "version", "profile", "events", "origin", "state", "reason"] {
            show::print_line(&format!("{name:<14}{}", show::text(&lane[name])));
        }
        for name in ["head", "tail", "pending", "attempt", "next_at", "failing_since", "created_at"] {
            show::print_line(&format!("{name:<14}{}", show::text(&lane[name])));
        }
        let head = ["SEQ", "ATTEMPT", "AT", "MS", "OUTCOME", "HTTP"].map(str::to_owned);
        let row = |attempt: &Value| ["seq", "n", "at", "ms", "outcome", "http"].map(|name| show::text(&attempt[name]));
        let attempts = show::items(&lane["attempts"]);
        if !attempts.is_empty() {
            show::print_line("");
            show::print(&show::columns(std::iter::once(head).chain(attempts.iter().map(row)).collect()));
        }
        Ok(())
    }

    /// Sends the task as it is, once, beside everything else.
    pub(super) async fn test(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let tried = admin.push_post(&["test"], &json!({ "lane": self.lane })).await?;
        if shared.json {
            show::print_json(&tried.to_string());
        } else {
            let more: Vec<String> = ["http", "error"].iter().map(|name| show::text(&tried[*name])).collect();
            show::print_line(format!("{} {}", show::text(&tried["outcome"]), more.join(" ")).trim_end());
        }
        match tried["outcome"].as_str() {
            Some("delivered") => Ok(()),
            _ => Err(Failure::Refused("the webhook did not accept it".to_owned())),
        }
    }
}

#[derive(clap::Args)]
pub(super) struct LaneChangeCommand {
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    which: LaneSelection,
}

impl LaneChangeCommand {
    pub(super) async fn run(self, shared: &Shared, verb: &str) -> Result<(), Failure> {
        let named = self.which.named();
        if named.is_empty() {
            return Err(Failure::Usage(format!("name what to {verb}: an origin, a lane, a configuration, --task or --tenant")));
        }
        let answer = nearby::admin(shared, &self.node)?.push_post(&[verb], &Value::Object(named)).await?;
        if shared.json {
            show::print_json(&answer.to_string());
            return Ok(());
        }
        let changed = show::items(&answer["changed"]);
        for lane in changed {
            show::print_line(&format!("{} {}", show::text(&lane["lane"]), show::text(&lane["state"])));
        }
        if changed.is_empty() {
            remark("nothing that fits had to be changed");
        }
        Ok(())
    }
}
