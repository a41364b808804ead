//! `chancery swp listen`: an SWP agent for trying things out. It prints what it gets, and gives every task's input back.

use chancery_core::spawn_watched;
use std::net::SocketAddr;

use anyhow::Context as _;
use bytes::Bytes;
use chancery_core::{Clock as _, SystemClock};
use chancery_wire::swp::codec::a2a::{self, TaskResult};
use chancery_wire::swp::codec::{
    Envelope, FramePayload, Lifecycle, MessageEffect, Party, Reader, Received, Reject, Speakers, SwpLimits, Timestamps,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::hex;
use crate::commands::{Failure, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery swp listen                                  at swp://127.0.0.1:7777
  chancery swp listen --listen 127.0.0.1:0             at any free port, which the first line shows

The command prints a line of JSON for every frame. It reports `working` for every task and returns the task's input as its output. A task
of a kind that begins with `unsupported` fails, as the profile requires. The connection is unencrypted and for the loopback only: use
`chancery serve` for other clients.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SwpListenCommand {
    /// The address to listen on, of the loopback
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7777")]
    listen: SocketAddr,
    /// Stop after so many connections
    #[arg(long, value_name = "CONNECTIONS")]
    connections: Option<usize>,
}

impl SwpListenCommand {
    pub(super) async fn run(self) -> Result<(), Failure> {
        if !self.listen.ip().is_loopback() {
            return Err(Failure::Usage(format!("{} is not a loopback address, and this connection is unencrypted", self.listen)));
        }
        let listener = TcpListener::bind(self.listen).await.with_context(|| format!("cannot listen at {}", self.listen))?;
        let address = listener.local_addr().context("the listener has no address")?;
        show::print_line(&format!("swp://{address}"));
        let mut taken = 0;
        while self.connections.is_none_or(|most| taken < most) {
            let (stream, _) = listener.accept().await.context("cannot accept")?;
            taken += 1;
            let conversing = converse(stream);
            if self.connections == Some(taken) {
                conversing.await;
            } else {
                spawn_watched("SWP connection", conversing);
            }
        }
        Ok(())
    }
}

async fn converse(mut stream: TcpStream) {
    let limits = SwpLimits::default();
    let mut reader = Reader::new(limits.clone());
    let mut lifecycle = Lifecycle::new(&limits, Speakers::TheOtherParty);
    let began = Instant::now();
    loop {
        let frame = match reader.next_frame() {
            Ok(Some(body)) => body,
            Ok(None) => {
                reader.buffer().reserve(8 * 1024);
                match stream.read_buf(reader.buffer()).await {
                    Ok(0) => return reader.finish().err().iter().for_each(print_reject),
                    Ok(_) => continue,
                    Err(fault) => return remark(&format!("the connection was lost: {fault}")),
                }
            }
            Err(reject) => return print_reject(&reject),
        };
        let elapsed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let answered =
            reader.read(frame, Timestamps::Ignored, elapsed).and_then(|received| answer(&mut lifecycle, received, &limits));
        match answered {
            Ok(frames) => {
                for frame in frames {
                    if stream.write_all(&frame).await.is_err() {
                        return;
                    }
                }
            }
            // The core has no word for an error: whoever breaks the rules loses the connection.
            Err(reject) => return print_reject(&reject),
        }
    }
}

fn answer(lifecycle: &mut Lifecycle, received: Received, limits: &SwpLimits) -> Result<Vec<Bytes>, Reject> {
    let Received { envelope, payload } = received;
    let FramePayload::A2a(message) = payload else {
        show::print_json(&json!({ "profile_id": envelope.profile_id, "msg_type": envelope.msg_type }).to_string());
        return Err(chancery_wire::swp::codec::FrameReason::UnknownProfile.into());
    };
    let outcome = lifecycle.accept(Party::Peer, &message)?;
    print_message(&message);
    let (a2a::A2aMessage::Task(task), MessageEffect::Started) = (message, outcome) else { return Ok(Vec::new()) };
    let result = if task.kind.to_lowercase().starts_with("unsupported") {
        TaskResult::failure(task.task_id.clone(), a2a::ResultCondition::UnsupportedCapability)
    } else {
        TaskResult::success(task.task_id.clone(), task.input)
    };
    let event = a2a::SwpEventMessage { task_id: task.task_id, message: "working".to_owned(), event_payload: Bytes::new() };
    let reports = if result.ok {
        vec![a2a::A2aMessage::Event(event), a2a::A2aMessage::Result(result)]
    } else {
        vec![a2a::A2aMessage::Result(result)]
    };
    let frame = |report: &a2a::A2aMessage| {
        lifecycle.accept(Party::Us, report)?;
        reply(&envelope, report, limits)
    };
    reports.iter().map(frame).collect()
}

/// In the same exchange, and declared as the task's input was.
fn reply(to: &Envelope, report: &a2a::A2aMessage, limits: &SwpLimits) -> Result<Bytes, Reject> {
    let now = u64::try_from(SystemClock.now().micros() / 1_000).unwrap_or(0);
    let mut reply = to.reply(report.msg_type(), now, report.to_payload());
    if matches!(report, a2a::A2aMessage::Result(_)) {
        reply.extensions = to.extensions.clone();
    }
    reply.encode(limits)
}

fn print_message(message: &a2a::A2aMessage) {
    let shown = match message {
        a2a::A2aMessage::Handshake(said) => {
            json!({ "handshake": { "agent_id": said.agent_id, "capabilities": said.capabilities } })
        }
        a2a::A2aMessage::Task(task) => json!({ "task": {
            "task_id": hex(&task.task_id), "kind": task.kind, "input": String::from_utf8_lossy(&task.input),
        }}),
        // Nobody can report on a task here but this side.
        a2a::A2aMessage::Event(_) | a2a::A2aMessage::Result(_) => return,
    };
    show::print_json(&shown.to_string());
}

fn print_reject(reject: &Reject) {
    let shown = json!({ "rejected": { "code": reject.code().to_string(), "reason": reject.reason().name() } });
    show::print_json(&shown.to_string());
}
