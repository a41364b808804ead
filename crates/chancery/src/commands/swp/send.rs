//! `chancery swp send`: a task to an SWP agent, and what it reports.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use chancery_outbound::guard::{Guard, GuardConfig, as_web};
use chancery_outbound::swp::{SwpLine, SwpTask};
use chancery_wire::swp::codec::a2a;
use chancery_wire::swp::{Convention, Given};
use serde_json::json;
use url::Host;

use super::hex;
use crate::commands::credentials::OwnCertificate;
use crate::commands::{Failure, Shared, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery swp send swp://127.0.0.1:7777 echo hello             the skill `echo` of the first agent there
  chancery swp send swp://127.0.0.1:7777 NAME/SKILL hello       a skill of another one
  chancery swp send swp://127.0.0.1:7777 report                 a task without input
  chancery swp send --json-input swp://… sum '{\"x\":1}'           input that is JSON
  chancery swp send swps://agents.example.org SKILL hello --client-cert me.pem --client-key me.key

Events go to stderr, the output of the result to stdout. With --json stdout has an object for each. A result that is no success ends
with exit code 1.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SwpSendCommand {
    /// Where the agent listens: swp:// or swps://, host and port [default port: 7777]
    url: String,
    /// The kind of the task, which names a skill
    kind: String,
    /// The input of the task; `-` reads it from stdin
    #[arg(default_value = "")]
    input: String,
    /// Declare the input as JSON
    #[arg(long, conflicts_with_all = ["opaque", "undeclared"])]
    json_input: bool,
    /// Declare the input as opaque octets
    #[arg(long, conflicts_with = "undeclared")]
    opaque: bool,
    /// Send no type of the input: the skill declares it
    #[arg(long)]
    undeclared: bool,
    /// The task's id; the same id is the same task [default: a new one]
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    /// How many seconds to wait for the result
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    /// Believe certificates of these roots (PEM) too
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    #[command(flatten)]
    own: OwnCertificate,
}

impl SwpSendCommand {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let guard = self.guard()?;
        let convention = match (self.json_input, self.opaque, self.undeclared) {
            (true, ..) => Some(Convention::Json),
            (_, true, _) => Some(Convention::Opaque),
            (.., true) => None,
            _ => Some(Convention::Text),
        };
        let task = SwpTask {
            task_id: self.task_id.clone().map(Bytes::from),
            kind: self.kind.clone(),
            input: self.input()?,
            given: Given { convention, ..Given::default() },
        };
        let patience = Duration::from_secs(self.timeout);
        let asking = async {
            let mut line = SwpLine::open(&guard, &self.url, self.own.load()?.as_ref()).await.map_err(unreachable)?;
            line.send(task).await.map_err(unreachable)?;
            loop {
                match line.next().await.map_err(unreachable)? {
                    a2a::A2aMessage::Event(event) => print_event(&event, shared.json),
                    a2a::A2aMessage::Result(result) => return print_result(&result, shared.json),
                    a2a::A2aMessage::Handshake(_) | a2a::A2aMessage::Task(_) => {}
                }
            }
        };
        let late = || Err(Failure::Unreachable(format!("no result within {} seconds", self.timeout)));
        tokio::time::timeout(patience, asking).await.unwrap_or_else(|_| late())
    }

    /// Allows the typed address, and no other.
    fn guard(&self) -> Result<Guard, Failure> {
        let bad = |reason: String| Failure::Usage(format!("{}: {reason}", self.url));
        let web = as_web(&self.url).ok_or_else(|| bad("it is no swp or swps URL".to_owned()))?;
        let mut config = GuardConfig { allow_http: true, ca_file: self.ca_file.clone(), ..GuardConfig::default() };
        match web.host() {
            Some(Host::Ipv4(address)) => config.allow_nets.push(std::net::IpAddr::from(address).into()),
            Some(Host::Ipv6(address)) => config.allow_nets.push(std::net::IpAddr::from(address).into()),
            Some(Host::Domain(name)) => config.allow_hosts.push(name.to_owned()),
            None => return Err(bad("it has no host".to_owned())),
        }
        let joined = |faults: Vec<_>| faults.iter().map(ToString::to_string).collect::<Vec<String>>().join("; ");
        Guard::new(config, &[]).map_err(|faults: Vec<chancery_outbound::guard::OutboundFault>| bad(joined(faults)))
    }

    fn input(&self) -> Result<Bytes, Failure> {
        if self.input != "-" {
            return Ok(Bytes::from(self.input.clone()));
        }
        let mut octets = Vec::new();
        let read = std::io::stdin().read_to_end(&mut octets);
        read.map_err(|error| Failure::Usage(format!("cannot read the input from stdin: {error}")))?;
        Ok(octets.into())
    }
}

fn unreachable(error: impl std::fmt::Display) -> Failure {
    Failure::Unreachable(show::safe(&error.to_string()))
}

fn print_event(event: &a2a::SwpEventMessage, as_json: bool) {
    if as_json {
        let event = json!({ "event": { "task_id": hex(&event.task_id), "message": event.message, "event_payload": shown(&event.event_payload) } });
        return show::print_json(&event.to_string());
    }
    let payload = shown(&event.event_payload);
    let rest = if payload.is_empty() { String::new() } else { format!(": {payload}") };
    remark(&show::safe(&format!("{}{rest}", event.message)));
}

fn print_result(result: &a2a::TaskResult, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let told = json!({ "result": {
            "task_id": hex(&result.task_id), "ok": result.ok, "output": shown(&result.output), "error_message": result.error_message,
        }});
        show::print_json(&told.to_string());
    } else if !result.output.is_empty() {
        show::print_line(&show::safe(&shown(&result.output)));
    }
    if result.ok { Ok(()) } else { Err(Failure::Refused(show::safe(&result.error_message))) }
}

/// Text as it is, other octets in hex.
fn shown(bytes: &Bytes) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), str::to_owned)
}
