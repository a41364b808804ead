//! `chancery push`: notifications to webhooks, as those see them who receive and who operate them.

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
  chancery push ls                                  who is told what, and how far that has got
  chancery push ls --state disabled                 those that were turned off, and why
  chancery push show 17                             one of them, with its last attempts
  chancery push test 17                             send it the task as it is, now and once
  chancery push pause https://hooks.example.com     nothing is sent there until `push resume`
  chancery push enable 17                           on again, beginning with the task as it is
  chancery push dead ls --since 2026-11-15T00:00:00Z
  chancery push dead replay --origin https://hooks.example.com --rate 20
  chancery push keys rotate
  chancery push secrets set https://hooks.example.com
  chancery push vault rotate
  chancery push receipts export > receipts.jsonl
  chancery push listen                              a receiver to try things out with";

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
    /// Send a webhook the task as it is, once
    Test(operate::LaneCommand),
    /// Keep what comes for later
    Pause(operate::LaneChangeCommand),
    /// Go on where it was paused
    Resume(operate::LaneChangeCommand),
    /// Send nothing more
    Disable(operate::LaneChangeCommand),
    /// Turn on again what was disabled or gone, beginning with the task as it is
    Enable(operate::LaneChangeCommand),
    /// Deliveries that were given up
    Dead(dead::DeadLettersCommand),
    /// The keys that notifications are signed with
    Keys(signing_keys::PushKeysCommand),
    /// The secrets that notifications to an origin are signed with
    Secrets(secrets::Secrets),
    /// The keys under which tokens, credentials and secrets are kept
    Vault(secrets::VaultCommandArgs),
    /// Signed receipts for what was taken
    Receipts(dead::Receipts),
    /// Receive notifications, verify them and print them
    Listen(listen::PushListenCommand),
    /// Say whether a notification that was kept is genuine, for whom it is and what it says
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
