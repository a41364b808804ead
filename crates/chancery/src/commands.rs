//! The command line: what can be asked, and what the exit code means.

mod agents;
mod bill;
mod budgets;
mod callers;
mod card;
mod credentials;
mod demo;
mod duration;
mod evidence;
mod explain;
mod freeze;
mod help_layout;
mod init;
mod interface_flags;
mod keys;
mod log;
mod memory;
mod nearby;
mod node_args;
mod push;
mod reload;
mod send;
mod serve;
mod show;
mod store;
mod store_flag;
mod swp;
mod tasks;
mod tree;
mod validate;
#[cfg(test)]
mod words;

use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

use anyhow::Context as _;
use chancery_outbound::CallError;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  chancery demo                                show budgets, loops and freezes in a few seconds
  chancery serve                               serve an echo agent on http://127.0.0.1:7420
  chancery serve --agent conformance           serve an agent that shows every task state
  chancery send hello                          send a message to that node and print the answer
  chancery send NAME hello                     call the agent of that name
  chancery send --stream 'stream 5 200'        print the answer as it arrives
  chancery send https://agent.example.org hi   call a remote agent in the version of its card
  chancery discover https://agent.example.org  fetch a card, verify it and list its faults
  chancery tasks ls --state working            list the running tasks
  chancery tasks watch TASK                    follow one task
  chancery tree TASK                           draw the calls below a task with their costs
  chancery explain TASK                        the verdict and the facts of each rule for it
  chancery freeze caller NAME                  admit no new call of a caller
  chancery budgets                             spent, reserved and remaining amounts
  chancery bill --since 30d --by caller        what each caller spent
  chancery agents add URL --name NAME          add a remote agent behind the node
  chancery callers add planner                 add a caller and print its key
  chancery keys ls                             list the signing keys
  chancery swp decode HEX                      decode SWP frames
  chancery evidence export --task TASK         export the signed record of a task
  chancery evidence verify BUNDLE              verify an exported record, without the node
  chancery push listen                         receive webhook notifications and print them
  chancery store check                         list the damage in the database
  chancery init                                write a config file with every setting, and its schema
  chancery validate chancery.toml              list all faults of a config file

Exit codes:
  0  done
  1  the task failed, or the request was rejected
  2  wrong arguments or config
  3  the server cannot be reached";

static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (A2A {})", env!("CARGO_PKG_VERSION"), chancery::A2A_VERSIONS.join(", ")));

#[derive(Parser)]
#[command(name = "chancery", about = "A control plane and gateway for agent-to-agent (A2A) traffic", after_help = EXAMPLES, version = VERSION.as_str())]
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
    #[arg(id = DATA_FOLDER, long = "data", value_name = "FOLDER", env = "CHANCERY_DATA")]
    data: Option<PathBuf>,
    /// Print results as JSON
    #[arg(long, global = true)]
    json: bool,
}

/// The id of the argument with the data folder.
const DATA_FOLDER: &str = "data_folder";

/// The whole command line. The data folder may be named after every command too, but for `send`, whose `--data` is a part of the
/// message.
fn command_line() -> clap::Command {
    let line = Arguments::command();
    let folder = || {
        let help = "The node's data folder [default: $XDG_DATA_HOME/chancery or ~/.local/share/chancery]";
        clap::Arg::new(DATA_FOLDER).long("data").value_name("FOLDER").help(help).global(true)
    };
    let names: Vec<String> = line.get_subcommands().map(|one| one.get_name().to_owned()).filter(|name| name != "send").collect();
    let with_folder = |one: clap::Command| one.arg(folder().value_parser(clap::value_parser!(PathBuf)));
    help_layout::laid_out(names.into_iter().fold(line, |line, name| line.mut_subcommand(name, with_folder)))
}

/// Reads the command line, or ends with what is wrong with it.
fn parsed() -> Arguments {
    let matches = command_line().get_matches();
    let mut arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|fault| fault.exit());
    let of_command = matches.subcommand().and_then(|(_, given)| given.try_get_one::<PathBuf>(DATA_FOLDER).ok().flatten());
    if let Some(folder) = of_command {
        arguments.shared.data = Some(folder.clone());
    }
    arguments
}

