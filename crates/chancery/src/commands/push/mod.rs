//! `chancery push`: notifications to webhooks, as those see them who receive and who operate them.

mod agreed;
mod listen;
mod shown;
mod verify;

use super::{Failure, Shared};

#[derive(clap::Args)]
pub(super) struct Push {
    #[command(subcommand)]
    command: PushCommand,
}

#[derive(clap::Subcommand)]
enum PushCommand {
    /// Receive notifications, verify them and print them
    Listen(listen::Listen),
    /// Say whether a notification that was kept is genuine, for whom it is and what it says
    Verify(verify::Verify),
}

impl Push {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        match self.command {
            PushCommand::Listen(listen) => listen.run(shared).await,
            PushCommand::Verify(verify) => verify.run(shared).await,
        }
    }
}
