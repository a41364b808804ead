//! The two sides of every row: how each is started and where it answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

use crate::ground::Ground;
use crate::request::RequestKind;
use crate::server::Server;

/// Where tasks are kept; nothing to the yardstick, which keeps none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Memory,
    Sqlite,
}

/// What a row needs the server to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) store: StoreKind,
    pub(crate) agent: &'static str,
    /// Tasks kept before the oldest go.
    pub(crate) retained: u32,
}

/// Sizes of the bodies the other side answers with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    pub(crate) answer: usize,
    pub(crate) card: usize,
    pub(crate) stream: usize,
}

#[derive(Debug)]
pub(crate) enum Contestant {
    Yardstick(Sizes),
    Chancery(PathBuf),
    /// Chancery with a cap in every scope, a policy with every bound, and a rule of an operator's own.
    Guarded(PathBuf),
    /// Chancery that keeps no record.
    Unrecorded(PathBuf),
    /// Chancery with its tasks in the PostgreSQL database at this URL.
    Database(PathBuf, String),
    /// Chancery that tells webhooks on this machine.
    Notifying(PathBuf),
    /// Chancery that also listens for SWP.
    Slim(PathBuf),
    /// Chancery's router inside this program.
    Mounted,
    /// Chancery in front of an agent at this address.
    Gateway(PathBuf, String),
    /// A plain reverse proxy in front of it.
    Proxy(String),
}

static STARTED: AtomicU32 = AtomicU32::new(0);

impl Contestant {
    pub(crate) fn start(&self, ground: &Ground, setting: Setting) -> Result<Server> {
        // Every start gets a folder of its own: no row inherits the tasks of another.
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = ground.scratch().join(number.to_string());
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let log = folder.join("log");
        match self {
            Self::Yardstick(sizes) => {
                let mut command = ground.on_server_core(ground.own_program());
                command.arg("yardstick");
                for (name, bytes) in
                    [("--answer-bytes", sizes.answer), ("--card-bytes", sizes.card), ("--stream-bytes", sizes.stream)]
                {
                    command.args([name, &bytes.to_string()]);
                }
                Server::start(command, log)
            }
            Self::Chancery(program) => {
                let mut command = ground.on_server_core(program);
                command.args(["serve", "--config"]).arg(write_config(&folder, &format!("run = \"{}\"", setting.agent), setting)?);
                match setting.store {
                    StoreKind::Memory => command.arg("--memory"),
                    StoreKind::Sqlite => command.arg("--data").arg(folder.join("data")),
                };
                Server::start(command, log)
            }
            Self::Guarded(program) => {
                let config = write_config(&folder, &format!("run = \"{}\"", setting.agent), setting)?;
                let text = fs::read_to_string(&config)? + GUARDS;
                fs::write(&config, text).with_context(|| config.display().to_string())?;
                let mut command = ground.on_server_core(program);
                command.args(["serve", "--memory", "--config"]).arg(config);
                Server::start(command, log)
            }
            Self::Unrecorded(program) => {
                let config = write_config(&folder, &format!("run = \"{}\"", setting.agent), setting)?;
                let text = fs::read_to_string(&config)? + "\n[evidence]\nrecord = false\n";
                fs::write(&config, text).with_context(|| config.display().to_string())?;
                let mut command = ground.on_server_core(program);
                command.args(["serve", "--config"]).arg(config).arg("--data").arg(folder.join("data"));
                Server::start(command, log)
            }
            Self::Database(program, url) => {
                let config = write_config(&folder, &format!("run = \"{}\"", setting.agent), setting)?;
                let mut command = ground.on_server_core(program);
                command.args(["serve", "--store", url, "--config"]).arg(config).arg("--data").arg(folder.join("data"));
                Server::start(command, log)
            }
            Self::Notifying(program) => {
                let config = write_config(&folder, &format!("run = \"{}\"", setting.agent), setting)?;
                let text = fs::read_to_string(&config)? + WEBHOOKS;
                fs::write(&config, text).with_context(|| config.display().to_string())?;
                let mut command = ground.on_server_core(program);
                command.args(["serve", "--config"]).arg(config).arg("--data").arg(folder.join("data"));
                Server::start(command, log)
            }
            Self::Slim(program) => {
                let agents = format!("[agents.bench]\nrun = \"{}\"", setting.agent);
                let config = write_config_with(&folder, &agents, setting, false)?;
                let text = fs::read_to_string(&config)? + SLIM;
                fs::write(&config, text).with_context(|| config.display().to_string())?;
                let mut command = ground.on_server_core(program);
                command.args(["serve", "--memory", "--config"]).arg(config);
                Server::start(command, log)
            }
            Self::Mounted => {
                let mut command = ground.on_server_core(ground.own_program());
                let config = mounted_config(&folder, setting)?;
                command.args(["mounted", "--config"]).arg(config);
                Server::start(command, log)
            }
            Self::Gateway(program, address) => {
                let mut command = ground.on_server_core(program);
                let config = write_config(&folder, &format!("url = \"http://{address}\""), setting)?;
                command.args(["serve", "--memory", "--config"]).arg(config);
                Server::start(command, log)
            }
            Self::Proxy(address) => {
                let mut command = ground.on_server_core(ground.own_program());
                command.args(["proxy", "--to", address]);
                Server::start(command, log)
            }
        }
    }

