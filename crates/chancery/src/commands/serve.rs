//! `chancery serve`: a node, from its first line on stdout to its last on stderr.

mod signals;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use chancery::agents::BuiltIn;
use chancery::cli_support::{Preflight, Surroundings, Whereabouts};
use chancery::config::{AgentConfig, Config, ConfigFile, NodeHost, Places, PublicUrl, StoreUrl, SwpUrl};
use chancery::{DataFolder, Node, NodeBuilder};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::signals::{reload_on_hang_up, stop_on_signal};
use super::store_flag::StoreFlag;
use super::{Failure, Shared};

/// How long running turns, and then the store, may take to finish after a stop.
const PATIENCE: Duration = Duration::from_secs(4);
/// The longest time of a stop.
const GIVE_UP: Duration = Duration::from_secs(9);

const EXAMPLES: &str = "\
Examples:
  chancery serve                                             serve `echo` on http://127.0.0.1:7420, with tasks on disk
  chancery serve --listen 127.0.0.1:0 --memory               on any free port, with tasks in memory only
  chancery serve --agent conformance --agent-name tester     the conformance agent, at / and /agents/tester
  chancery serve --agent http://localhost:9999               forward to the agent at this URL
  chancery serve --config chancery.toml                      read this config file; flags override it
  chancery serve --store postgres://chancery@db/tasks        with tasks in a PostgreSQL database (docs/postgresql.md)

The command prints to stdout: the base URL, a curl line that calls the agent, and a line for each remote agent with its name, version,
binding, address and deviations. An agent given by its URL alone gets the name on its card. Logs go to stderr; RUST_LOG sets the level.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    /// The address to listen on; port 0 is any free port [default: 127.0.0.1:7420]
    #[arg(long, visible_alias = "bind", value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The base URL in cards and links [default: http:// and the address]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// One more host to answer to, without a port; can be given several times, and takes the place of `hosts` in the file.
    /// Without callers the node answers to the loopback, its address, the public URL and these, and to no other host
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<NodeHost>,
    /// An agent to serve: `echo`, `conformance`, or the URL of a remote agent; can be given several times, the first
    /// one also answers at the root [default: echo]
    #[arg(long = "agent", value_name = "AGENT|URL", value_parser = agent_choice)]
    agents: Vec<AgentChoice>,
    /// The name of the first agent
    #[arg(long, value_name = "NAME")]
    agent_name: Option<String>,
    /// Keep tasks in memory only; without --data the node writes nothing and has no admin API
    #[arg(long)]
    memory: bool,
    #[command(flatten)]
    store: StoreFlag,
    /// Read settings from a TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Allow a public address without callers, and every host if `hosts` is empty
    #[arg(long)]
    insecure: bool,
}

#[derive(Clone)]
enum AgentChoice {
    BuiltIn(BuiltIn),
    /// A remote agent.
    Url(String),
}

fn agent_choice(text: &str) -> Result<AgentChoice, String> {
    if let Some(built_in) = BuiltIn::ALL.into_iter().find(|built_in| built_in.name() == text) {
        return Ok(AgentChoice::BuiltIn(built_in));
    }
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https" | "swp" | "swps") && url.has_host() => {
            Ok(AgentChoice::Url(text.to_owned()))
        }
        _ => Err("it is `echo`, `conformance`, or the http, https, swp or swps URL of an agent".to_owned()),
    }
}

/// The agents that were chosen, each under a name of its own.
fn chosen(choices: &[AgentChoice]) -> Vec<(String, AgentConfig)> {
    let mut agents: Vec<(String, AgentConfig)> = Vec::new();
    for choice in choices {
        let (name, agent) = match choice {
            AgentChoice::BuiltIn(run) => (run.name(), AgentConfig::of(*run)),
            // Named by its card; this name holds where the data folder is from before that.
            AgentChoice::Url(url) => ("agent", AgentConfig::unnamed_at(url)),
        };
        let taken = |name: &str| agents.iter().any(|(other, _)| other == name);
        let free =
            std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}-{number}"))).find(|name| !taken(name));
        agents.extend(free.map(|name| (name, agent)));
    }
    agents
}

/// What the flags say, which outranks the file.
#[derive(Clone, Default)]
struct Flags {
    listen: Option<SocketAddr>,
    public_url: Option<PublicUrl>,
    hosts: Vec<NodeHost>,
    agents: Vec<(String, AgentConfig)>,
    agent_name: Option<String>,
    data: Option<PathBuf>,
    store: Option<StoreUrl>,
}

impl Flags {
    fn over(&self, mut config: Config) -> Config {
        if let Some(url) = &self.store {
            config.store.url = Some(url.clone());
        }
        if let Some(data) = &self.data {
            config.node.data = Some(data.clone());
        }
        if let Some(listen) = self.listen {
            config.node.listen = listen;
        }
        if let Some(url) = &self.public_url {
            config.node.public_url = Some(url.clone());
        }
        if !self.hosts.is_empty() {
            config.node.hosts.clone_from(&self.hosts);
        }
        if !self.agents.is_empty() {
            config.agents.clone_from(&self.agents);
        }
        if let (Some(name), Some((first, agent))) = (&self.agent_name, config.agents.first_mut()) {
            name.clone_into(first);
            agent.unnamed = false;
            agent.title = Some(name.clone());
        }
        config
    }
}

