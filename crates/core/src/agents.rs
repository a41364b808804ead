//! The agents this node serves, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use chancery_protocol::{AgentCard, AgentName, Error, ErrorKind, IdentityProof};
use chancery_rules::policy::AskedSkill;

use crate::TaskRunner;

/// An agent of a node: its name, cards and runner.
#[derive(Clone)]
pub struct Agent {
    /// The name, as in `/agents/NAME`.
    pub name: AgentName,
    /// The card that every caller can read.
    pub card: Arc<AgentCard>,
    /// What callers who proved themselves are shown instead.
    pub extended: Option<Arc<AgentCard>>,
    /// The code that works on its turns.
    pub runner: Arc<dyn TaskRunner>,
    /// Whether callers from outside can see and call it. One that is not exposed is for the other agents of this process.
    pub exposed: bool,
    /// Whether parts of a media type that its card does not list are refused. Otherwise the agent decides:
    /// cards of remote agents are often filled by default.
    pub enforces_input_modes: bool,
}

impl Agent {
    /// Whether a skill is on one of its cards.
    pub(crate) fn lists(&self, skill: &str) -> bool {
        let cards = [Some(&self.card), self.extended.as_ref()];
        cards.into_iter().flatten().any(|card| card.skills.iter().any(|listed| listed.id == skill))
    }

    /// Whether callers with this proof are shown a card that lists a skill.
    pub(crate) fn shows(&self, skill: &str, proof: IdentityProof) -> bool {
        let extended = self.extended.as_ref().filter(|_| proof != IdentityProof::None);
        [Some(&self.card), extended].into_iter().flatten().any(|card| card.skills.iter().any(|listed| listed.id == skill))
    }

    /// The skill a call is for that names none: the only one there is.
    pub(crate) fn only_skill(&self) -> AskedSkill {
        match &*self.card.skills {
            [only] => AskedSkill::Only(only.id.as_str().into()),
            _ => AskedSkill::Unknown,
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("name", &self.name).finish_non_exhaustive()
    }
}

/// At least one agent; the first one given also answers at the root.
#[derive(Clone, Debug)]
pub struct Agents {
    first: Arc<Agent>,
    by_name: BTreeMap<AgentName, Arc<Agent>>,
}

impl Agents {
    /// Makes a set of one agent.
    pub fn new(first: Agent) -> Self {
        let first = Arc::new(first);
        Self { by_name: BTreeMap::from([(first.name.clone(), first.clone())]), first }
    }

    /// The same with one more, or with another of that name.
    #[must_use]
    pub fn with(mut self, agent: Agent) -> Self {
        let agent = Arc::new(agent);
        if self.first.name == agent.name {
            self.first = Arc::clone(&agent);
        }
        self.by_name.insert(agent.name.clone(), agent);
        self
    }

    /// The same without one. The first one stays: there is always an agent at the root.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        if *self.first.name != *name {
            self.by_name.remove(name);
        }
        self
    }

    /// The same with an agent under another name, at the root if it was there before.
    #[must_use]
    pub fn renamed(mut self, before: &str, agent: Agent) -> Self {
        let agent = Arc::new(agent);
        if *self.first.name == *before {
            self.first = Arc::clone(&agent);
        }
        self.by_name.remove(before);
        self.by_name.insert(agent.name.clone(), agent);
        self
    }

    /// Returns the agents in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.by_name.values()
    }

    /// Returns the agent at the root.
    pub fn first(&self) -> &Arc<Agent> {
        &self.first
    }

    /// Returns the agent with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Agent>> {
        self.by_name.get(name)
    }

    /// Whether there is another agent beside the root's own.
    pub(crate) fn several(&self) -> bool {
        self.by_name.len() > 1
    }

    /// The agent a call is for.
    pub(crate) fn called(&self, name: Option<&AgentName>) -> Result<Arc<Agent>, Error> {
        let Some(name) = name else { return Ok(Arc::clone(&self.first)) };
        self.get(name).cloned().ok_or_else(|| Error::new(ErrorKind::MethodNotFound, format!("no agent named {name} here")))
    }
}
