//! `chancery swp`: send a task over SWP, listen for tasks, and say what frames hold.

mod decode;
mod listen;
mod send;

use clap::Subcommand;

use super::{Failure, Shared, as_client};

const EXAMPLES: &str = "\
Examples:
  chancery swp send swp://127.0.0.1:7777 echo hello   send a task to a node or another SWP agent
  chancery swp listen                                 run a test agent
  chancery swp decode HEX                             show the content of frames, and whether a node accepts them";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Swp {
    #[command(subcommand)]
    command: SwpCommand,
}

#[derive(Subcommand)]
enum SwpCommand {
    /// Send a task to an SWP agent and print its reports
    Send(send::SwpSendCommand),
    /// Accept tasks, print every frame, and answer each task with its own input
    Listen(listen::SwpListenCommand),
    /// Decode the frames of one connection: show the content of each, and whether a node accepts it
    Decode(decode::Decode),
}

impl Swp {
    pub(super) fn run(self, shared: &Shared) -> Result<(), Failure> {
        match self.command {
            SwpCommand::Send(send) => as_client(send.run(shared)),
            SwpCommand::Listen(listen) => as_client(listen.run()),
            SwpCommand::Decode(decode) => decode.run(shared),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
