//! Where a call stands in the tree of calls it belongs to.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use chancery_protocol::{TaskId, TraceId};
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::agent_ids::{AgentIdIndex, is_distinct};
use super::path::{AgentPath, AgentRef, MAX_AGENT_NAME, MAX_PATH};

/// Known to the service, and written as `metadata.ruvector.context` for the called agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskContext {
    /// One for the whole tree.
    pub trace_id: TraceId,
    /// The task on whose behalf the call is made; none for a root.
    #[serde(default)]
    pub parent_task_id: Option<TaskId>,
    /// How many calls lie between the root and this one.
    pub depth: u32,
    /// Who made the call that everything else follows from.
    pub root_agent_id: AgentRef,
    /// The root's caller and every agent that holds an open ancestor. The agent that is called is not among them.
    pub visited_agents: AgentPath,
}

impl TaskContext {
    /// A call that nothing led to.
    pub fn root(trace_id: TraceId, caller: AgentRef) -> Self {
        let visited_agents = AgentPath::default().then(caller.clone());
        Self { trace_id, parent_task_id: None, depth: 0, root_agent_id: caller, visited_agents }
    }

    /// A call that `caller` makes while it works on `parent`, the task this context is of.
    #[must_use]
    pub fn child(&self, parent: TaskId, caller: AgentRef) -> Self {
        Self {
            trace_id: self.trace_id,
            parent_task_id: Some(parent),
            depth: self.depth.saturating_add(1),
            root_agent_id: self.root_agent_id.clone(),
            visited_agents: self.visited_agents.then(caller),
        }
    }
}

/// What a caller says of its own place, without proof. It can only make the call deeper and its path longer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClaimedContext {
    /// The trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
    /// The task that the call is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// The number of calls between the root and this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// The agent at the root of the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_agent_id: Option<AgentRef>,
    /// The agents on the way from the root.
    #[serde(skip_serializing_if = "AgentPath::is_empty")]
    pub visited_agents: AgentPath,
    /// Something was left out because it was too long, too much, or of another type.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl ClaimedContext {
    /// The part of another node's context that counts here. The other node wrote it for the agent that it
    /// calls. It is the place of that agent's own calls, one step further. Of its path only agents with an
    /// AgentID count. Plain names are the other node's, which may have other agents by the same names.
    #[must_use]
    pub fn from_another_node(&self) -> Self {
        let depth = self.depth.map(|depth| depth.saturating_sub(1));
        let distinct = self.visited_agents.to_vec().into_iter().filter(|agent| is_distinct(agent));
        Self { depth, visited_agents: AgentPath::new(distinct), ..self.clone() }
    }

    /// What two claims of one call say together: the larger depth, and the agents of both paths.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let agents = self.visited_agents.with_all_of([&other.visited_agents]);
        let is_longer = agents.len() > MAX_PATH;
        Self {
            trace_id: self.trace_id.or(other.trace_id),
            parent_task_id: self.parent_task_id.or(other.parent_task_id),
            depth: self.depth.max(other.depth).max(is_longer.then_some(MAX_PATH as u32)),
            root_agent_id: self.root_agent_id.or(other.root_agent_id),
            visited_agents: if is_longer { AgentPath::new(agents.to_vec().into_iter().take(MAX_PATH)) } else { agents },
            cut: self.cut || other.cut || is_longer,
        }
    }

    /// The claim of a call that says something of its place which cannot be read. It counts as the deepest place.
    pub fn unreadable() -> Self {
        Self { depth: Some(u32::MAX), cut: true, ..Self::default() }
    }

    /// The same with the agents of this node under the names they have here.
    #[must_use]
    pub fn in_own_names(&self, ids: &AgentIdIndex) -> Self {
        Self { visited_agents: ids.recognised(&self.visited_agents), ..self.clone() }
    }
}

impl<'de> Deserialize<'de> for ClaimedContext {
    /// Takes any value: what is not understood is left out and marked as [`ClaimedContext::cut`].
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Claim;

