//! What the record says about each kind of thing. Members stand in the order of their names, so that each is canonical JSON
//! (RFC 8785) as it is written; numbers beyond 2^53 - 1 are written as text.

use std::borrow::Cow;

use chancery_core::{Fact, Verdict};
use chancery_identity::strict_json::MAX_SAFE_INTEGER;
use chancery_protocol::{Message, Role, TraceId};
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

use super::content::{Content, content_of};
use super::hex;

/// The types of entries, and of what else stands in a bundle.
pub mod types {
    pub const REQUESTED: &str = "chancery.task.requested";
    pub const UPDATED: &str = "chancery.task.updated";
    pub const WITHDRAWN: &str = "chancery.task.withdrawn";
    pub const ARTIFACT: &str = "chancery.artifact.shared";
    pub const MESSAGE: &str = "chancery.message";
    pub const CARD: &str = "chancery.card.observed";
    pub const ADMITTED: &str = "chancery.decision.admitted";
    pub const REFUSED: &str = "chancery.decision.refused";
    pub const ROUTED: &str = "chancery.decision.routed";
    pub const FROZEN: &str = "chancery.decision.frozen";
    pub const THAWED: &str = "chancery.decision.thawed";
    pub const CANCELLED: &str = "chancery.decision.cancelled";
    pub const DELIVERED: &str = "chancery.decision.delivered";
    pub const LOOKED: &str = "chancery.memory.looked";
    pub const CLOCK: &str = "chancery.record.clock";

    /// Only in bundles.
    pub const LINKS: &str = "chancery.evidence.links";
    pub const CHECKPOINT: &str = "chancery.evidence.checkpoint";
    pub const PROOF: &str = "chancery.evidence.proof";

    /// What an entry can be.
    pub const ENTRIES: [&str; 15] = [
        REQUESTED, UPDATED, WITHDRAWN, ARTIFACT, MESSAGE, CARD, ADMITTED, REFUSED, ROUTED, FROZEN, THAWED, CANCELLED, DELIVERED,
        LOOKED, CLOCK,
    ];
}

fn is_none<T>(value: &Option<T>) -> bool {
    value.is_none()
}

#[derive(Serialize)]
pub(super) struct Requested<'a> {
    pub(super) agent: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) attribution: Option<&'static str>,
    pub(super) caller: &'a str,
    pub(super) context: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) depth: Option<u32>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) message: Option<Said<'a>>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) parent: Option<&'a str>,
    pub(super) protocol_version: &'static str,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) root: Option<&'a str>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) skill: Option<&'a str>,
    pub(super) task: &'a str,
    pub(super) tenant: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) trace: Option<TraceId>,
}

/// A message, without what it says.
#[derive(Serialize)]
pub(super) struct Said<'a> {
    bytes: u64,
    id: &'a str,
    parts: usize,
    role: &'static str,
    sha256: String,
}

impl<'a> Said<'a> {
    pub(super) fn of(message: &'a Message) -> Self {
        let Content { parts, bytes, sha256 } = content_of(&message.parts);
        let role = match message.role {
            Role::User => "user",
            Role::Agent => "agent",
        };
        Self { bytes, id: message.message_id.as_str(), parts, role, sha256: hex(&sha256) }
    }
}

/// With whom, and in what. Said again with each update of tasks below 1.0 only, for the packets that are made of those.
#[derive(Clone, Copy)]
pub(super) struct Older<'a> {
    pub(super) agent: Option<&'a str>,
    pub(super) protocol_version: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct Updated<'a> {
    #[serde(skip_serializing_if = "is_none")]
    pub(super) agent: Option<&'a str>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) message: Option<Said<'a>>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) protocol_version: Option<&'static str>,
    pub(super) seq: u64,
    pub(super) state: &'static str,
    pub(super) task: &'a str,
}

#[derive(Serialize)]
pub(super) struct Spoken<'a> {
    #[serde(skip_serializing_if = "is_none")]
    pub(super) agent: Option<&'a str>,
    pub(super) message: Said<'a>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) protocol_version: Option<&'static str>,
    pub(super) seq: u64,
    pub(super) task: &'a str,
}

