//! `chancery serve`: a node, from its first line on stdout to its last on stderr.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use chancery::agents::BuiltIn;
use chancery::config::{AgentConfig, Config, ConfigFile, PublicUrl, SwpUrl};
use chancery::{Announced, DataFolder, Node, NodeBuilder, ReloadError, Whereabouts};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{Failure, Shared};

/// How long running turns, and then the store, may take to finish after a stop.
const PATIENCE: Duration = Duration::from_secs(4);
/// The latest end of a stop, whatever still holds on.
const GIVE_UP: Duration = Duration::from_secs(9);

const EXAMPLES: &str = "\
Examples:
  chancery serve                                             echo on http://127.0.0.1:7420, tasks kept on disk
  chancery serve --listen 127.0.0.1:0 --memory               any free port, nothing kept
  chancery serve --agent conformance --agent-name tester     the conformance agent, at / and /agents/tester
  chancery serve --agent http://localhost:9999               in front of an agent that runs there
  chancery serve --config chancery.toml                      what the file says; flags outrank it

On stdout: the base URL, a curl line that works, then a line for every agent elsewhere: its name, version, binding, address and
deviations. An agent that is given by its URL alone gets the name on its card. Logs go to stderr; RUST_LOG says how much of them.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// What cards and links say [default: http:// and the address]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// An agent to serve: `echo`, `conformance`, or the URL of one to stand in front of; can be given several times, the
    /// first one also answers at the root [default: echo]
    #[arg(long = "agent", value_name = "AGENT|URL", value_parser = agent_choice)]
    agents: Vec<AgentChoice>,
    /// The name the first agent is served and announced under
    #[arg(long, value_name = "NAME")]
    agent_name: Option<String>,
    /// Keep tasks in memory only; without --data nothing is written at all and there is no admin API
    #[arg(long)]
    memory: bool,
    /// Read settings from a TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen beyond the loopback although no callers are configured
    #[arg(long)]
    insecure: bool,
}

#[derive(Clone)]
enum AgentChoice {
    BuiltIn(BuiltIn),
    /// One that runs elsewhere.
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
    agents: Vec<(String, AgentConfig)>,
    agent_name: Option<String>,
}

