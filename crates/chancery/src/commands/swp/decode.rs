//! `chancery swp decode`: frames read in the order of the protocol, each with its outcome, its codes and what it holds.

use std::io::Read as _;

use chancery_core::{Clock as _, SystemClock};
use chancery_wire::swp::codec::{
    Envelope, FramePayload, Lifecycle, MessageEffect, Party, Profile, Reader, Received, Reject, Speakers, SwpLimits,
    SwpTaskState, Timestamps, a2a, agdisc, obs,
};
use serde_json::{Map, Value, json};

use super::hex;
use crate::commands::{Failure, Shared, show};

const EXAMPLES: &str = "\
Examples:
  chancery swp decode 0000001d0101…                        one frame, laid out for reading
  chancery swp decode --json 0000003501020100… 0000003a…   several frames of one connection, on one line
  xxd -p stream.bin | tr -d '\\n' | chancery swp decode -   a whole stream, however it is cut

The command reads the input as the octets of one connection and prints an array with an object per frame. The exit code is 0 also if a
frame is invalid, because the output shows it.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Decode {
    /// Frames in hex, or pieces of them; `-` reads them from stdin
    #[arg(required = true, value_name = "HEX")]
    frames: Vec<String>,
    /// Octets a frame may have without its prefix
    #[arg(long, value_name = "BYTES", default_value_t = SwpLimits::default().max_frame_bytes)]
    max_frame_bytes: u32,
    #[arg(long, value_name = "BYTES", default_value_t = SwpLimits::default().max_payload_bytes)]
    max_payload_bytes: u32,
    #[arg(long, value_name = "BYTES", default_value_t = SwpLimits::default().min_msg_id_bytes)]
    min_msg_id_bytes: u32,
    #[arg(long, value_name = "BYTES", default_value_t = SwpLimits::default().max_msg_id_bytes)]
    max_msg_id_bytes: u32,
    /// Octets of all extensions of an envelope
    #[arg(long, value_name = "BYTES", default_value_t = SwpLimits::default().max_ext_bytes)]
    max_ext_bytes: u32,
    #[arg(long, value_name = "MS", default_value_t = SwpLimits::default().max_clock_skew_ms)]
    max_clock_skew_ms: u64,
    /// Frames a connection may send within a second
    #[arg(long, value_name = "FRAMES", default_value_t = SwpLimits::default().max_frames_per_window)]
    max_frames_per_window: u32,
    /// How long a message id stays taken; 0 lets them repeat
    #[arg(long, value_name = "MS", default_value_t = SwpLimits::default().duplicate_window_ms)]
    duplicate_window_ms: u64,
    /// Whether timestamps are looked at: not at all, those that are there, or there has to be one
    #[arg(long, value_enum, default_value_t)]
    timestamps: Policy,
    /// The time that timestamps are held against, in milliseconds since 1970 [default: the time it is]
    #[arg(long, value_name = "MS")]
    now: Option<u64>,
    /// Reject events and results from the sender of the task, as `chancery serve` does
    #[arg(long)]
    other_party: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Policy {
    #[default]
    Ignored,
    Checked,
    Required,
}

impl Decode {
    pub(super) fn run(self, shared: &Shared) -> Result<(), Failure> {
        let octets = self.octets()?;
        let decoded = Connection::new(&self).read(&octets);
        if shared.json {
            show::print_json(&Value::Array(decoded).to_string());
            return Ok(());
        }
        // The same for people.
        let laid_out = serde_json::to_string_pretty(&decoded).map_err(|fault| Failure::Refused(fault.to_string()))?;
        show::print_line(&show::safe(&laid_out));
        Ok(())
    }

    fn octets(&self) -> Result<Vec<u8>, Failure> {
        let mut text = String::new();
        for piece in &self.frames {
            if piece == "-" {
                let read = std::io::stdin().read_to_string(&mut text);
                read.map_err(|error| Failure::Usage(format!("cannot read frames from stdin: {error}")))?;
            } else {
                text.push_str(piece);
            }
        }
        let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let octet = |pair: &[u8]| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        };
        let octets: Option<Vec<u8>> = digits.chunks(2).map(octet).collect();
        octets.ok_or_else(|| Failure::Usage("frames are pairs of hex digits".to_owned()))
    }

    fn limits(&self) -> SwpLimits {
        SwpLimits {
            max_frame_bytes: self.max_frame_bytes,
            max_payload_bytes: self.max_payload_bytes,
            min_msg_id_bytes: self.min_msg_id_bytes,
            max_msg_id_bytes: self.max_msg_id_bytes,
            max_ext_bytes: self.max_ext_bytes,
            max_clock_skew_ms: self.max_clock_skew_ms,
            max_frames_per_window: self.max_frames_per_window,
            duplicate_window_ms: self.duplicate_window_ms,
            ..SwpLimits::default()
        }
    }

    fn timestamps(&self) -> Timestamps {
        let now = || u64::try_from(SystemClock.now().micros() / 1_000).unwrap_or(0);
        let checked = |allow_zero| Timestamps::Checked { now_ms: self.now.unwrap_or_else(now), allow_zero };
        match self.timestamps {
            Policy::Ignored => Timestamps::Ignored,
            Policy::Checked => checked(true),
            Policy::Required => checked(false),
        }
    }
}

