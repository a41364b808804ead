//! The AgentIDs of this node's agents, and the name of an agent in a path that other nodes read.

use std::collections::HashMap;

use chancery_protocol::AgentId;

use super::path::{AgentPath, AgentRef};

/// How many hex digits of an AgentID stand behind a name.
const TAG: usize = 8;
/// How many hex digits a whole AgentID has.
const WHOLE: usize = 64;

/// How the agents of a path are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentNaming {
    /// `name#0a1b2c3d`: the name, and the first digits of the AgentID.
    Tagged,
    /// The whole AgentID, as agents of the original protocol expect it.
    AgentIds,
}

/// The agents of this node by their names and by their AgentIDs.
#[derive(Clone, Debug, Default)]
pub struct AgentIdIndex {
    /// The id that names an agent comes first.
    by_name: HashMap<AgentRef, Vec<AgentId>>,
    by_id: HashMap<AgentId, AgentRef>,
    by_tag: HashMap<Box<str>, AgentRef>,
}

impl AgentIdIndex {
    /// Of several ids of an agent the first one given names it.
    pub fn new(ids: impl IntoIterator<Item = (AgentRef, AgentId)>) -> Self {
        let mut index = Self::default();
        for (name, id) in ids {
            index.by_tag.entry(tag(&id).into()).or_insert_with(|| name.clone());
            index.by_id.entry(id.clone()).or_insert_with(|| name.clone());
            let known = index.by_name.entry(name).or_default();
            if !known.contains(&id) {
                known.push(id);
            }
        }
        index
    }

    /// All that an agent of this node is called beside its name: each AgentID, and the name with its first digits.
    pub fn other_names(&self, name: &AgentRef) -> Vec<AgentRef> {
        let ids = self.by_name.get(name).into_iter().flatten();
        ids.flat_map(|id| [id.as_str().into(), tagged(name, id)]).collect()
    }

    /// The name of an agent for other nodes. An agent without an id here keeps its name.
    pub fn written(&self, name: &AgentRef, naming: AgentNaming) -> AgentRef {
        match (self.by_name.get(name).and_then(|ids| ids.first()), naming) {
            (None, _) => name.clone(),
            (Some(id), AgentNaming::Tagged) => tagged(name, id),
            (Some(id), AgentNaming::AgentIds) => id.as_str().into(),
        }
    }

    /// The same for a whole path.
    #[must_use]
    pub fn written_path(&self, path: &AgentPath, naming: AgentNaming) -> AgentPath {
        AgentPath::new(path.to_vec().iter().map(|name| self.written(name, naming)))
    }

    /// The name that an agent has here, from its AgentID, or from a name and the first digits of its AgentID.
    pub fn own_name(&self, said: &str) -> Option<&AgentRef> {
        if said.len() == WHOLE && is_hex(said) {
            return said.parse().ok().and_then(|id: AgentId| self.by_id.get(&id));
        }
        self.by_tag.get(tag_of(said)?)
    }

    /// A path in the names of this node, as far as it knows the agents.
    #[must_use]
    pub fn recognised(&self, path: &AgentPath) -> AgentPath {
        AgentPath::new(path.to_vec().into_iter().map(|said| self.own_name(&said).cloned().unwrap_or(said)))
    }
}

/// Whether a name says which agent is meant on any node: it is an AgentID, or has the first digits of one.
pub fn is_distinct(said: &str) -> bool {
    said.len() == WHOLE && is_hex(said) || tag_of(said).is_some()
}

fn tagged(name: &AgentRef, id: &AgentId) -> AgentRef {
    format!("{name}#{}", tag(id)).into()
}

fn tag(id: &AgentId) -> &str {
    id.as_str().get(..TAG).unwrap_or_default()
}

fn tag_of(said: &str) -> Option<&str> {
    let (_, tag) = said.rsplit_once('#')?;
    (tag.len() == TAG && is_hex(tag)).then_some(tag)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> AgentId {
        AgentId::from_digest(&[byte; 32])
    }

    fn index() -> AgentIdIndex {
        AgentIdIndex::new([("a".into(), id(1)), ("b".into(), id(2)), ("a".into(), id(3)), ("a".into(), id(1))])
    }

    #[test]
    fn an_agent_is_known_by_every_name_it_has_and_told_by_its_first_id() {
        let index = index();
        for said in [id(1).as_str(), id(3).as_str(), "a#01010101", "a#03030303", "another-name#01010101"] {
            assert_eq!(index.own_name(said).map(|name| &**name), Some("a"), "{said}");
            assert!(is_distinct(said), "{said}");
        }
        for said in ["a", "a#", "a#0101010", "a#ffffffff", "a#0101010X", "#", id(9).as_str(), &"Z".repeat(64)] {
            assert_eq!(index.own_name(said), None, "{said}");
        }
        assert!(!is_distinct("a") && !is_distinct("a#0101010X") && !is_distinct(&"Z".repeat(64)));
        assert_eq!(&*index.written(&"a".into(), AgentNaming::Tagged), "a#01010101");
        assert_eq!(&*index.written(&"a".into(), AgentNaming::AgentIds), id(1).as_str());
        assert_eq!(&*index.written(&"somebody".into(), AgentNaming::AgentIds), "somebody");
        assert_eq!(index.other_names(&"a".into()).len(), 4);
    }

    #[test]
    fn a_path_is_read_back_in_the_names_of_this_node_and_others_stay_apart() {
        let index = index();
        let path = AgentPath::new(["user", "a", "b"].map(Into::into));
        for naming in [AgentNaming::Tagged, AgentNaming::AgentIds] {
            assert_eq!(index.recognised(&index.written_path(&path, naming)), path, "{naming:?}");
        }
        let elsewhere = AgentIdIndex::new([("a".into(), id(7))]).written_path(&path, AgentNaming::Tagged);
        assert_eq!(index.recognised(&elsewhere).to_string(), "user → a#07070707 → b");
    }
}
