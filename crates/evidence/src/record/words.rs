//! The words of the record: the types of its entries, the names of their members, and the values that come again and again.
//! Each has a number, which stands for it in shorthand.

use chancery_core::Rule;
use chancery_core::lineage::Attribution;
use chancery_protocol::{Role, TaskState, Version};

/// The types of entries, and of what else stands in a bundle.
pub mod types {
    use super::Kind;

    pub const REQUESTED: &str = Kind::Requested.text();
    pub const UPDATED: &str = Kind::Updated.text();
    pub const WITHDRAWN: &str = Kind::Withdrawn.text();
    pub const ARTIFACT: &str = Kind::Shared.text();
    pub const MESSAGE: &str = Kind::Said.text();
    pub const CARD: &str = Kind::CardObserved.text();
    pub const ADMITTED: &str = Kind::Admitted.text();
    pub const REFUSED: &str = Kind::Refused.text();
    pub const ROUTED: &str = Kind::Routed.text();
    pub const FROZEN: &str = Kind::Frozen.text();
    pub const THAWED: &str = Kind::Thawed.text();
    pub const CANCELLED: &str = Kind::Cancelled.text();
    pub const DELIVERED: &str = Kind::Delivered.text();
    pub const LOOKED: &str = Kind::Looked.text();
    pub const CLOCK: &str = Kind::Clock.text();
    pub const DELEGATED: &str = Kind::Delegated.text();

    /// Only in bundles.
    pub const LINKS: &str = "chancery.evidence.links";
    pub const CHECKPOINT: &str = "chancery.evidence.checkpoint";
    pub const PROOF: &str = "chancery.evidence.proof";

    /// What an entry can be.
    pub const ENTRIES: &[&str] = &Kind::ALL;
}

/// Their numbers are kept in databases: new words come at the end, none ever goes.
macro_rules! words {
    ($(#[$doc:meta])* $kind:ident, written $before:literal $after:literal: $($word:ident $text:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum $kind {
            $($word,)*
        }

        impl $kind {
            /// As they stand in an entry.
            pub(super) const WRITTEN: &[&str] = &[$(concat!($before, $text, $after),)*];
        }
    };
}

impl Kind {
    const ALL: [&str; Self::WRITTEN.len()] = {
        let mut all = [""; Self::WRITTEN.len()];
        let mut number = 0;
        while number < all.len() {
            let (_, text) = Self::WRITTEN[number].split_at("\"type\":\"".len());
            all[number] = text.split_at(text.len() - "\"}".len()).0;
            number += 1;
        }
        all
    };

    const fn text(self) -> &'static str {
        Self::ALL[self as usize]
    }
}

words! {
    /// The type of an entry.
    Kind, written "\"type\":\"" "\"}":
    Requested "chancery.task.requested",
    Updated "chancery.task.updated",
    Withdrawn "chancery.task.withdrawn",
    Shared "chancery.artifact.shared",
    Said "chancery.message",
    CardObserved "chancery.card.observed",
    Admitted "chancery.decision.admitted",
    Refused "chancery.decision.refused",
    Routed "chancery.decision.routed",
    Frozen "chancery.decision.frozen",
    Thawed "chancery.decision.thawed",
    Cancelled "chancery.decision.cancelled",
    Delivered "chancery.decision.delivered",
    Looked "chancery.memory.looked",
    Clock "chancery.record.clock",
    Delegated "chancery.task.delegated",
}

words! {
    /// The name of a member.
    Name, written ",\"" "\":":
    Agent "agent",
    Append "append",
    Artifact "artifact",
    Attempts "attempts",
    Attribution "attribution",
    Before "before",
    By "by",
    Bytes "bytes",
    Caller "caller",
    Config "config",
    Context "context",
    Decision "decision",
    Depth "depth",
    Facts "facts",
    From "from",
    GivenUp "given_up",
    Granted "granted",
    Id "id",
    Lane "lane",
    LastChunk "last_chunk",
    Message "message",
    Parent "parent",
    Parts "parts",
    Passed "passed",
    Peer "peer",
    ProtocolVersion "protocol_version",
    Refused "refused",
    RemoteContext "remote_context",
    RemoteTask "remote_task",
    Replay "replay",
    Role "role",
    Root "root",
    Rule "rule",
    Rules "rules",
    Scope "scope",
    Seq "seq",
    Sha256 "sha256",
    Skill "skill",
    State "state",
    Status "status",
    Task "task",
    Tenant "tenant",
    Trace "trace",
    Url "url",
    Webhook "webhook",
    Why "why",
    Delegator "delegator",
    Extended "extended",
    Path "path",
    Remote "remote",
}

