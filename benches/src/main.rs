//! `chancery-bench`: Chancery beside a bare axum handler, each on one core, the load on the other.
#![allow(clippy::disallowed_methods, reason = "a benchmark starts its callers itself")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool of the command line prints its report")]

mod compare;
mod contestant;
mod credentials;
mod figures;
mod follow_up;
mod ground;
mod hold;
mod load;
mod mounted;
mod parrot;
mod process;
mod proxy;
mod reply;
mod report;
mod request;
mod rows;
mod sdk;
mod server;
mod slim;
mod webhooks;
mod yardstick;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::load::{Extent, Load};
use crate::request::RequestKind;

// The allocator of the chancery binary, so that the comparison is not one of allocators.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(name = "chancery-bench", about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    compare: compare::Compare,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send load to a running server and print what it measured
    Load(LoadOptions),
    /// Open idle subscriptions and hold them until standard input ends
    Hold(hold::HoldCommand),
    /// Serve as the bare axum handler everything is compared with
    #[command(hide = true)]
    Yardstick(yardstick::Yardstick),
    /// Serve Chancery's router inside an axum app
    #[command(hide = true)]
    Mounted(mounted::Mounted),
    /// Pass everything on to another server
    #[command(hide = true)]
    Proxy(proxy::BenchProxy),
    /// Receive notifications at many origins
    #[command(hide = true)]
    Webhooks(webhooks::WebhooksCommand),
}

#[derive(Debug, Args)]
struct LoadOptions {
    /// `http://HOST:PORT`, with a path where it is not Chancery's own; `swp://HOST:PORT/AGENT` for tasks over SWP
    #[arg(long)]
    url: String,
    #[arg(long, value_enum, default_value = "send")]
    kind: RequestKind,
    /// What the agent is told [default: hello, or stream 10]
    #[arg(long)]
    text: Option<String>,
    /// Connections
    #[arg(short, long, default_value_t = 64)]
    connections: usize,
    /// Requests by the second [default: as many as are answered]
    #[arg(long)]
    rate: Option<f64>,
    /// Requests
    #[arg(short = 'n', long, default_value_t = 100_000, conflicts_with = "seconds")]
    requests: u64,
    /// Seconds, instead of a number of requests
    #[arg(short, long)]
    seconds: Option<f64>,
    /// Seconds of load before anything is measured
    #[arg(long, default_value_t = 0.5)]
    warm_up: f64,
    /// Give up after so many seconds
    #[arg(long, default_value_t = 300.0)]
    at_most: f64,
    /// Fail unless each stream has so many events
    #[arg(long)]
    events: Option<usize>,
    /// Process of the server, to tell its processor time for a request
    #[arg(long)]
    server_pid: Option<u32>,
    /// Register a webhook with each send, at this port of the loopback
    #[arg(long, value_name = "PORT")]
    hook: Option<String>,
    /// At which origins there, in turn
    #[arg(long, value_name = "FIRST..END", default_value = "0..1", value_parser = webhooks::origins)]
    origins: std::ops::Range<usize>,
    /// How many tasks follow-ups go to, in turn; they are made first
    #[arg(long, default_value_t = 0)]
    tasks: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.command {
        None => return compare::compare(&cli.compare),
        Some(Command::Load(options)) => send_load(&options)?,
        Some(Command::Hold(options)) => on_one_thread()?.block_on(hold::hold(&options))?,
        Some(Command::Yardstick(options)) => on_workers()?.block_on(yardstick::serve(&options))?,
        Some(Command::Mounted(options)) => on_workers()?.block_on(mounted::serve(&options))?,
        Some(Command::Proxy(options)) => on_workers()?.block_on(proxy::serve(&options))?,
        Some(Command::Webhooks(options)) => on_one_thread()?.block_on(webhooks::serve(&options))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Servers run on tokio's defaults, as the chancery binary does.
fn on_workers() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// The load has one core: hand-overs between threads would only cost.
fn on_one_thread() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn send_load(options: &LoadOptions) -> Result<()> {
    let (address, path) = request::address_and_path(&options.url, options.kind)?;
    let load = Load {
        address,
        path,
        kind: options.kind,
        text: match &options.text {
            Some(text) => text.clone(),
            None => options.kind.usual_text().to_owned(),
        },
        connections: options.connections,
        rate: options.rate,
        warm_up: Duration::try_from_secs_f64(options.warm_up)?,
        extent: match options.seconds {
            Some(seconds) => Extent::Time(Duration::try_from_secs_f64(seconds)?),
            None => Extent::Requests(options.requests),
        },
        at_most: Duration::try_from_secs_f64(options.at_most)?,
        events: options.events,
        server: options.server_pid,
        hooks: match &options.hook {
            Some(port) => options.origins.clone().map(|number| webhooks::url(number, port)).collect(),
            None => Vec::new(),
        },
        tasks: options.tasks,
    };
    let figures = on_one_thread()?.block_on(load::run(&load))?;
    if options.json {
        println!("{}", serde_json::to_string(&figures)?);
    } else {
        println!("{figures}");
    }
    Ok(())
}