#[derive(Subcommand)]
enum Command {
    /// Show how a control plane stops three agents that call each other in circles
    Demo(demo::Demo),
    /// Serve agents
    Serve(serve::Serve),
    /// Send a message to an agent and print the answer
    #[command(visible_alias = "send-task")]
    Send(send::SendCommand),
    /// Show an agent's card, verify its signature and list its faults
    #[command(visible_alias = "discover")]
    Card(card::Card),
    /// List, show, follow and cancel the tasks of a node
    Tasks(tasks::Tasks),
    /// Show the tree of calls of a task with the cost of each, or cancel it, the deepest call first
    Tree(tree::TreeCommand),
    /// Show the verdict and the facts of each rule about a call
    Explain(explain::Explain),
    /// Reject new calls of a tree, caller, agent, tenant or the whole node; or list the freezes
    Freeze(freeze::FreezeCommandArgs),
    /// End a freeze
    Thaw(freeze::Thaw),
    /// Show what is spent, reserved and left of each budget
    Budgets(budgets::Budgets),
    /// Show what was spent, by tree, caller, agent, skill or tenant
    Bill(bill::BillCommand),
    /// Add, approve and check the remote agents behind the node
    Agents(agents::AgentsCommand),
    /// Add, list, change and remove the callers of a node
    Callers(callers::CallersCommand),
    /// List and rotate the keys that a node signs with
    Keys(keys::KeysCommandArgs),
    /// Operate webhooks, and receive and verify notifications
    Push(push::PushCommandArgs),
    /// Write a config file with every key at its default, and its JSON Schema
    Init(init::Init),
    /// List all faults of a config file, each with its line and column
    Validate(validate::Validate),
    /// Print the JSON Schema of the config file
    Schema,
    /// Check the database of the node on this machine
    Store(store::StoreCommandArgs),
    /// Make a node reload its config file
    Reload(reload::Reload),
    /// Send tasks over SWP, serve a test agent, and decode frames
    Swp(swp::Swp),
    /// Publish vectors in the memory tier, search them, and grant access to them
    Memory(memory::MemoryCommandArgs),
    /// Export and verify bundles of the signed record, and convert packets into evidence
    Evidence(evidence::Evidence),
    /// Print the completions for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
enum Failure {
    /// It was asked in the wrong way.
    Usage(String),
    /// The answer is no.
    Refused(String),
    /// There was no answer.
    Unreachable(String),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Refused(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(reason) | Self::Refused(reason) | Self::Unreachable(reason) => f.write_str(reason),
        }
    }
}

/// Anything that has no better word for itself.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Refused(format!("{error:#}"))
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        // Parts of it were written by the other side.
        let reason = show::safe(&error.to_string());
        match error {
            CallError::BadUrl { .. } | CallError::Credentials { .. } => Self::Usage(reason),
            CallError::TurnedAway { status, shown, .. } => Self::Refused(format!("{reason}; {}", way_in(status, shown))),
            CallError::Unreachable { .. } | CallError::Blocked { .. } => {
                Self::Unreachable(format!("{reason}{}", about_certificates(&reason)))
            }
            CallError::NotPossible { .. }
            | CallError::NoCard { .. }
            | CallError::Refused { .. }
            | CallError::NotUnderstood { .. } => Self::Refused(reason),
        }
    }
}

/// What to do after a rejected authentication.
fn way_in(status: u16, shown: bool) -> &'static str {
    match (status, shown) {
        (401, false) => {
            "authenticate with a key in $CHANCERY_KEY, --key-env or --key-file, with a signature (--sign-with), or with a \
             certificate (--client-cert). On the node's machine `chancery callers add NAME` makes a key"
        }
        (401, true) => {
            "the node does not know this key, signature or certificate, or it has expired or was revoked. On the node's machine \
             `chancery callers rotate NAME` makes a new key"
        }
        _ => "the operator of the node sets which agents a caller may call (may_call)",
    }
}

/// What to do where the two sides could not agree on certificates. Only the text of the fault gets here.
fn about_certificates(reason: &str) -> &'static str {
    let known = [
        ("UnknownIssuer", "; if it is the right one, give the root of its certificate with --ca-file"),
        (
            "ApplicationVerificationFailure",
            "; the server at this address has another certificate than the node of this data folder",
        ),
        ("asks for a certificate", "; give one with --client-cert and --client-key"),
    ];
    known.into_iter().find(|(fault, _)| reason.contains(fault)).map_or("", |(_, advice)| advice)
}

pub(crate) fn run() -> ExitCode {
    let Arguments { shared, command } = parsed();
    let done = match command {
        Command::Demo(demo) => demo.run(&shared),
        Command::Serve(serve) => serve.run(&shared),
        Command::Send(send) => as_client(send.run(&shared)),
        Command::Card(card) => as_client(card.run(&shared)),
        Command::Tasks(tasks) => as_client(tasks.run(&shared)),
        Command::Tree(tree) => as_client(tree.run(&shared)),
        Command::Explain(explain) => as_client(explain.run(&shared)),
        Command::Freeze(freeze) => as_client(freeze.run(&shared)),
        Command::Thaw(thaw) => as_client(thaw.run(&shared)),
        Command::Budgets(budgets) => as_client(budgets.run(&shared)),
        Command::Bill(bill) => as_client(bill.run(&shared)),
        Command::Agents(agents) => as_client(agents.run(&shared)),
        Command::Callers(callers) => as_client(callers.run(&shared)),
        Command::Keys(keys) => as_client(keys.run(&shared)),
        Command::Push(push) => as_client(push.run(&shared)),
        Command::Init(init) => init.run(),
        Command::Validate(validate) => validate.run(&shared),
        Command::Schema => {
            show::print(&init::schema_text());
            Ok(())
        }
        Command::Store(store) => store.run(&shared),
        Command::Reload(reload) => as_client(reload.run(&shared)),
        Command::Swp(swp) => swp.run(&shared),
        Command::Memory(memory) => as_client(memory.run(&shared)),
        Command::Evidence(evidence) => as_client(evidence.run(&shared)),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command_line(), "chancery", &mut script);
            show::print(&String::from_utf8_lossy(&script));
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure.to_string());
            ExitCode::from(failure.code())
        }
    }
}

fn as_client(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(command)
}

/// Prints a remark beside the result. A closed stderr is ignored.
fn remark(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints the error.
fn complain(text: &str) {
    remark(&format!("chancery: {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        command_line().debug_assert();
    }
}