words! {
    /// A value out of few.
    Value, written "\"" "\"":
    User "user",
    Agent "agent",
    Lineage "lineage",
    Freeze "freeze",
    Budget "budget",
    Recursion "recursion",
    Selector "selector",
    Policy "policy",
    Memory "memory",
    Unspecified "TASK_STATE_UNSPECIFIED",
    Submitted "TASK_STATE_SUBMITTED",
    Working "TASK_STATE_WORKING",
    Completed "TASK_STATE_COMPLETED",
    Failed "TASK_STATE_FAILED",
    Canceled "TASK_STATE_CANCELED",
    InputRequired "TASK_STATE_INPUT_REQUIRED",
    Rejected "TASK_STATE_REJECTED",
    AuthRequired "TASK_STATE_AUTH_REQUIRED",
    Verified "verified",
    Inferred "inferred",
    Ambiguous "ambiguous",
    Root "root",
    V1_0 "1.0",
    V0_3 "0.3",
    Original "original",
    Answer "answer",
    Traced "traced",
    Claimed "claimed",
    Late "late",
}

impl From<Role> for Value {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Agent => Self::Agent,
        }
    }
}

impl From<Attribution> for Value {
    fn from(attribution: Attribution) -> Self {
        match attribution {
            Attribution::Verified => Self::Verified,
            Attribution::Inferred => Self::Inferred,
            Attribution::Ambiguous => Self::Ambiguous,
            Attribution::Root => Self::Root,
            Attribution::Traced => Self::Traced,
            Attribution::Claimed => Self::Claimed,
            Attribution::Late => Self::Late,
        }
    }
}

impl From<Version> for Value {
    fn from(version: Version) -> Self {
        match version {
            Version::V1_0 => Self::V1_0,
            Version::V0_3 => Self::V0_3,
            Version::Original => Self::Original,
        }
    }
}

impl From<Rule> for Value {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::Lineage => Self::Lineage,
            Rule::Freeze => Self::Freeze,
            Rule::Budget => Self::Budget,
            Rule::Recursion => Self::Recursion,
            Rule::Selector => Self::Selector,
            Rule::Policy => Self::Policy,
            Rule::Memory => Self::Memory,
            Rule::Answer => Self::Answer,
        }
    }
}

impl From<TaskState> for Value {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Unspecified => Self::Unspecified,
            TaskState::Submitted => Self::Submitted,
            TaskState::Working => Self::Working,
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::Canceled => Self::Canceled,
            TaskState::InputRequired => Self::InputRequired,
            TaskState::Rejected => Self::Rejected,
            TaskState::AuthRequired => Self::AuthRequired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{hex, sha256};

    #[test]
    fn words_keep_their_numbers_and_new_ones_come_at_the_end() {
        let known = [
            (Kind::WRITTEN, 15, "6f611a0a3dfc3f40fe5721410042864d4a24bec4d146e849d811e2e1c95d7ed4"),
            (Name::WRITTEN, 46, "f7fa93aa14d8ebc6a2ba5994dbf7702cfc908b582bab1fb97f83660479acf9d4"),
            (Value::WRITTEN, 25, "4bbc4b33bd7825eff577c8d07fbf10e6b972e935b641785dd2528d5d74c3a816"),
        ];
        for (words, count, digest) in known {
            assert_eq!(hex(&sha256(words[..count].join(" ").as_bytes())), digest);
        }
        // A byte stands for each: 64 values and 128 names are the most there can be.
        assert!(Value::WRITTEN.len() <= 64 && Name::WRITTEN.len() <= 128);
    }

    #[test]
    fn values_are_the_names_they_stand_for() {
        for state in TaskState::ALL {
            assert_eq!(Value::WRITTEN[Value::from(state) as usize], format!("{:?}", state.name()));
        }
        let rules = [
            Rule::Lineage,
            Rule::Freeze,
            Rule::Budget,
            Rule::Recursion,
            Rule::Selector,
            Rule::Policy,
            Rule::Memory,
            Rule::Answer,
        ];
        for rule in rules {
            assert_eq!(serde_json::to_string(&rule).unwrap(), Value::WRITTEN[Value::from(rule) as usize]);
        }
    }
}
