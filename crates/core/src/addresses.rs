//! Addresses of agents: a path of its own for each agent, by which the node knows who calls. It never says who may.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::{AgentName, Timestamp};

use crate::Seal;
use crate::agents::Agents;
use crate::service::Chancery;

const PURPOSE: &str = "address";
/// Five bits a letter: 130 bits that cannot be guessed.
const LETTERS: usize = 26;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// How long the address before the last rotation holds.
const OLD_HOLDS_MICROS: i64 = 24 * 3_600_000_000;

/// How often the address of an agent was changed, and when last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AddressRotation {
    /// How often the address was replaced.
    pub generation: u32,
    /// The time of the last replacement.
    pub rotated_at: Timestamp,
}

/// Whose address is which. The secrets are made from the seal and never kept.
pub(crate) struct Addresses {
    seal: Arc<dyn Seal>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    rotations: HashMap<AgentName, AddressRotation>,
    /// The agents it was made for.
    agents: Option<Arc<Agents>>,
    /// Until when an address holds, where it is an old one.
    by_secret: HashMap<Arc<str>, (AgentName, Option<Timestamp>)>,
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Addresses(…)")
    }
}

impl Addresses {
    pub(crate) fn new(seal: Arc<dyn Seal>) -> Self {
        Self { seal, table: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, rotations: HashMap<AgentName, AddressRotation>) {
        *self.lock() = Table { rotations, ..Table::default() };
    }

    fn secret(&self, agent: &str, generation: u32) -> Arc<str> {
        let mark = self.seal.mark(PURPOSE, &[agent.as_bytes(), &generation.to_be_bytes()].concat());
        let bit = |at: usize| usize::from(mark[at / 8] >> (7 - at % 8) & 1);
        let letter = |place: usize| (0..5).fold(0, |letter, next| letter << 1 | bit(place * 5 + next));
        (0..LETTERS).map(|place| char::from(ALPHABET[letter(place)])).collect::<String>().into()
    }

    fn of(&self, agent: &str) -> Arc<str> {
        let generation = self.lock().rotations.get(agent).map_or(0, |rotation| rotation.generation);
        self.secret(agent, generation)
    }

    fn agent_at(&self, secret: &str, agents: &Arc<Agents>, now: Timestamp) -> Option<AgentName> {
        let mut table = self.lock();
        if !table.agents.as_ref().is_some_and(|known| Arc::ptr_eq(known, agents)) {
            let mut by_secret = HashMap::new();
            for agent in agents.iter() {
                let rotation = table.rotations.get(&agent.name).copied().unwrap_or_default();
                if let Some(before) = rotation.generation.checked_sub(1) {
                    let until = Timestamp::from_micros(rotation.rotated_at.micros().saturating_add(OLD_HOLDS_MICROS));
                    by_secret.insert(self.secret(&agent.name, before), (agent.name.clone(), Some(until)));
                }
                by_secret.insert(self.secret(&agent.name, rotation.generation), (agent.name.clone(), None));
            }
            table.by_secret = by_secret;
            table.agents = Some(Arc::clone(agents));
        }
        let (agent, until) = table.by_secret.get(secret)?;
        until.is_none_or(|until| now < until).then(|| agent.clone())
    }
}

impl Chancery {
    /// The secret in the address of an agent.
    pub fn agent_secret(&self, agent: &str) -> Arc<str> {
        self.0.addresses.of(agent)
    }

    /// The agent whose address has this secret.
    pub fn agent_at(&self, secret: &str) -> Option<AgentName> {
        self.0.addresses.agent_at(secret, &self.agents(), self.now())
    }

    /// Addresses are made by these from now on.
    pub fn set_address_rotations(&self, rotations: HashMap<AgentName, AddressRotation>) {
        self.0.addresses.set(rotations);
    }
}
