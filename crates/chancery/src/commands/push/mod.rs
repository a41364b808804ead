//! `chancery push`: notifications to webhooks, for operators and for receivers.

mod agreed;
mod dead;
mod listen;
mod operate;
mod secrets;
mod shown;
mod signing_keys;
mod verify;

use super::{Failure, Shared};

const EXAMPLES: &str = "\
Examples:
  chancery push ls                                  every registration, its state and its last delivered event
  chancery push ls --state disabled                 registrations that the node disabled, and why
  chancery push show 17                             one registration, with its last attempts
  chancery push test 17                             send the webhook the current task once
  chancery push pause https://hooks.example.com     send nothing to this origin until `push resume`
  chancery push enable 17                           enable a disabled registration; it starts at the current task
  chancery push dead ls --since 2026-11-15T00:00:00Z
  chancery push dead replay --origin https://hooks.example.com --rate 20
  chancery push keys rotate
  chancery push secrets set https://hooks.example.com
  chancery push vault rotate
  chancery push receipts export > receipts.jsonl
  chancery push listen                              run a receiver that verifies and prints notifications";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PushCommandArgs {
    #[command(subcommand)]
    command: PushCommand,
}

#[derive(clap::Subcommand)]
enum PushCommand {
    /// List registrations
    Ls(operate::Ls),
    /// Show one registration and its last attempts
    Show(operate::LaneCommand),
    /// Send a webhook the current task, once
    Test(operate::LaneCommand),
    /// Queue events and send nothing until `resume`
    Pause(operate::LaneChangeCommand),
    /// Send the queued events, and continue
    Resume(operate::LaneChangeCommand),
    /// Stop deliveries and drop new events
    Disable(operate::LaneChangeCommand),
    /// Enable a disabled or gone registration; it starts at the current task
    Enable(operate::LaneChangeCommand),
    /// Dead letters: deliveries that the node stopped retrying
    Dead(dead::DeadLettersCommand),
    /// The keys that notifications are signed with
    Keys(signing_keys::PushKeysCommand),
    /// The secrets that notifications to an origin are signed with
    Secrets(secrets::Secrets),
    /// The key that encrypts stored tokens, credentials and secrets
    Vault(secrets::VaultCommandArgs),
    /// Signed receipts of accepted deliveries
    Receipts(dead::Receipts),
    /// Receive notifications, verify them and print them
    Listen(listen::PushListenCommand),
    /// Verify a stored notification, and print its receiver and content
    Verify(verify::VerifyWebhookCommand),
}

impl PushCommandArgs {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        match self.command {
            PushCommand::Ls(ls) => ls.run(shared).await,
            PushCommand::Show(lane) => lane.show(shared).await,
            PushCommand::Test(lane) => lane.test(shared).await,
            PushCommand::Pause(change) => change.run(shared, "pause").await,
            PushCommand::Resume(change) => change.run(shared, "resume").await,
            PushCommand::Disable(change) => change.run(shared, "disable").await,
            PushCommand::Enable(change) => change.run(shared, "enable").await,
            PushCommand::Dead(dead) => dead.run(shared).await,
            PushCommand::Keys(keys) => keys.run(shared).await,
            PushCommand::Secrets(secrets) => secrets.run(shared).await,
            PushCommand::Vault(vault) => vault.run(shared).await,
            PushCommand::Receipts(receipts) => receipts.run(shared).await,
            PushCommand::Listen(listen) => listen.run(shared).await,
            PushCommand::Verify(verify) => verify.run(shared).await,
        }
    }
}