struct Connection {
    reader: Reader,
    limits: SwpLimits,
    lifecycle: Lifecycle,
    timestamps: Timestamps,
}

impl Connection {
    fn new(decode: &Decode) -> Self {
        let limits = decode.limits();
        let speakers = if decode.other_party { Speakers::TheOtherParty } else { Speakers::Anyone };
        let lifecycle = Lifecycle::new(&limits, speakers);
        Self { reader: Reader::new(limits.clone()), limits, lifecycle, timestamps: decode.timestamps() }
    }

    /// An object per frame, and one more for what is left if the stream ends inside a frame.
    fn read(mut self, octets: &[u8]) -> Vec<Value> {
        self.reader.push(octets);
        let mut decoded = Vec::new();
        loop {
            match self.reader.next_frame() {
                Ok(Some(body)) => decoded.push(self.frame(body)),
                Ok(None) => break,
                Err(reject) => {
                    decoded.push(refused(&reject, Map::new()));
                    return decoded;
                }
            }
        }
        decoded.extend(self.reader.finish().err().map(|reject| refused(&reject, Map::new())));
        decoded
    }

    fn frame(&mut self, body: bytes::Bytes) -> Value {
        let mut shown = Map::new();
        if let Ok(envelope) = Envelope::decode(body.clone(), &self.limits) {
            shown.insert("envelope".to_owned(), envelope_json(&envelope));
        }
        // All of a connection at one moment: only its rate and its ids can tell that it is one.
        let received = match self.reader.read(body, self.timestamps, 0) {
            Ok(received) => received,
            Err(reject) => return refused(&reject, shown),
        };
        shown.insert("payload".to_owned(), payload_json(&received));
        let did = match &received.payload {
            FramePayload::A2a(message) => match self.lifecycle.accept(Party::Peer, message) {
                Ok(outcome) => did(outcome),
                Err(reject) => return refused(&reject, shown),
            },
            _ => "read",
        };
        let mut taken = json!({ "outcome": "accept", "code": "OK", "reason": null, "did": did });
        extend(&mut taken, shown);
        taken
    }
}

fn refused(reject: &Reject, shown: Map<String, Value>) -> Value {
    let reason = reject.reason();
    let mut value = json!({
        "outcome": "reject", "code": reject.code().to_string(), "reason": reason.name(), "fine": reason.fine_code(), "message": reject.to_string(),
    });
    extend(&mut value, shown);
    value
}