impl Flags {
    fn over(&self, mut config: Config) -> Config {
        if let Some(listen) = self.listen {
            config.node.listen = listen;
        }
        if let Some(url) = &self.public_url {
            config.node.public_url = Some(url.clone());
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
    fn settle(self, shared: &Shared) -> Result<Start, Failure> {
        let public_url = self.public_url.map(PublicUrl::try_from).transpose();
        let flags = Flags {
            listen: self.listen,
            public_url: public_url.map_err(|fault| Failure::Usage(format!("--public-url {fault}")))?,
            agents: chosen(&self.agents),
            agent_name: self.agent_name,
        };
        let file = self.config.as_deref().map(ConfigFile::read).transpose();
        let file = file.map_err(|fault| Failure::Usage(fault.to_string()))?;
        let config = flags.over(file.as_ref().map_or_else(Config::default, |file| file.config.clone()));
        let builder = match file {
            Some(file) => Node::builder().config_file(file, move |config| flags.over(config)),
            None => Node::builder().config(config.clone()).configured_agents(),
        };
        let folder = shared.data.clone().or_else(|| config.node.data.clone());
        let folder =
            match folder {
                None if self.memory => None,
                None => Some(DataFolder::default_path().ok_or_else(|| {
                    Failure::Usage("there is no HOME to keep tasks in; say --data FOLDER or --memory".to_owned())
                })?),
                given => given,
            };
        Ok(Start { config, builder, folder, in_memory: self.memory, insecure: self.insecure })
    }
}

async fn serve(start: Start) -> Result<(), Failure> {
    // From here on a signal is a stop, also while the node is still starting.
    let stop = stop_on_signal()?;
    let Start { config, builder, folder, in_memory, insecure } = start;
    let listen = config.node.listen;
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("cannot listen at {listen} (--listen takes another address)"))?;
    let address = listener.local_addr().context("the listener has no address")?;
    let scheme = if config.tls.cert_file.is_some() { "https" } else { "http" };
    let base = format!("{scheme}://{}", reachable(address));
    let public_url = config.node.public_url.as_ref().map_or_else(|| base.clone(), ToString::to_string);

    let (slim, slim_url) = listen_for_swp(&config).await?;
    let mut builder = builder.public_url(public_url.clone()).swp_url(slim_url);
    builder = builder.answer_before_commit(std::env::var_os("CHANCERY_TEST_ANSWER_BEFORE_COMMIT").is_some_and(|set| set == "1"));
    if let Some(folder) = folder {
        builder = builder.data(folder);
    }
    if in_memory {
        builder = builder.memory();
    }
    let node = builder.build().await.map_err(|fault| anyhow!(fault))?;
    let node = Arc::new(node);
    judge_exposure(&node, address, insecure)?;
    if let Some(slim) = &slim {
        judge_plain_swp(&node, slim.local_addr().context("the SWP listener has no address")?, insecure)?;
    }
    // Before anybody is told that the node is there: whoever changes the file from then on is seen to.
    if let Err(error) = node.watch_config() {
        tracing::warn!(%error, "changes of the config file are not seen; `chancery reload` and SIGHUP work");
    }
    let whereabouts = Whereabouts { url: base.clone(), pid: std::process::id(), certificate: node.certificate() };
    let announced = node.data_folder().map(|folder| folder.announce(&whereabouts)).transpose().map_err(|fault| anyhow!(fault))?;
    let announced = announced.map(Arc::new);
    introduce(&base, node.is_open(), &node.agents_elsewhere());
    tracing::info!(%address, public_url, "serving");

    reload_on_hang_up(&node, announced.as_ref().map(Arc::downgrade), whereabouts)?;
    let stopping = async {
        stop.cancelled().await;
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
        () = overdue(&stop) => tracing::warn!("gave up waiting; what was acknowledged is kept"),
    }
    tracing::info!("stopped");
    Ok(())
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

/// Frames are not sent in plain where others could read them, and without TLS nobody can show who it is.
fn judge_plain_swp(node: &Node, address: SocketAddr, insecure: bool) -> Result<(), Failure> {
    if node.speaks_tls() {
        return Ok(());
    }
    if !address.ip().is_loopback() && !insecure {
        return Err(Failure::Usage(format!(
            "{address} is not a loopback address, and without [tls] SWP is in plain: set [tls] with client_ca_file, or say --insecure"
        )));
    }
    if !node.is_open() {
        tracing::warn!(%address, "callers are authenticated, and without [tls] no SWP peer can be: all of them are turned away");
    }
    Ok(())
}

/// Nobody gets in from outside by accident.
fn judge_exposure(node: &Node, address: SocketAddr, insecure: bool) -> Result<(), Failure> {
    let from_outside = !address.ip().is_loopback();
    match (node.is_open(), from_outside) {
        (true, true) if !insecure => Err(Failure::Usage(format!(
            "{address} is not a loopback address, and without callers nobody is authenticated: anybody who reaches it could use the \
             agents and read every task. Add callers ([callers.NAME] in the config, or `chancery callers add NAME`), or \
             say --insecure"
        ))),
        (true, true) => {
            tracing::warn!(%address, "callers are not authenticated: anybody who reaches this address can use the agents and read every task");
            Ok(())
        }
        (true, false) => {
            tracing::info!("no callers are configured: everybody on this machine may call");
            Ok(())
        }
        (false, true) if !node.speaks_tls() => {
            tracing::warn!(%address, "credentials come in unencrypted: set [tls], or let only something that speaks TLS reach this address");
            Ok(())
        }
        (false, _) => Ok(()),
    }
}

/// Reads config and certificate anew at every SIGHUP, as those who renew certificates expect, and writes down which certificate
/// it is now.
fn reload_on_hang_up(node: &Arc<Node>, announced: Option<Weak<Announced>>, mut here: Whereabouts) -> Result<(), Failure> {
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let node = Arc::clone(node);
    tokio::spawn(async move {
        while hang_up.recv().await.is_some() {
            match node.reload().await {
                // What is wrong with a file was logged where it was found.
                Ok(_) | Err(ReloadError::Rejected(_)) => {}
                Err(error @ ReloadError::NoFile) => tracing::debug!(%error, "nothing to reload"),
            }
            match node.reload_tls() {
                Ok(()) if node.speaks_tls() => tracing::info!("certificates were read anew"),
                Ok(()) => {}
                Err(error) => tracing::error!(%error, "the old certificate stays"),
            }
            here.certificate = node.certificate();
            let announced = announced.as_ref().and_then(Weak::upgrade);
            if let Some(Err(error)) = announced.map(|announced| announced.change(&here)) {
                tracing::error!(%error, "commands on this machine will not know the new certificate");
            }
        }
    });
    Ok(())
}

/// The address as somebody on this machine can dial it.
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

/// Fires at the first SIGTERM or SIGINT. A second one ends the process there and then.
fn stop_on_signal() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    let fired = stop.clone();
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if fired.is_cancelled() {
                std::process::exit(1);
            }
            fired.cancel();
        }
    });
    Ok(stop)
}

async fn overdue(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(GIVE_UP).await;
}
