//! Which tests of a binary are running, worked out from the order in which the harness starts them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::costs::{TestTime, show};

/// The harness starts tests in the order in which it lists them, so many at once, and prints a line when one ends. That tells when
/// each of them began, which only nightly toolchains print.
#[derive(Debug)]
pub(crate) struct Roster {
    waiting: VecDeque<String>,
    running: Vec<(String, Instant)>,
    ended: Vec<TestTime>,
    at_once: usize,
    last_end: Instant,
    count: usize,
}

impl Roster {
    /// The names as `--list` prints them; none if they are not known.
    pub(crate) fn new(names: Vec<String>, at_once: usize, now: Instant) -> Self {
        let mut roster = Self {
            waiting: names.into(),
            running: Vec::new(),
            ended: Vec::new(),
            at_once: at_once.max(1),
            last_end: now,
            count: 0,
        };
        roster.fill(now);
        roster
    }

    /// Takes a line that the binary printed; most of them are none of a test that ended.
    pub(crate) fn hear(&mut self, line: &str, now: Instant) {
        let Some(name) = ended_test(line) else { return };
        if let Some(at) = self.running.iter().position(|(running, _)| running == name) {
            let (name, began) = self.running.swap_remove(at);
            self.ended.push(TestTime { name, wall: now.duration_since(began) });
        } else if let Some(at) = self.waiting.iter().position(|waiting| waiting == name) {
            // Another order than the one that was listed: how long it took is not known.
            self.waiting.remove(at);
        }
        self.count += 1;
        self.last_end = now;
        self.fill(now);
    }

    fn fill(&mut self, now: Instant) {
        while self.running.len() < self.at_once {
            let Some(name) = self.waiting.pop_front() else { return };
            self.running.push((name, now));
        }
    }

    /// How many tests have ended, and of how many, if that is known.
    pub(crate) fn progress(&self) -> String {
        match self.count + self.running.len() + self.waiting.len() {
            all if all > self.count => format!("{} of {all} tests have ended", self.count),
            _ => format!("{} tests have ended", self.count),
        }
    }

    /// For how long no test has ended.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        now.duration_since(self.last_end)
    }

    /// The tests that were started and have not ended, each with its time, the longest first.
    pub(crate) fn unfinished(&self, now: Instant) -> Vec<String> {
        let mut running: Vec<_> = self.running.iter().collect();
        running.sort_by_key(|(_, began)| *began);
        running.into_iter().map(|(name, began)| format!("{name} ({})", show(now.duration_since(*began)))).collect()
    }

    pub(crate) fn into_times(self) -> Vec<TestTime> {
        self.ended
    }
}

/// The name in `test NAME ... ok`, also behind what another test printed without ending its line.
pub(crate) fn ended_test(line: &str) -> Option<&str> {
    let (before, ending) = line.rsplit_once(" ... ")?;
    if !(ending == "ok" || ending == "FAILED" || ending.starts_with("ignored")) {
        return None;
    }
    let (_, name) =
        before.rsplit_once("test ").filter(|(noise, _)| noise.is_empty() || !noise.ends_with(char::is_alphanumeric))?;
    Some(name.trim_end_matches(" - should panic"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(names: &[&str], at_once: usize, now: Instant) -> Roster {
        Roster::new(names.iter().map(|name| (*name).to_owned()).collect(), at_once, now)
    }

    #[test]
    fn lines_of_tests_that_ended_are_told_from_all_others() {
        assert_eq!(ended_test("test a::b ... ok"), Some("a::b"));
        assert_eq!(ended_test("test a::b - should panic ... FAILED"), Some("a::b"));
        assert_eq!(ended_test("test a::b ... ignored, takes an hour"), Some("a::b"));
        assert_eq!(ended_test("half a line test a::b ... ok"), Some("a::b"));
        for other in
            ["", "test a::b has been running for over 60 seconds", "test result: ok. 1 passed", "a latest x ... ok", "x ... ok"]
        {
            assert_eq!(ended_test(other), None, "{other}");
        }
    }

    #[test]
    fn each_test_begins_when_one_before_it_ends() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut roster = roster(&["a", "b", "c", "d"], 2, start);
        assert_eq!(roster.unfinished(at(1)), ["a (1.0 s)", "b (1.0 s)"]);
        roster.hear("test b ... ok", at(3));
        roster.hear("what a test prints", at(4));
        assert_eq!(roster.unfinished(at(5)), ["a (5.0 s)", "c (2.0 s)"]);
        assert_eq!((roster.progress().as_str(), roster.silence(at(5))), ("1 of 4 tests have ended", Duration::from_secs(2)));
        roster.hear("test a ... FAILED", at(6));
        roster.hear("test d ... ignored", at(6));
        roster.hear("test c ... ok", at(9));
        assert_eq!(roster.progress(), "4 tests have ended");
        let times: Vec<_> = roster.into_times().into_iter().map(|test| (test.name, test.wall.as_secs())).collect();
        assert_eq!(times, [("b".to_owned(), 3), ("a".to_owned(), 6), ("d".to_owned(), 0), ("c".to_owned(), 6)]);
    }

    #[test]
    fn names_that_were_not_listed_and_another_order_do_no_harm() {
        let start = Instant::now();
        let mut roster = roster(&["a", "b", "c"], 1, start);
        roster.hear("test c ... ok", start);
        roster.hear("test unheard_of ... ok", start);
        assert_eq!(roster.unfinished(start), ["a (0.0 s)"]);
        roster.hear("test a ... ok", start);
        roster.hear("test b ... ok", start);
        assert!(roster.unfinished(start).is_empty());
    }
}