fn extend(value: &mut Value, shown: Map<String, Value>) {
    for member in ["envelope", "payload"] {
        value[member] = shown.get(member).cloned().unwrap_or_default();
    }
}

fn did(outcome: MessageEffect) -> &'static str {
    match outcome {
        MessageEffect::Greeted => "greeted",
        MessageEffect::Started => "started",
        MessageEffect::AlreadyStarted { state: SwpTaskState::Open | SwpTaskState::Closed } => "already_started",
        MessageEffect::Progressed { .. } => "progressed",
        MessageEffect::Closed => "closed",
        MessageEffect::AlreadyClosed => "already_closed",
    }
}

fn envelope_json(envelope: &Envelope) -> Value {
    let extensions: Vec<Value> = envelope
        .extensions
        .iter()
        .map(|extension| json!({ "type": extension.ext_type, "value": hex(&extension.value) }))
        .collect();
    json!({
        "version": envelope.version,
        "profile_id": envelope.profile_id,
        "profile": Profile::from_id(envelope.profile_id).map(Profile::name),
        "msg_type": envelope.msg_type,
        "flags": envelope.flags,
        "ts_unix_ms": envelope.ts_unix_ms,
        "msg_id": hex(&envelope.msg_id),
        "extensions": extensions,
        "payload_bytes": envelope.payload.len(),
    })
}

/// A message by its name and its fields; octets in hex.
fn payload_json(received: &Received) -> Value {
    match &received.payload {
        FramePayload::A2a(message) => match message {
            a2a::A2aMessage::Handshake(said) => {
                json!({ "handshake": { "agent_id": said.agent_id, "capabilities": said.capabilities } })
            }
            a2a::A2aMessage::Task(task) => {
                json!({ "task": { "task_id": hex(&task.task_id), "kind": task.kind, "input": hex(&task.input) } })
            }
            a2a::A2aMessage::Event(event) => json!({ "event": {
                "task_id": hex(&event.task_id), "message": event.message, "event_payload": hex(&event.event_payload),
            }}),
            a2a::A2aMessage::Result(result) => json!({ "result": {
                "task_id": hex(&result.task_id), "ok": result.ok, "output": hex(&result.output), "error_message": result.error_message,
            }}),
        },
        FramePayload::Agdisc(message) => match message {
            agdisc::AgdiscMessage::Get(get) => json!({ "get": { "agent_id": get.agent_id, "if_none_match": get.if_none_match } }),
            agdisc::AgdiscMessage::Doc(doc) => json!({ "doc": {
                "agent_id": doc.agent_id, "schema_revision": doc.schema_revision, "card_payload": hex(&doc.card_payload), "etag": doc.etag,
                "max_age_ms": doc.max_age_ms,
            }}),
            agdisc::AgdiscMessage::NotModified(same) => {
                json!({ "not_modified": { "agent_id": same.agent_id, "etag": same.etag } })
            }
            agdisc::AgdiscMessage::Failure(failure) => failure_json(failure),
        },
        FramePayload::Obs(message) => match message {
            obs::ObsMessage::Set(context) => json!({ "set": context_json(context) }),
            obs::ObsMessage::Doc(context) => json!({ "doc": context_json(context) }),
            obs::ObsMessage::Get(get) => json!({ "get": { "include_current": get.include_current } }),
            obs::ObsMessage::Failure(failure) => failure_json(failure),
        },
        FramePayload::Opaque(_, bytes) => json!({ "opaque": hex(bytes) }),
    }
}

fn failure_json(failure: &agdisc::Failure) -> Value {
    json!({ "err": { "code": failure.code, "message": failure.message } })
}

fn context_json(context: &obs::TraceContext) -> Value {
    json!({
        "traceparent": context.traceparent, "tracestate": context.tracestate, "msg_id": hex(&context.msg_id),
        "task_id": hex(&context.task_id), "rpc_id": hex(&context.rpc_id),
    })
}
