//! Every vector of `fixtures`: one connection each, frame by frame, with what became of each frame and under which names.

use std::collections::BTreeSet;
use std::path::Path;

use chancery_swp::a2a::{A2aMessage, ResultCondition, TaskResult};
use chancery_swp::{
    FramePayload, FrameReason, Lifecycle, MessageEffect, Party, Reader, Received, Reject, Speakers, SwpCode, SwpLimits,
    SwpTaskState, Timestamps,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    vector: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    says: String,
    id: Option<String>,
    #[serde(default)]
    limits: SwpLimits,
    /// Timestamps are checked against this, or not at all.
    now_ms: Option<u64>,
    #[serde(default)]
    allow_zero: bool,
    speakers: Option<String>,
    frames: Vec<Step>,
    /// The payload that answers the last frame, and the condition it is made of.
    answer: Option<String>,
    answer_says: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    hex: String,
    code: String,
    did: Option<String>,
    reason: Option<String>,
    fine: Option<String>,
    #[serde(default)]
    at_ms: u64,
    from: Option<String>,
    msg_type: Option<u64>,
    payload: Option<String>,
}

fn vectors(file: &str) -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(file);
    let text = std::fs::read_to_string(&path).expect("the fixture is there");
    toml::from_str::<Vectors>(&text).unwrap_or_else(|fault| panic!("{file}: {fault}")).vector
}

fn octets(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex}");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

/// What one connection makes of its frames.
struct Connection {
    reader: Reader,
    lifecycle: Lifecycle,
    timestamps: Timestamps,
}

impl Connection {
    fn new(vector: &Vector) -> Self {
        let speakers = match vector.speakers.as_deref() {
            None => Speakers::Anyone,
            Some("other") => Speakers::TheOtherParty,
            Some(unknown) => panic!("{}: speakers {unknown}", vector.says),
        };
        let timestamps = match vector.now_ms {
            None => Timestamps::Ignored,
            Some(now_ms) => Timestamps::Checked { now_ms, allow_zero: vector.allow_zero },
        };
        let lifecycle = Lifecycle::new(&vector.limits, speakers);
        Self { reader: Reader::new(vector.limits.clone()), lifecycle, timestamps }
    }

    fn take(&mut self, step: &Step) -> Result<(&'static str, Received), Reject> {
        self.reader.push(&octets(&step.hex));
        let Some(body) = self.reader.next_frame()? else {
            return Err(self.reader.finish().expect_err("the stream ends inside this frame"));
        };
        let received = self.reader.read(body, self.timestamps, step.at_ms)?;
        let party = match step.from.as_deref() {
            None => Party::Peer,
            Some("us") => Party::Us,
            Some(unknown) => panic!("from {unknown}"),
        };
        let did = match &received.payload {
            FramePayload::A2a(message) => name(self.lifecycle.accept(party, message)?),
            _ => "read",
        };
        Ok((did, received))
    }
}

fn name(outcome: MessageEffect) -> &'static str {
    match outcome {
        MessageEffect::Greeted => "greeted",
        MessageEffect::Started => "started",
        MessageEffect::AlreadyStarted { .. } => "already_started",
        MessageEffect::Progressed { .. } => "progressed",
        MessageEffect::Closed => "closed",
        MessageEffect::AlreadyClosed => "already_closed",
    }
}

