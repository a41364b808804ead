//! The command line: what can be asked, and what the exit code means.

mod log;
mod serve;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  chancery serve                                 an echo agent on http://127.0.0.1:7420, tasks kept on disk
  chancery serve --memory --agent conformance    an agent that shows every state, nothing kept
  chancery send hello                            send a message to that node and print the answer
  chancery send --stream 'stream 5 200'          print the answer piece by piece
  chancery card https://agent.example.org        fetch a card, show it and say what is wrong with it
  chancery tasks list --state working            what the node is doing
  chancery tasks watch TASK                      follow one task

Exit codes:
  0  done
  1  the task failed, or the request was refused
  2  wrong arguments or config
  3  the server cannot be reached";

static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (A2A {})", env!("CARGO_PKG_VERSION"), chancery::A2A_VERSIONS.join(", ")));

#[derive(Parser)]
#[command(name = "chancery", about = "The control plane for agent-to-agent traffic", after_help = EXAMPLES, version = VERSION.as_str())]
struct Arguments {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(clap::Args)]
struct Shared {
    /// The node's data folder [default: $XDG_DATA_HOME/chancery or ~/.local/share/chancery]
    #[arg(long, global = true, value_name = "FOLDER", env = "CHANCERY_DATA")]
    data: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve agents
    Serve(serve::Serve),
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
enum Failure {
    /// It was asked in the wrong way.
    Usage(String),
    /// The answer is no.
    Refused(String),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Refused(_) => 1,
            Self::Usage(_) => 2,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(reason) | Self::Refused(reason) => f.write_str(reason),
        }
    }
}

/// Anything that has no better word for itself.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Refused(format!("{error:#}"))
    }
}

pub(crate) fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Serve(serve) => serve.run(&arguments.shared),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure.to_string());
            ExitCode::from(failure.code())
        }
    }
}

/// Says something beside the result.
#[expect(clippy::print_stderr, reason = "this is where a command talks to its user")]
fn complain(text: &str) {
    eprintln!("chancery: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}