/// What a node is started with.
struct Start {
    config: Config,
    /// The config file, and where its keys stand.
    source: Option<(PathBuf, Places)>,
    builder: NodeBuilder,
    folder: Option<PathBuf>,
    in_memory: bool,
    insecure: bool,
}

impl Serve {
    pub(super) fn run(self, shared: &Shared) -> Result<(), Failure> {
        super::log::start();
        let start = self.settle(shared)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
        let served = runtime.block_on(serve(start));
        // Turns that were given up on must not hold up the exit.
        runtime.shutdown_background();
        served
    }

    /// The file's settings with the flags put over them, and the folder to use.
    fn settle(mut self, shared: &Shared) -> Result<Start, Failure> {
        let public_url = self.public_url.map(PublicUrl::try_from).transpose();
        let flags = Flags {
            listen: self.listen,
            public_url: public_url.map_err(|fault| Failure::Usage(format!("--public-url {fault}")))?,
            hosts: self.hosts,
            agents: chosen(&self.agents),
            agent_name: self.agent_name,
            data: shared.data.clone(),
            store: self.store.take()?,
        };
        let file = self.config.as_deref().map(ConfigFile::read).transpose();
        let file = file.map_err(|fault| Failure::Usage(fault.to_string()))?;
        let source = file.as_ref().map(|file| (file.path.clone(), file.places.clone()));
        let config = flags.over(file.as_ref().map_or_else(Config::default, |file| file.config.clone()));
        let builder = match file {
            Some(file) => Node::builder().config_file(file, move |config| flags.over(config)),
            None => Node::builder().config(config.clone()).configured_agents(),
        };
        let folder = match config.node.data.clone() {
            None if self.memory => None,
            None => Some(DataFolder::default_path().ok_or_else(|| {
                Failure::Usage("HOME is not set, so there is no default data folder; use --data FOLDER or --memory".to_owned())
            })?),
            given => given,
        };
        Ok(Start { config, source, builder, folder, in_memory: self.memory, insecure: self.insecure })
    }
}

async fn serve(start: Start) -> Result<(), Failure> {
    // From here on a signal is a stop, also while the node is still starting.
    let stop = stop_on_signal()?;
    look_ahead(&start).await?;
    let Start { config, source, builder, folder, in_memory, insecure } = start;
    let listen = config.node.listen;
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("cannot listen at {listen} (--listen takes another address)"))?;
    let address = listener.local_addr().context("the listener has no address")?;
    let scheme = if config.tls.cert_file.is_some() { "https" } else { "http" };
    let base = format!("{scheme}://{}", reachable(address));
    let public_url = config.node.public_url.as_ref().map_or_else(|| base.clone(), ToString::to_string);

    let (slim, slim_url) = listen_for_swp(&config).await?;
    let mut builder = builder.public_url(public_url.clone()).insecure(insecure);
    if let Some(slim_url) = slim_url {
        builder = builder.swp_url(slim_url);
    }
    if let Some(folder) = folder {
        builder = builder.data(folder);
    }
    if in_memory {
        builder = builder.memory();
    }
    let node = builder.build().await.map_err(|fault| anyhow!(fault))?;
    let node = Arc::new(node);
    judge_exposure(&node, address, insecure)?;
    if node.is_open() && !node.refuses_other_hosts() {
        tracing::warn!(
            "--insecure without `hosts`: every Host is answered, so that a web page can call the agents by DNS rebinding; set `hosts`, or --host NAME"
        );
    }
    if let Some(slim) = &slim {
        judge_plain_swp(&node, slim.local_addr().context("the SWP listener has no address")?, insecure)?;
    }
    // Before anybody is told that the node is there: whoever changes the file from then on is seen to.
    if source.is_some()
        && let Err(error) = node.watch_config()
    {
        tracing::warn!(%error, "cannot watch the config file; apply a change with `chancery reload` or SIGHUP");
    }
    let whereabouts = Whereabouts { url: base.clone(), pid: std::process::id(), certificate: node.certificate() };
    let announced = node.data_folder().map(|folder| folder.announce(&whereabouts)).transpose().map_err(|fault| anyhow!(fault))?;
    let announced = announced.map(Arc::new);
    introduce(&base, node.is_open(), &node.agents_elsewhere());
    tracing::info!(%address, public_url, "serving");
    if node.is_open() && node.agents_elsewhere().len() > 1 {
        tracing::warn!(
            "no callers are configured: calls between agents are placed by their hop token, their trace or their address. \
             An agent that forwards none of them starts its own trees, outside the limits on loops and trees. \
             `chancery agents url NAME` gives an agent its address; `[callers]` identifies every caller."
        );
    }

    reload_on_hang_up(&node, announced.as_ref().map(Arc::downgrade), whereabouts)?;
    let failed = node.failed();
    let stopping = async {
        tokio::select! {
            () = stop.cancelled() => {}
            () = failed.cancelled() => stop.cancel(),
        }
        drop(announced);
        tracing::info!("stopping");
        node.shut_down(PATIENCE).await
    };
    let slim = async {
        if let Some(slim) = slim {
            node.serve_swp(slim, stop.clone()).await;
        }
    };
    let ending = async { tokio::join!(node.serve(listener, stop.clone()), slim, stopping) };
    tokio::select! {
        ((), (), stored) = ending => stored.context("the store did not close in order")?,
        () = overdue(&stop) => tracing::warn!("stopped waiting for running turns; everything acknowledged is stored"),
    }
    if failed.is_cancelled() {
        let names: Vec<_> = node.loop_panics().into_keys().collect();
        return Err(Failure::Refused(format!(
            "a background loop of the node panicked ({}); the log has the reason",
            names.join(", ")
        )));
    }
    tracing::info!("stopped");
    Ok(())
}

