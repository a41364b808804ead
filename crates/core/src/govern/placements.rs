//! How calls were placed, for operators: those of each agent in the last hour, and all of them since the start.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use chancery_protocol::{AgentName, Timestamp};
use chancery_rules::lineage::Attribution;

const MINUTE_MICROS: i64 = 60_000_000;
const MINUTES: i64 = 60;

#[derive(Debug, Default)]
pub(crate) struct Placements {
    agents: Mutex<HashMap<AgentName, VecDeque<Minute>>>,
    /// In the order of `Attribution::ALL`.
    totals: [AtomicU64; Attribution::ALL.len()],
}

#[derive(Debug)]
struct Minute {
    number: i64,
    counts: BTreeMap<&'static str, u64>,
}

/// So many calls, by their attribution.
pub type PlacedCalls = BTreeMap<&'static str, u64>;

impl Placements {
    /// Counts a call that made a task.
    pub(crate) fn count(&self, attribution: Attribution) {
        for (known, total) in Attribution::ALL.iter().zip(&self.totals) {
            if *known == attribution {
                total.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// All calls that made a task since the start of the process.
    pub(crate) fn totals(&self) -> PlacedCalls {
        let total = |(known, total): (&Attribution, &AtomicU64)| (known.as_str(), total.load(Ordering::Relaxed));
        Attribution::ALL.iter().zip(&self.totals).map(total).collect()
    }

    /// Notes a call of an agent.
    pub(crate) fn note(&self, agent: &AgentName, attribution: Attribution, now: Timestamp) {
        let number = now.micros().div_euclid(MINUTE_MICROS);
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let minutes = agents.entry(agent.clone()).or_default();
        while minutes.front().is_some_and(|minute| minute.number <= number - MINUTES) {
            minutes.pop_front();
        }
        if minutes.back().is_none_or(|minute| minute.number != number) {
            minutes.push_back(Minute { number, counts: BTreeMap::new() });
        }
        if let Some(minute) = minutes.back_mut() {
            *minute.counts.entry(attribution.as_str()).or_default() += 1;
        }
    }

    /// Of every agent that called within the hour.
    pub(crate) fn last_hour(&self, now: Timestamp) -> HashMap<AgentName, PlacedCalls> {
        let oldest = now.micros().div_euclid(MINUTE_MICROS) - MINUTES;
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let mut placed: HashMap<AgentName, PlacedCalls> = HashMap::new();
        for (agent, minutes) in agents.iter() {
            for (attribution, count) in minutes.iter().filter(|minute| minute.number > oldest).flat_map(|minute| &minute.counts) {
                *placed.entry(agent.clone()).or_default().entry(attribution).or_default() += count;
            }
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_for_an_hour() {
        let placements = Placements::default();
        let at = |minute: i64| Timestamp::from_micros(minute * MINUTE_MICROS);
        placements.note(&"a".into(), Attribution::Traced, at(0));
        placements.note(&"a".into(), Attribution::Traced, at(30));
        placements.note(&"a".into(), Attribution::Late, at(30));
        placements.note(&"b".into(), Attribution::Root, at(59));
        let placed = |minute| placements.last_hour(at(minute));
        assert_eq!(placed(59)["a"], PlacedCalls::from([("traced", 2), ("late", 1)]));
        assert_eq!(placed(60)["a"], PlacedCalls::from([("traced", 1), ("late", 1)]));
        assert_eq!(placed(60)["b"], PlacedCalls::from([("root", 1)]));
        assert!(placed(200).is_empty());
    }

    #[test]
    fn every_attribution_has_a_total_of_its_own() {
        let placements = Placements::default();
        for (number, attribution) in Attribution::ALL.into_iter().enumerate() {
            (0..number).for_each(|_| placements.count(attribution));
        }
        let expected = Attribution::ALL.into_iter().map(Attribution::as_str).zip(0..);
        assert_eq!(placements.totals(), expected.collect());
    }
}