/// Runs a file; gives how many frames were taken and refused, and every reason seen.
fn run(file: &str) -> (usize, usize, BTreeSet<&'static str>) {
    let (mut taken, mut refused, mut reasons) = (0, 0, BTreeSet::new());
    for vector in vectors(file) {
        let mut connection = Connection::new(&vector);
        let mut last = None;
        for (at, step) in vector.frames.iter().enumerate() {
            let place = format!("{file}: {}, frame {}", vector.says, at + 1);
            match connection.take(step) {
                Ok((did, received)) => {
                    assert_eq!(Some(did), step.did.as_deref(), "{place}");
                    assert_eq!(step.code, SwpCode::OK, "{place}");
                    assert_eq!(received.envelope.msg_type, step.msg_type.unwrap_or(received.envelope.msg_type), "{place}");
                    if let Some(payload) = &step.payload {
                        assert_eq!(received.envelope.payload, octets(payload), "{place}");
                    }
                    taken += 1;
                    last = Some(received);
                }
                Err(reject) => {
                    assert_eq!(Some(reject.reason().name()), step.reason.as_deref(), "{place}: {reject}");
                    assert_eq!(reject.code().alias(), step.code, "{place}");
                    assert_eq!(Some(reject.reason().fine_code()), step.fine.as_deref(), "{place}");
                    refused += 1;
                    reasons.insert(reject.reason().name());
                }
            }
        }
        answer(&vector, &mut connection, last);
    }
    (taken, refused, reasons)
}

/// A task that was taken and cannot be done ends with the failure that the vector names, byte for byte, and is over then.
fn answer(vector: &Vector, connection: &mut Connection, last: Option<Received>) {
    let Some(expected) = &vector.answer else { return };
    let condition = match vector.answer_says.as_deref() {
        Some("malformed_input") => ResultCondition::MalformedInput,
        Some("unsupported_capability") => ResultCondition::UnsupportedCapability,
        other => panic!("{}: answer says {other:?}", vector.says),
    };
    let Some(Received { envelope, payload: FramePayload::A2a(A2aMessage::Task(task)) }) = last else {
        panic!("{}: the last frame is no task", vector.says)
    };
    let result = A2aMessage::Result(TaskResult::failure(task.task_id.clone(), condition));
    assert_eq!(result.to_payload(), octets(expected), "{}", vector.says);
    assert_eq!(connection.lifecycle.accept(Party::Us, &result), Ok(MessageEffect::Closed));
    assert_eq!(connection.lifecycle.state(&task.task_id), Some(SwpTaskState::Closed));
    let reply = envelope.reply(result.msg_type(), 0, result.to_payload());
    assert_eq!((reply.msg_id, reply.msg_type, reply.profile_id), (envelope.msg_id, 4, 2));
}

#[test]
fn frames_and_the_policy_of_a_connection_are_as_the_vectors_say() {
    let (taken, refused, _) = run("framing.toml");
    assert_eq!((taken, refused), (18, 18));
}

#[test]
fn envelopes_are_as_the_vectors_say() {
    let (taken, refused, _) = run("envelope.toml");
    assert_eq!((taken, refused), (35, 54));
}

#[test]
fn payloads_are_as_the_vectors_say() {
    let (taken, refused, _) = run("p1.toml");
    assert_eq!((taken, refused), (44, 47));
}

#[test]
fn the_lifecycle_of_tasks_is_as_the_vectors_say() {
    let (taken, refused, _) = run("a2a.toml");
    assert_eq!((taken, refused), (70, 31));
}

#[test]
fn all_25_shared_scenarios_are_among_the_vectors() {
    let ids: BTreeSet<String> = vectors("a2a.toml").into_iter().filter_map(|vector| vector.id).collect();
    assert_eq!(ids.len(), 25);
    for number in (1..=15).filter(|number| *number != 10) {
        assert!(ids.contains(&format!("{number:04}")), "{number}");
    }
}

#[test]
fn every_reason_that_this_crate_gives_has_a_vector_that_meets_it() {
    let files = ["framing.toml", "envelope.toml", "p1.toml", "a2a.toml"];
    let met: BTreeSet<_> = files.into_iter().flat_map(|file| run(file).2).collect();
    let unmet: Vec<_> = FrameReason::ALL.into_iter().filter(|reason| !met.contains(reason.name())).collect();
    // These are for doors to give.
    let doors = [
        FrameReason::SecurityPolicy,
        FrameReason::InvalidMcpPayload,
        FrameReason::NotFound,
        FrameReason::Internal,
        FrameReason::CompatibilityPolicy,
    ];
    assert_eq!(unmet, doors);
}
