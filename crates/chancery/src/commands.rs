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
  chancery demo                                what it does, in a few seconds, without any set-up
  chancery serve                               an echo agent on http://127.0.0.1:7420, kept on disk
  chancery serve --agent conformance           an agent that shows every state
  chancery send hello                          send a message to that node and print the answer
  chancery send NAME hello                     the same to its agent of that name; or to a URL
  chancery send --stream 'stream 5 200'        print the answer piece by piece
  chancery send https://agent.example.org hi   to an agent elsewhere, in the version and binding its card names
  chancery discover https://agent.example.org  fetch a card, verify it and say what is wrong with it
  chancery tasks ls --state working            what the node is doing
  chancery tasks watch TASK                    follow one task
  chancery tree TASK                           the calls a task led to, and what they cost
  chancery explain TASK                        which rules let it in, and on which facts
  chancery freeze caller NAME                  admit nothing new of a caller
  chancery budgets                             what is spent, held and left
  chancery bill --since 30d --by caller        what each caller spent
  chancery agents add URL --name NAME          stand in front of an agent elsewhere
  chancery callers add planner                 let somebody call, and print the key to do it with
  chancery keys ls                             what the node signs with
  chancery swp decode HEX                      say what SWP frames hold
  chancery evidence export --task TASK         what was recorded of a task, for somebody to check
  chancery evidence verify BUNDLE              check it, without the node
  chancery push listen                         print what webhooks are sent
  chancery store check                         name what is damaged in the database
  chancery init                                write a config file with every setting, and its schema
  chancery validate chancery.toml              say all that is wrong with a config file

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
    names.into_iter().fold(line, |line, name| line.mut_subcommand(name, with_folder))
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
    /// Watch three agents call each other in circles, and the control plane stop them
    Demo(demo::Demo),
    /// Serve agents
    Serve(serve::Serve),
    /// Send a message to an agent and print what it answers
    #[command(visible_alias = "send-task")]
    Send(send::SendCommand),
    /// Show an agent's card, verify its signature and say what is wrong with it
    #[command(visible_alias = "discover")]
    Card(card::Card),
    /// See and cancel the tasks of a node
    Tasks(tasks::Tasks),
    /// Show the tree of calls a task belongs to, with what each cost, or cancel it from the leaves up
    Tree(tree::TreeCommand),
    /// Say which rules let a call in or refused it, and on which facts
    Explain(explain::Explain),
    /// Admit nothing new to a tree, caller, agent, tenant or the whole node; or list what is frozen
    Freeze(freeze::FreezeCommandArgs),
    /// Admit again what was frozen
    Thaw(freeze::Thaw),
    /// Show how much of each budget is spent, held and left
    Budgets(budgets::Budgets),
    /// Show what was spent, by tree, caller, agent, skill or tenant
    Bill(bill::BillCommand),
    /// Add, approve and check the remote agents behind the node
    Agents(agents::AgentsCommand),
    /// Say who may call a node
    Callers(callers::CallersCommand),
    /// See and replace the keys that a node signs with
    Keys(keys::KeysCommandArgs),
    /// Operate webhooks, and receive and verify notifications
    Push(push::PushCommandArgs),
    /// Write a config file with every setting at its default, and the schema editors check it with
    Init(init::Init),
    /// Say all that is wrong with a config file, each fault with its line and column
    Validate(validate::Validate),
    /// Print the JSON Schema of the config file
    Schema,
    /// Say whether the database of the node on this machine is sound
    Store(store::StoreCommandArgs),
    /// Make a node reload its config file
    Reload(reload::Reload),
    /// Send tasks over SWP, listen for them, and say what frames hold
    Swp(swp::Swp),
    /// Put vectors into the memory tier, hand them out by their witness, and say who may use them
    Memory(memory::MemoryCommandArgs),
    /// Convert packets into evidence, and write and check bundles of what the node has recorded
    Evidence(evidence::Evidence),
    /// Print the completions for a shell
    Completions {
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
            "show who you are: a key in $CHANCERY_KEY or with --key-env or --key-file, a signature with --sign-with, or a \
             certificate with --client-cert. Keys are made where the node runs, with `chancery callers add NAME`"
        }
        (401, true) => {
            "what was shown has expired, was revoked, or is of nobody that is known there. A new key is made where the node runs, \
             with `chancery callers rotate NAME`"
        }
        _ => "its operator says who may call what (may_call)",
    }
}

/// What to do where the two sides could not agree on certificates. Only the text of the fault gets here.
fn about_certificates(reason: &str) -> &'static str {
    let known = [
        ("UnknownIssuer", "; if it is the right one, give the root of its certificate with --ca-file"),
        (
            "ApplicationVerificationFailure",
            "; whoever answers there is not the node that wrote down its certificate in the folder",
        ),
        ("asks for a certificate", "; show one with --client-cert and --client-key"),
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

/// Says what went wrong.
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
