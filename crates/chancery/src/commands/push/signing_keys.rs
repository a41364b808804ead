//! `chancery push keys ls|rotate`: the keys that notifications are signed with.

use serde_json::{Value, json};

use super::super::node_args::NodeArgs;
use super::super::{Failure, Shared, nearby, remark, show};

#[derive(clap::Args)]
pub(super) struct PushKeysCommand {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(clap::Subcommand)]
enum KeysCommand {
    /// List them
    Ls,
    /// Publish a new one now, and sign with it in ten minutes; the old one stays published for a day after that
    Rotate,
}

impl PushKeysCommand {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let mut answer = match self.command {
            KeysCommand::Ls => admin.keys().await?,
            KeysCommand::Rotate => {
                let (lead, overlap) = (chancery::cli_support::KeyRegistry::LEAD, chancery::cli_support::KeyRegistry::OVERLAP);
                admin.rotate_keys("push", None, lead, overlap).await?
            }
        };
        let keys: Vec<Value> = match answer["keys"].take() {
            Value::Array(keys) => keys.into_iter().filter(|key| key["use"] == "push").collect(),
            _ => Vec::new(),
        };
        if shared.json {
            show::print_json(&json!({ "keys": keys }).to_string());
            return Ok(());
        }
        let head = ["ALGORITHM", "STATE", "MADE", "SIGNS FROM", "RETIRES", "KID"].map(str::to_owned);
        let row =
            |key: &Value| ["algorithm", "state", "made_at", "used_from", "retires_at", "kid"].map(|name| show::text(&key[name]));
        if keys.is_empty() {
            remark("there are no keys for notifications");
        }
        show::print(&show::columns(std::iter::once(head).chain(keys.iter().map(row)).collect()));
        Ok(())
    }
}