        impl<'de> Visitor<'de> for Claim {
            type Value = ClaimedContext;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a task context")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<ClaimedContext, A::Error> {
                let mut claim = ClaimedContext::default();
                while let Some(name) = from.next_key::<std::borrow::Cow<'_, str>>()? {
                    let known = match &*name {
                        "trace_id" => {
                            claim.trace_id = from.next_value::<ClaimMember>()?.text().and_then(TraceId::from_hex);
                            claim.trace_id.is_some()
                        }
                        "parent_task_id" => match from.next_value::<ClaimMember>()? {
                            ClaimMember::Nothing => true,
                            said => {
                                claim.parent_task_id = said.text().map(TaskId::from);
                                claim.parent_task_id.is_some()
                            }
                        },
                        "depth" => {
                            let depth = from.next_value::<ClaimMember>()?.number();
                            claim.depth = claim.depth.max(depth);
                            depth.is_some()
                        }
                        "root_agent_id" => {
                            claim.root_agent_id = from.next_value::<ClaimMember>()?.text().map(Into::into);
                            claim.root_agent_id.is_some()
                        }
                        "visited_agents" => match from.next_value::<ClaimMember>()? {
                            ClaimMember::Agents { path, whole, is_longer } => {
                                claim.visited_agents = path;
                                // A call that came through more agents than are read is at least as deep.
                                claim.depth = claim.depth.max(is_longer.then_some(MAX_PATH as u32));
                                whole
                            }
                            _ => false,
                        },
                        _ => {
                            from.next_value::<IgnoredAny>()?;
                            true
                        }
                    };
                    claim.cut |= !known;
                }
                Ok(claim)
            }
        }

        from.deserialize_map(Claim)
    }
}

/// One member of a claim, of any type.
enum ClaimMember {
    Nothing,
    Text(Arc<str>),
    Number(u64),
    Agents { path: AgentPath, whole: bool, is_longer: bool },
    Other,
}

impl ClaimMember {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A depth, also as text. One that is too large is the largest: a claim only makes its call deeper.
    fn number(&self) -> Option<u32> {
        let number = match self {
            Self::Number(number) => *number,
            Self::Text(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().unwrap_or(u64::MAX)
            }
            _ => return None,
        };
        Some(u32::try_from(number).unwrap_or(u32::MAX))
    }
}

impl<'de> Deserialize<'de> for ClaimMember {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = ClaimMember;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_unit<E: de::Error>(self) -> Result<ClaimMember, E> {
                Ok(ClaimMember::Nothing)
            }