/// Refuses what no node can be made of, all of it at once, before anything is made.
async fn look_ahead(start: &Start) -> Result<(), Failure> {
    let Start { config, source, folder, in_memory, insecure, .. } = start;
    let none = Places::default();
    let places = source.as_ref().map_or(&none, |(_, places)| places);
    let around = Surroundings { folder: folder.as_deref(), insecure: *insecure, in_memory: *in_memory, offline: false };
    for warning in places.warnings() {
        tracing::warn!(%warning, "the config has a key under its old name");
    }
    let Preflight { faults, unmatched, evadable } = chancery::cli_support::preflight(config, places, &around).await;
    for fault in unmatched {
        tracing::warn!(%fault, "a budget or policy of the config applies to no caller, tenant or agent; correct its name");
    }
    for fault in evadable {
        tracing::warn!(%fault, "calls can evade a budget of the config, because the node has no callers");
    }
    let lines: Vec<String> = faults
        .iter()
        .map(|fault| match source {
            Some((file, _)) => format!("{}:{fault}", file.display()),
            None => fault.message.clone(),
        })
        .collect();
    if lines.is_empty() { Ok(()) } else { Err(Failure::Usage(lines.join("\n"))) }
}

/// The SWP listener and the address that cards say, if there is to be one.
async fn listen_for_swp(config: &Config) -> Result<(Option<TcpListener>, Option<SwpUrl>), Failure> {
    let Some(listen) = config.swp.door.listen else { return Ok((None, None)) };
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen for SWP at {listen}"))?;
    let address = listener.local_addr().context("the SWP listener has no address")?;
    let url = config.swp.door.public_url.clone().or_else(|| SwpUrl::at(reachable(address), config.tls.cert_file.is_some()));
    if let Some(url) = &url {
        tracing::info!(%address, %url, "listening for SWP");
    }
    Ok((Some(listener), url))
}

/// Rejects SWP without TLS beyond the loopback, and warns on a node with callers: SWP authenticates by certificate only.
fn judge_plain_swp(node: &Node, address: SocketAddr, insecure: bool) -> Result<(), Failure> {
    if let Some(fault) = chancery::cli_support::plain_swp_fault(address, node.speaks_tls(), insecure) {
        return Err(Failure::Usage(fault));
    }
    if !node.is_open() && !node.speaks_tls() {
        tracing::warn!(%address, "SWP cannot authenticate callers without [tls], so the node rejects every SWP connection; set [tls]");
    }
    Ok(())
}

/// Rejects an open node beyond the loopback without `--insecure`.
fn judge_exposure(node: &Node, address: SocketAddr, insecure: bool) -> Result<(), Failure> {
    if let Some(fault) = chancery::cli_support::open_listener_fault(address, node.is_open(), insecure) {
        return Err(Failure::Usage(fault));
    }
    match (node.is_open(), !address.ip().is_loopback()) {
        (true, true) => {
            tracing::warn!(%address, "callers are not authenticated: every client that reaches this address can use the agents and read every task; set [callers]");
            Ok(())
        }
        (true, false) => {
            tracing::info!("no callers are configured: every program on this machine can call the agents");
            Ok(())
        }
        (false, true) if !node.speaks_tls() => {
            tracing::warn!(%address, "credentials arrive unencrypted: set [tls], or make this address reachable through a TLS proxy only");
            Ok(())
        }
        (false, _) => Ok(()),
    }
}

/// The address that clients on this machine can dial.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    address
}

/// All that is ever said on stdout.
fn introduce(base: &str, open: bool, elsewhere: &[String]) {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"hello-1","role":"ROLE_USER","parts":[{"text":"hello"}]}}}"#;
    let key = if open { "" } else { " -H \"X-API-Key: $KEY\"" };
    let headers = format!("-H 'Content-Type: application/json' -H 'A2A-Version: 1.0'{key}");
    let mut lines = format!("{base}\ncurl -sS {base}/ {headers} -d '{call}'\n");
    for agent in elsewhere {
        // Parts of it were written by the agent.
        lines.extend(agent.lines().map(|line| format!("{}\n", super::show::safe(line))));
    }
    let mut out = std::io::stdout().lock();
    // A reader that went away is no reason not to serve.
    let _ = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
}

async fn overdue(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(GIVE_UP).await;
}
