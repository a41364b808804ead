//! `chancery push secrets ls|set|rm` and `chancery push vault ls|rotate|retire`: what origins share with us, and the keys it is kept under.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::duration::duration;
use super::super::node_args::NodeArgs;
use super::super::{Failure, Shared, nearby, remark, show};

#[derive(clap::Args)]
pub(super) struct Secrets {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: SecretsCommand,
}

#[derive(clap::Subcommand)]
enum SecretsCommand {
    /// Say for which origins there is one, and how many sign
    Ls,
    /// Sign what goes to an origin with a secret; the one before signs too for a while
    Set {
        /// As `https://host` or `https://host:port`
        origin: String,
        /// The environment variable with the secret (`whsec_…`) [default: one is made, and shown once]
        #[arg(long, value_name = "NAME")]
        secret_env: Option<String>,
        /// How long the secret before it signs too, at most 7d [default: 24h]
        #[arg(long, value_name = "TIME", value_parser = duration)]
        grace: Option<Duration>,
    },
    /// Sign with it no more
    Rm { origin: String },
}

impl Secrets {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let answer = match &self.command {
            SecretsCommand::Ls => admin.push_list(&["secrets"], "secrets").await?,
            SecretsCommand::Set { origin, secret_env, grace } => {
                let secret = secret_env.as_ref().map(|name| {
                    std::env::var(name)
                        .map_err(|_| Failure::Usage(format!("the environment variable {} is not set", show::safe(name))))
                });
                let mut asked = json!({ "origin": origin, "secret": secret.transpose()? });
                if let Some(grace) = grace {
                    asked["grace_s"] = json!(grace.as_secs());
                }
                admin.push_post(&["secrets"], &asked).await?
            }
            SecretsCommand::Rm { origin } => admin.push_post(&["secrets", "remove"], &json!({ "origin": origin })).await?,
        };
        if shared.json {
            show::print_json(&answer.to_string());
            return Ok(());
        }
        match &self.command {
            SecretsCommand::Ls => {
                let head = ["ORIGIN", "SIGNING"].map(str::to_owned);
                let row = |agreed: &Value| ["origin", "signing"].map(|name| show::text(&agreed[name]));
                let rows = show::items(&answer["secrets"]).iter().map(row);
                show::print(&show::columns(std::iter::once(head).chain(rows).collect()));
            }
            SecretsCommand::Set { .. } => match answer["secret"].as_str() {
                Some(secret) => {
                    show::print_line(secret);
                    remark("give it to the receiver now: it is not shown again");
                }
                None => remark("it signs from now on"),
            },
            SecretsCommand::Rm { .. } => remark("it signs no more"),
        }
        Ok(())
    }
}

#[derive(clap::Args)]
pub(super) struct VaultCommandArgs {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: VaultCommand,
}

#[derive(clap::Subcommand)]
enum VaultCommand {
    /// List the keys, and how much each has sealed
    Ls,
    /// Make a new key and bring everything over to it; the old ones stay until they are retired
    Rotate,
    /// Forget a key that seals nothing any more
    Retire { id: String },
}

impl VaultCommandArgs {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let answer = match &self.command {
            VaultCommand::Ls => admin.push_list(&["vault"], "keys").await?,
            VaultCommand::Rotate => admin.push_post(&["vault", "rotate"], &json!({})).await?,
            VaultCommand::Retire { id } => admin.push_post(&["vault", "retire"], &json!({ "id": id })).await?,
        };
        if shared.json {
            show::print_json(&answer.to_string());
            return Ok(());
        }
        let head = ["KEY", "MADE", "SEALS", "REGISTRATIONS"].map(str::to_owned);
        let row = |key: &Value| ["id", "made_at", "seals", "registrations"].map(|name| show::text(&key[name]));
        let rows = show::items(&answer["keys"]).iter().map(row);
        show::print(&show::columns(std::iter::once(head).chain(rows).collect()));
        if answer["lost"].as_u64().is_some_and(|lost| lost > 0) {
            remark(&format!("{} registrations have secrets that no key opens", show::text(&answer["lost"])));
        }
        Ok(())
    }
}
