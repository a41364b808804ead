//! Whether an agent can be counted on to answer at once.
//!
//! An agent that is asked for a stream names its task with its first word, and can then be watched, stopped and found again. One that
//! is asked for a single answer does so only when it is done, which costs both sides less, and matters little as long as that is
//! soon. So an agent is believed to be quick after many turns in a row that were, and after a mistake it takes twice as many.

use std::time::Duration;

/// However often an agent was taken for quick and was not, this many turns in a row clear it.
const MOST_NEEDED: u32 = 65_536;

#[derive(Clone, Copy, Debug)]
pub struct Quickness {
    /// Quick turns since the last that was not.
    row: u32,
    /// How many it takes; none are enough where this is 0.
    needed: u32,
    /// A turn that took no longer was quick.
    within: Duration,
}

impl Quickness {
    /// An agent nothing is known of. So many turns in a row make it quick that took no longer than that; with 0 nothing does.
    pub fn new(needed: u32, within: Duration) -> Self {
        Self { row: 0, needed, within }
    }

    pub fn is_quick(&self) -> bool {
        self.needed > 0 && self.row >= self.needed
    }

    /// A turn has come to its end. One that took long shows that such turns do, however it ended; to be quick it has to end well.
    pub fn note(&mut self, took: Duration, well: bool) {
        if took <= self.within {
            self.row = self.row.saturating_add(u32::from(well));
            return;
        }
        self.mistaken();
    }

    /// It was taken for quick and is not, or one answer did not do.
    pub fn mistaken(&mut self) {
        if self.is_quick() {
            // Of several that were under way when this showed, only the first was a mistake.
            self.needed = self.needed.saturating_mul(2).min(MOST_NEEDED.max(self.needed));
        }
        self.row = 0;
    }

    /// The longest that a quick turn takes.
    pub fn within(&self) -> Duration {
        self.within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(1_000);
    const SLOW: Duration = Duration::from_millis(1_001);

    fn turns(quickness: &mut Quickness, count: u32, took: Duration) {
        (0..count).for_each(|_| quickness.note(took, true));
    }

    #[test]
    fn enough_quick_turns_in_a_row_make_an_agent_quick_and_one_slow_one_ends_it() {
        let mut agent = Quickness::new(4, QUICK);
        turns(&mut agent, 3, QUICK);
        assert!(!agent.is_quick());
        agent.note(SLOW, true);
        turns(&mut agent, 3, QUICK);
        assert!(!agent.is_quick(), "the row began anew");
        agent.note(QUICK, true);
        assert!(agent.is_quick());
        agent.note(SLOW, true);
        assert!(!agent.is_quick());
    }

    #[test]
    fn a_turn_that_ends_badly_counts_only_if_it_took_long() {
        let mut agent = Quickness::new(2, QUICK);
        agent.note(QUICK, true);
        agent.note(QUICK, false);
        assert!(!agent.is_quick());
        agent.note(QUICK, true);
        assert!(agent.is_quick());
        agent.note(SLOW, false);
        assert!(!agent.is_quick());
        turns(&mut agent, 4, QUICK);
        assert!(agent.is_quick(), "twice as many");
        agent.mistaken();
        assert!(!agent.is_quick());
    }

    #[test]
    fn each_mistake_doubles_what_it_takes_up_to_a_bound() {
        let mut agent = Quickness::new(4, QUICK);
        turns(&mut agent, 4, Duration::ZERO);
        turns(&mut agent, 64, SLOW);
        turns(&mut agent, 7, Duration::ZERO);
        assert!(!agent.is_quick(), "all those under way were one mistake");
        agent.note(Duration::ZERO, true);
        assert!(agent.is_quick());
        for _ in 0..20 {
            turns(&mut agent, MOST_NEEDED, Duration::ZERO);
            assert!(agent.is_quick());
            agent.note(SLOW, true);
        }
        turns(&mut agent, MOST_NEEDED - 1, Duration::ZERO);
        assert!(!agent.is_quick());
    }

    #[test]
    fn with_none_nothing_is_enough_and_more_than_the_bound_stays_what_it_is() {
        let mut never = Quickness::new(0, QUICK);
        turns(&mut never, 1_000, Duration::ZERO);
        assert!(!never.is_quick());
        let mut patient = Quickness::new(MOST_NEEDED + 1, QUICK);
        turns(&mut patient, MOST_NEEDED + 1, Duration::ZERO);
        assert!(patient.is_quick());
        patient.note(SLOW, true);
        turns(&mut patient, MOST_NEEDED, Duration::ZERO);
        assert!(!patient.is_quick());
        patient.note(Duration::ZERO, true);
        assert!(patient.is_quick());
    }
}
