//! The agents a call has come through, in order, shared with every call that goes on from there.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use chancery_protocol::AgentName;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The most agents in a path from another node.
pub const MAX_PATH: usize = 256;
/// The most bytes of a name from another node.
pub const MAX_AGENT_NAME: usize = 256;

/// An agent as this node calls it; the text of its agent id if the node has no name for it.
pub type AgentRef = AgentName;

/// A list that grows at its end. A longer one shares all of the shorter, so going one agent further costs the same at any depth.
#[derive(Clone, Default)]
pub struct AgentPath(Option<Arc<Step>>);

struct Step {
    agent: AgentRef,
    before: AgentPath,
    length: usize,
}

impl AgentPath {
    /// Makes a path of agents, the root first.
    pub fn new(agents: impl IntoIterator<Item = AgentRef>) -> Self {
        agents.into_iter().fold(Self::default(), |path, agent| path.then(agent))
    }

    /// Returns the path with one more agent at its end.
    #[must_use]
    pub fn then(&self, agent: AgentRef) -> Self {
        Self(Some(Arc::new(Step { agent, before: self.clone(), length: self.len() + 1 })))
    }

    /// Returns the number of agents.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |step| step.length)
    }

    /// Returns whether the path has no agents.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether an agent is on the path.
    pub fn contains(&self, agent: &str) -> bool {
        self.backwards().any(|visited| **visited == *agent)
    }

    /// Returns the agent at the root.
    pub fn first(&self) -> Option<&AgentRef> {
        self.backwards().last()
    }

    /// Returns the agent at the end.
    pub fn last(&self) -> Option<&AgentRef> {
        self.backwards().next()
    }

    /// The last one first.
    pub fn backwards(&self) -> impl Iterator<Item = &AgentRef> {
        std::iter::successors(self.0.as_deref(), |step| step.before.0.as_deref()).map(|step| &step.agent)
    }

    /// The first one first.
    pub fn to_vec(&self) -> Vec<AgentRef> {
        let mut agents: Vec<_> = self.backwards().cloned().collect();
        agents.reverse();
        agents
    }

    /// This path, and after it the agents that are only in the others.
    #[must_use]
    pub fn with_all_of<'a>(&self, others: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut union = self.clone();
        let mut seen: HashSet<AgentRef> = self.backwards().cloned().collect();
        for other in others {
            // Most calls that may come from several tasks may come from several of one tree.
            if other.backwards().all(|agent| seen.contains(agent)) {
                continue;
            }
            for agent in other.to_vec() {
                if seen.insert(agent.clone()) {
                    union = union.then(agent);
                }
            }
        }
        union
    }
}

impl Drop for Step {
    /// One after the other: dropping a long path must not take a stack as deep as the path.
    fn drop(&mut self) {
        let mut rest = self.before.0.take();
        while let Some(mut step) = rest.and_then(Arc::into_inner) {
            rest = step.before.0.take();
        }
    }
}

impl PartialEq for AgentPath {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.backwards().eq(other.backwards())
    }
}

impl Eq for AgentPath {}

impl fmt::Display for AgentPath {
    /// `A → B → C`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, agent) in self.to_vec().iter().enumerate() {
            write!(f, "{}{agent}", if place == 0 { "" } else { " → " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for AgentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.to_vec()).finish()
    }
}

impl Serialize for AgentPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.to_vec())
    }
}

impl<'de> Deserialize<'de> for AgentPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Path;

        impl<'de> Visitor<'de> for Path {
            type Value = AgentPath;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MAX_PATH} agents")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<AgentPath, A::Error> {
                let mut path = AgentPath::default();
                while let Some(agent) = from.next_element::<AgentRef>()? {
                    if path.len() == MAX_PATH {
                        return Err(de::Error::invalid_length(MAX_PATH + 1, &self));
                    }
                    if agent.len() > MAX_AGENT_NAME {
                        return Err(de::Error::custom(format_args!("an agent's name has at most {MAX_AGENT_NAME} bytes")));
                    }
                    path = path.then(agent);
                }
                Ok(path)
            }
        }

        from.deserialize_seq(Path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &[&str]) -> AgentPath {
        AgentPath::new(names.iter().map(|name| (*name).into()))
    }

    #[test]
    fn a_path_is_read_and_written_in_order() {
        let path = path(&["A", "B", "C"]);
        assert_eq!(path.to_string(), "A → B → C");
        assert_eq!(serde_json::to_string(&path).unwrap(), r#"["A","B","C"]"#);
        assert_eq!(serde_json::from_str::<AgentPath>(r#"["A","B","C"]"#).unwrap(), path);
        assert!(path.contains("B") && !path.contains("b"));
        assert_eq!(AgentPath::default().to_string(), "");
    }

    #[test]
    fn going_on_leaves_the_shorter_path_as_it_was() {
        let short = path(&["A"]);
        let (left, right) = (short.then("B".into()), short.then("C".into()));
        assert_eq!((short.len(), left.to_string(), right.to_string()), (1, "A → B".into(), "A → C".into()));
        assert_ne!(left, right);
    }

    #[test]
    fn a_union_adds_everybody_once() {
        assert_eq!(
            path(&["A", "B"]).with_all_of([&path(&["A", "C", "D", "C"]), &path(&["B", "E"])]).to_string(),
            "A → B → C → D → E"
        );
        assert_eq!(AgentPath::default().with_all_of([&path(&["A"])]), path(&["A"]));
    }

    #[test]
    fn what_others_wrote_is_bounded() {
        let list = |count: usize, length: usize| serde_json::to_string(&vec!["x".repeat(length); count]).unwrap();
        assert_eq!(serde_json::from_str::<AgentPath>(&list(MAX_PATH, 1)).unwrap().len(), MAX_PATH);
        serde_json::from_str::<AgentPath>(&list(MAX_PATH + 1, 1)).unwrap_err();
        serde_json::from_str::<AgentPath>(&list(1, MAX_AGENT_NAME)).unwrap();
        serde_json::from_str::<AgentPath>(&list(1, MAX_AGENT_NAME + 1)).unwrap_err();
        serde_json::from_str::<AgentPath>("[1]").unwrap_err();
        serde_json::from_str::<AgentPath>("{}").unwrap_err();
    }

    #[test]
    fn a_very_long_path_is_dropped_without_a_deep_stack() {
        let long = AgentPath::new((0..1_000_000).map(|_| "x".into()));
        let shared = long.clone();
        drop(long);
        assert_eq!(shared.len(), 1_000_000);
        drop(shared);
    }
}