#[derive(Serialize)]
pub(super) struct Shared<'a> {
    #[serde(skip_serializing_if = "is_none")]
    pub(super) agent: Option<&'a str>,
    pub(super) append: bool,
    pub(super) artifact: &'a str,
    pub(super) bytes: u64,
    pub(super) last_chunk: bool,
    pub(super) parts: usize,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) protocol_version: Option<&'static str>,
    pub(super) seq: u64,
    pub(super) sha256: String,
    pub(super) task: &'a str,
}

#[derive(Serialize)]
pub(super) struct Admitted<'a> {
    #[serde(skip_serializing_if = "is_none")]
    pub(super) decision: Option<&'a str>,
    pub(super) rules: Rules<'a>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) task: Option<&'a str>,
}

/// Somebody looked at memory, or was not let.
#[derive(Serialize)]
pub(super) struct Looked<'a> {
    pub(super) agent: &'a str,
    pub(super) caller: &'a str,
    pub(super) decision: &'a str,
    pub(super) facts: Facts<'a>,
    pub(super) granted: bool,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) refused: Option<&'a str>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) task: Option<&'a str>,
    pub(super) tenant: &'a str,
}

#[derive(Serialize)]
pub(super) struct Refused<'a> {
    pub(super) agent: &'a str,
    pub(super) caller: &'a str,
    pub(super) decision: &'a str,
    pub(super) refused: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) root: Option<&'a str>,
    pub(super) rules: Rules<'a>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) task: Option<&'a str>,
    pub(super) tenant: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) trace: Option<TraceId>,
}

#[derive(Serialize)]
pub(super) struct Routed<'a> {
    pub(super) peer: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) remote_context: Option<&'a str>,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) remote_task: Option<&'a str>,
    pub(super) task: &'a str,
}

#[derive(Serialize)]
pub(super) struct Frozen<'a> {
    pub(super) by: &'a str,
    pub(super) scope: String,
    /// Operators write what they like there.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) why: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct About<'a> {
    #[serde(skip_serializing_if = "is_none")]
    pub(super) by: Option<&'a str>,
    pub(super) task: &'a str,
}

#[derive(Serialize)]
pub(super) struct Card<'a> {
    pub(super) agent: &'a str,
    pub(super) bytes: u64,
    pub(super) protocol_version: &'a str,
    pub(super) sha256: String,
    pub(super) url: &'a str,
}

#[derive(Serialize)]
pub(super) struct Delivered<'a> {
    pub(super) attempts: u32,
    pub(super) bytes: u64,
    pub(super) config: &'a str,
    pub(super) from: u64,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) given_up: Option<&'a str>,
    pub(super) lane: u64,
    pub(super) replay: bool,
    pub(super) seq: u64,
    pub(super) sha256: String,
    #[serde(skip_serializing_if = "is_none")]
    pub(super) status: Option<u16>,
    pub(super) task: &'a str,
    pub(super) webhook: &'a str,
}

#[derive(Serialize)]
pub(super) struct Clock {
    /// What it said before, in microseconds.
    pub(super) before: i64,
}

/// What each rule said, in the order they were asked.
pub(super) struct Rules<'a>(pub(super) &'a [Verdict]);

impl Serialize for Rules<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Ruled<'a> {
            #[serde(skip_serializing_if = "Facts::is_empty")]
            facts: Facts<'a>,
            passed: bool,
            rule: chancery_core::Rule,
        }
        let ruled = |verdict: &'_ Verdict| (verdict.rule, verdict.passed);
        let mut list = to.serialize_seq(Some(self.0.len()))?;
        for verdict in self.0 {
            let (rule, passed) = ruled(verdict);
            list.serialize_element(&Ruled { facts: Facts(&verdict.facts), passed, rule })?;
        }
        list.end()
    }
}

/// Pairs of a name and a value, in the order they were found.
pub(super) struct Facts<'a>(pub(super) &'a [(Cow<'static, str>, Fact)]);

impl Facts<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.0.len()))?;
        for (name, fact) in self.0 {
            match fact {
                Fact::Number(number) if *number > MAX_SAFE_INTEGER => list.serialize_element(&(name, number.to_string()))?,
                fact => list.serialize_element(&(name, fact))?,
            }
        }
        list.end()
    }
}
