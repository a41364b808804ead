//! Selects every peer in turn.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::draw::number_of;
use super::{PeerId, PeerSelector, PeerSnapshot, TaskSpec};

/// Turns of more peers than this are not remembered; the oldest is forgotten first.
const TURNS_REMEMBERED: usize = 4096;

/// The peer whose turn is longest ago. Unlike a counter this stays fair when the pool changes from call to call: no peer
/// gets a second turn while another one of the pool, seen all along, waits for its first.
pub struct RoundRobin {
    seed: u64,
    turns: Mutex<Turns>,
}

#[derive(Default)]
struct Turns {
    taken: u64,
    last: HashMap<PeerId, u64>,
}

impl RoundRobin {
    /// The seed decides the order of peers that had no turn yet. The same seed and the same pools give the
    /// same picks.
    pub fn new(seed: u64) -> Self {
        Self { seed, turns: Mutex::default() }
    }
}

impl PeerSelector for RoundRobin {
    fn select(&self, _task: &TaskSpec<'_>, peers: &[PeerSnapshot]) -> Option<PeerId> {
        // What is behind the lock is whole after every statement, so a panic elsewhere spoils nothing.
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |peer: &&PeerSnapshot| {
            (turns.last.get(&peer.id).copied().unwrap_or(0), number_of(peer.id.as_str(), self.seed), peer.id.clone())
        };
        let next = peers.iter().min_by_key(waiting)?.id.clone();
        turns.taken += 1;
        let turn = turns.taken;
        turns.last.insert(next.clone(), turn);
        if turns.last.len() > TURNS_REMEMBERED
            && let Some(oldest) = turns.last.iter().min_by_key(|(_, turn)| **turn).map(|(id, _)| id.clone())
        {
            turns.last.remove(&oldest);
        }
        Some(next)
    }

    fn name(&self) -> &str {
        "round_robin"
    }
}

impl fmt::Debug for RoundRobin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoundRobin").field("seed", &self.seed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn peers_that_come_and_go_for_ever_do_not_fill_the_memory() {
        let selector = RoundRobin::new(1);
        for number in 0..TURNS_REMEMBERED + 10 {
            let peer = PeerSnapshot::cold(PeerId::new(number.to_string()), Arc::default());
            assert_eq!(selector.select(&TaskSpec::default(), std::slice::from_ref(&peer)), Some(peer.id));
        }
        let turns = selector.turns.lock().unwrap();
        assert_eq!(turns.last.len(), TURNS_REMEMBERED);
        assert!(!turns.last.contains_key("0") && turns.last.contains_key("10"));
    }
}