    /// The URL of `kind` at a server of this contestant.
    pub(crate) fn url(&self, server: &Server, kind: RequestKind) -> String {
        let address = server.address();
        match (self, kind) {
            (
                Self::Chancery(_)
                | Self::Guarded(_)
                | Self::Unrecorded(_)
                | Self::Database(..)
                | Self::Notifying(_)
                | Self::Slim(_)
                | Self::Mounted
                | Self::Gateway(..)
                | Self::Proxy(_),
                _,
            )
            | (Self::Yardstick(_), RequestKind::Send | RequestKind::Task | RequestKind::FollowUp | RequestKind::Traced) => {
                format!("http://{address}")
            }
            (Self::Yardstick(_), RequestKind::Stream) => format!("http://{address}/stream"),
            (Self::Yardstick(_), RequestKind::Card) => format!("http://{address}/card"),
        }
    }

    /// The URL idle subscriptions are opened at.
    pub(crate) fn idle_url(&self, server: &Server) -> String {
        let address = server.address();
        match self {
            Self::Chancery(_)
            | Self::Guarded(_)
            | Self::Unrecorded(_)
            | Self::Database(..)
            | Self::Notifying(_)
            | Self::Slim(_)
            | Self::Mounted
            | Self::Gateway(..)
            | Self::Proxy(_) => {
                format!("http://{address}")
            }
            Self::Yardstick(_) => format!("http://{address}/idle"),
        }
    }
}

/// Every guard there is, none of which refuses anything here.
const GUARDS: &str = r#"
[budget.global]
max_usd_per_minute = 1000000
max_tokens_per_minute = 1000000000000
max_tasks_per_minute = 1000000000

[budget.tree]
max_usd = 1
max_tokens = 1000000
max_tasks = 1000

[budget.tenant."*"]
max_usd = 1000000
window = "1h"

[budget.caller."*"]
max_usd = 1000000
max_tasks = 1000000000
window = "1h"

[budget.agent."*"]
max_usd = 1000000
window = "1m"

[budget.skill."*"]
max_usd = 1000000
window = "1d"

[policy.default]
max_cost_usd = "0.01"
max_tokens = 100
max_duration_ms = 60000
max_concurrency = 100000

[[policy.rules]]
name = "guests stay shallow"
deny_when = "caller == 'guest' && depth > 2"
"#;

/// Receivers on this machine, as many as there are, every event told by itself, and nobody waits for them.
const WEBHOOKS: &str = r#"
[push]
allow_nets = ["127.0.0.0/8"]
allow_http = true
barrier_ms = 0
exchange_ms = 60000
host_requests_per_second = 0
configs_per_tenant = 100000000
preserve = true
"#;

/// As many frames as can be sent.
const SLIM: &str = r#"
[swp]
listen = "127.0.0.1:0"
max_frames_per_window = 4000000000
"#;

/// Limits high enough to be out of the way, but at work: what they cost is part of what is measured.
/// The default rates do not apply to callers of an open node over loopback. A router inside a program knows no addresses.
const CALL_RATES: &str = "calls_per_second_per_caller = 10000000
calls_burst_per_caller = 10000000
calls_per_second_per_address = 10000000
calls_burst_per_address = 10000000
";

fn write_config(folder: &Path, agent: &str, setting: Setting) -> Result<PathBuf> {
    write_config_with(folder, &format!("[agents.bench]\n{agent}"), setting, true)
}

/// The program has its own agent, and a node refuses a config with others.
pub(crate) fn mounted_config(folder: &Path, setting: Setting) -> Result<PathBuf> {
    write_config_with(folder, "", setting, false)
}

fn write_config_with(folder: &Path, agents: &str, setting: Setting, has_default_rates: bool) -> Result<PathBuf> {
    let text = format!(
        r#"
{agents}

[peers]
rate_limit = {{ per_second = 10000000, burst = 10000000 }}
calls_in_flight = 100000
streams = 100000

[retention]
max_tasks = {retained}

[limits]
connections = 100000
connections_per_address = 100000
streams_per_caller = 100000
streams_per_task = 100000
streams_per_node = 100000
{call_rates}"#,
        retained = setting.retained,
        call_rates = if has_default_rates { "" } else { CALL_RATES },
    );
    let file = folder.join("bench.toml");
    fs::write(&file, text)?;
    Ok(file)
}

/// The chancery binary beside this one.
pub(crate) fn beside(own_program: &Path) -> PathBuf {
    own_program.with_file_name("chancery")
}