            fn visit_bool<E: de::Error>(self, _: bool) -> Result<ClaimMember, E> {
                Ok(ClaimMember::Other)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<ClaimMember, E> {
                Ok(ClaimMember::Number(number))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<ClaimMember, E> {
                Ok(u64::try_from(number).map_or(ClaimMember::Other, ClaimMember::Number))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<ClaimMember, E> {
                // The cast stops at the largest number.
                Ok(if number >= 0.0 { ClaimMember::Number(number.ceil() as u64) } else { ClaimMember::Other })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ClaimMember, E> {
                Ok(if text.len() > MAX_AGENT_NAME { ClaimMember::Other } else { ClaimMember::Text(text.into()) })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<ClaimMember, A::Error> {
                let (mut path, mut whole) = (AgentPath::default(), true);
                while path.len() < MAX_PATH {
                    match from.next_element::<ClaimMember>()? {
                        Some(ClaimMember::Text(agent)) => path = path.then(agent),
                        Some(_) => whole = false,
                        None => return Ok(ClaimMember::Agents { path, whole, is_longer: false }),
                    }
                }
                let (mut known, mut is_longer) = (None, false);
                while let Some(member) = from.next_element::<ClaimMember>()? {
                    whole = false;
                    let known = known.get_or_insert_with(|| path.backwards().cloned().collect::<HashSet<_>>());
                    is_longer |= member.text().is_some_and(|agent| !known.contains(agent));
                }
                Ok(ClaimMember::Agents { path, whole, is_longer })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<ClaimMember, A::Error> {
                while from.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(ClaimMember::Other)
            }
        }

        from.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    fn claim(value: &Value) -> ClaimedContext {
        serde_json::from_str(&value.to_string()).unwrap()
    }

    #[test]
    fn a_context_is_written_as_the_wire_has_it_and_read_back() {
        let root = TaskContext::root(TraceId::from_hex(TRACE).unwrap(), "A".into());
        let child = root.child("t-1".into(), "B".into());
        let written = json!({
            "trace_id": TRACE, "parent_task_id": "t-1", "depth": 1, "root_agent_id": "A", "visited_agents": ["A", "B"],
        });
        assert_eq!(serde_json::to_value(&child).unwrap(), written);
        assert_eq!(serde_json::from_value::<TaskContext>(written.clone()).unwrap(), child);
        let back = claim(&written);
        assert_eq!((back.depth, back.visited_agents.to_string(), back.cut), (Some(1), "A → B".into(), false));
        assert_eq!(serde_json::to_value(&root).unwrap()["parent_task_id"], Value::Null);
    }

    #[test]
    fn a_claim_is_taken_as_far_as_it_can_be_understood() {
        for (value, depth, path, cut) in [
            (json!({}), None, "", false),
            (json!({"more": [1, {"x": 2}], "parent_task_id": null}), None, "", false),
            (json!({"depth": 3, "trace_id": "zz"}), Some(3), "", true),
            (json!({"depth": -1}), None, "", true),
            (json!({"depth": true}), None, "", true),
            (json!({"depth": ""}), None, "", true),
            (json!({"depth": "-1"}), None, "", true),
            // A depth in another notation counts, and one that is too large is the largest.
            (json!({"depth": 99.0}), Some(99), "", false),
            (json!({"depth": 1.5}), Some(2), "", false),
            (json!({"depth": "99"}), Some(99), "", false),
            (json!({"depth": u64::from(u32::MAX) + 1}), Some(u32::MAX), "", false),
            (json!({"depth": u64::MAX}), Some(u32::MAX), "", false),
            (json!({"depth": 1e300}), Some(u32::MAX), "", false),
            (json!({"depth": "9".repeat(30)}), Some(u32::MAX), "", false),
            (json!({"visited_agents": ["A", 1, null, {"a": []}, ["B"], "C"]}), None, "A → C", true),
            (json!({"visited_agents": "A"}), None, "", true),
            (json!({"root_agent_id": "x".repeat(MAX_AGENT_NAME + 1)}), None, "", true),
            (json!({"root_agent_id": "x".repeat(MAX_AGENT_NAME)}), None, "", false),
        ] {
            let claim = claim(&value);
            assert_eq!((claim.depth, claim.visited_agents.to_string(), claim.cut), (depth, path.into(), cut), "{value}");
        }
        for (count, cut) in [(MAX_PATH, false), (MAX_PATH + 1, true)] {
            let claim = claim(&json!({ "visited_agents": vec!["x"; count] }));
            assert_eq!((claim.visited_agents.len(), claim.cut), (MAX_PATH, cut));
            assert_eq!(claim.depth, None, "no agent is left out");
        }
        let many: Vec<String> = (0..=MAX_PATH).map(|agent| agent.to_string()).collect();
        let claim = claim(&json!({ "visited_agents": many }));
        assert_eq!((claim.depth, claim.cut), (Some(MAX_PATH as u32), true), "an agent that is left out counts as depth");
    }

    #[test]
    fn of_two_claims_the_deeper_counts_and_the_agents_of_both() {
        let first = claim(&json!({ "depth": 1, "visited_agents": ["A", "B"] }));
        let second = claim(&json!({ "depth": 7, "visited_agents": ["B", "C"], "trace_id": TRACE }));
        for both in [first.clone().and(second.clone()), second.and(first)] {
            assert_eq!((both.depth, both.visited_agents.len(), both.trace_id.is_some()), (Some(7), 3, true));
            assert!(["A", "B", "C"].iter().all(|agent| both.visited_agents.contains(agent)));
        }
        let many = |name: &str| claim(&json!({ "visited_agents": (0..200).map(|n| format!("{name}{n}")).collect::<Vec<_>>() }));
        let both = many("a").and(many("b"));
        assert_eq!((both.visited_agents.len(), both.depth, both.cut), (MAX_PATH, Some(MAX_PATH as u32), true));
    }
}
